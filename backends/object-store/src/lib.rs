//! Object stores as a backend of [`offcut`]: offloaded content, shared by many machines.
//!
//! ```no_run
//! use offcut::ToolReduction;
//! use offcut_object_store::Objects;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let store = Objects::open("s3://my-bucket/agents")?; // credentials from the environment
//! store.check().await?; // a wrong bucket or wrong credentials are found here
//! let reduction = ToolReduction::recommended(store).build()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Hints then name `s3://my-bucket/agents/trunc/call_1`, in this process and in any other that
//! opens the same URL.
//!
//! # Features
//!
//! | feature | default | URLs | |
//! |---|---|---|---|
//! | `s3` | yes | `s3://bucket/prefix` | S3 and compatible stores |
//! | `gcs` | | `gs://bucket/prefix` | Google Cloud Storage |
//! | `azure` | | `az://container/prefix` | Azure Blob Storage |

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
mod builder;
mod error;
mod objects;
#[cfg(feature = "http")]
mod open;
mod put;
mod retry;
mod upload;
mod writer;

pub use builder::Builder;
pub use objects::Objects;
pub use upload::MAX_PARTS_IN_MEMORY;

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
