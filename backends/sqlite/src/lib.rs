//! A store in an SQLite database: a worked example of a [`Backend`](offcut::backend::Backend) of
//! one's own.
//!
//! - `store.rs` is the contract: names, and what each call does.
//! - `connection.rs` hands work to a thread that may block, and turns SQLite's errors into ours.
//! - `writer.rs` is content that comes piece by piece.
//! - `database.rs` is the SQL: what is stored, and how each step is atomic.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod database;
mod store;
mod writer;

pub use store::Sqlite;

/// The README's example compiles and runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
