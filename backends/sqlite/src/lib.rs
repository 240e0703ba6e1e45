//! A store in an SQLite database: a worked example of a custom [`Backend`](offcut::backend::Backend).
//!
//! - `store.rs` is the contract: names, and the effect of each call.
//! - `connection.rs` runs work on a thread that may block, and turns SQLite's errors into ours.
//! - `writer.rs` is content that arrives in chunks.
//! - `database.rs` is the SQL: the tables, and the atomic steps on them.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod database;
mod store;
mod writer;

pub use store::Sqlite;

/// Compiles and runs the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
