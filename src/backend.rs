//! Stores for content, and the contract that every store fulfils.
//!
//! They come from the crate `offcut-store`, which is all that a crate with a store of its own needs.

#[cfg(feature = "fs")]
#[doc(inline)]
pub use offcut_store::Fs;
#[doc(inline)]
pub use offcut_store::{
    Backend, BackendError, Entry, ErrorKind, Key, KeyError, Location, Memory, PutOutcome,
    ReadRange, StoreUrl, Writer, open,
};
