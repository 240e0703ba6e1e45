//! The contract of Offcut's stores, and two that fulfil it.
//!
//! A store keeps content that leaves a conversation, and gives it back byte for byte. [`Backend`]
//! has the contract and a skeleton to copy. [`Memory`] and, with the feature `fs`, `Fs` fulfil it.
//!
//! The crate `offcut` re-exports these items as `offcut::backend`, and the examples here name them
//! so. A crate with a store of its own needs only this one:
//!
//! ```
//! use offcut_store::{Backend, Key, Memory, PutOutcome};
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! let store = Memory::new();
//! let key = Key::new("trunc/call_1")?;
//! assert_eq!(store.put(&key, "the whole result".into()).await?, PutOutcome::Stored);
//! assert_eq!(store.put(&key, "something else".into()).await?, PutOutcome::Taken);
//! assert_eq!(store.read(&key, 0..u64::MAX).await?.bytes, "the whole result");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod backend;
pub mod content;
mod error;
mod error_chain;
#[cfg(feature = "fs")]
mod fs;
mod home;
mod key;
pub mod layout;
mod memory;
mod phase;
pub mod range;
mod url;

pub use backend::{Backend, Entry, Location, PutOutcome, ReadRange, Writer};
pub use error::{BackendError, ErrorKind};
pub use error_chain::ErrorChain;
#[cfg(feature = "fs")]
pub use fs::Fs;
pub use key::{Key, KeyError};
pub use memory::Memory;
pub use url::{StoreUrl, open};

/// Parts of keys, for code that makes keys up.
pub mod names {
    pub use crate::key::{DIGEST_LENGTH, digest, digest_from_sha256, is_safe_segment};
}
