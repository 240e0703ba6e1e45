//! Errors of a reduction.

use offcut::OffloadError;

/// A result can't be shortened. It should then be passed on unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceError {
    /// The result is not an object, has a key twice, a text that is not valid Unicode, or over 1 000
    /// blocks without text, so that what it means is not certain.
    #[error(
        "the result is not plain JSON (an object without duplicate keys, with valid Unicode), so it stays as it is"
    )]
    Ambiguous,
    /// The store failed, and `on_offload_error` is `Fail`.
    #[error("the result could not be stored")]
    Offload(#[from] OffloadError),
}
