//! Stores for content, and the contract that every store fulfils.
//!
//! A store keeps content that leaves a conversation, and gives it back byte for byte. [`Backend`]
//! has the contract and a skeleton to copy. [`Memory`] and, with the feature `fs`, `Fs` fulfil it.
//!
//! ```
//! use offcut::backend::{Backend, Key, Memory, PutOutcome};
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

pub(crate) mod content;
mod contract;
mod error;
#[cfg(feature = "fs")]
mod fs;
pub(crate) mod key;
pub(crate) mod layout;
mod memory;
pub mod range;
mod url;

pub use content::REUSED_FOR;
pub use contract::{Backend, Entry, Location, PutOutcome, ReadRange, Writer};
pub use error::{BackendError, ErrorChain, ErrorKind};
pub(crate) use error::{debug_as_chain, with_source};
#[cfg(feature = "fs")]
pub use fs::Fs;
pub use key::{Key, KeyError};
pub use memory::Memory;
pub use url::{StoreUrl, open};
