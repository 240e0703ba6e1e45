//! Errors in a URL, the environment or a setting.

use std::fmt;

use offcut::ErrorChain;
use offcut::backend::BackendError;

#[cfg(any(feature = "http", feature = "local"))]
use crate::error::Trouble;

/// An error from opening a store. It never contains a value, since any value may be secret.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is malformed, or has a part that no store's URL has.
    #[error("the store's URL must {must}")]
    Url {
        /// The requirement.
        must: &'static str,
    },
    /// The URL has an option that this kind of store does not have.
    #[error("the store's URL has an unknown option: use only {known}")]
    UnknownOption {
        /// The existing options.
        known: String,
    },
    /// An option has an invalid value.
    #[error("`{name}` must {must}")]
    Value {
        /// The option's name in the URL or in the builder, or the environment variable's name.
        name: &'static str,
        /// The requirement.
        must: &'static str,
    },
    /// The underlying library rejects the settings.
    #[error(
        "the store's settings are incomplete or contradict each other: check its account, its credentials and its endpoint"
    )]
    Refused {
        /// The library's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The spool's directory is unusable. It holds content until it is uploaded.
    #[error("the spool's directory can't be used: set another one with `spool`")]
    Spool {
        /// Reason; `None` if there is no home directory for the default spool.
        #[source]
        source: Option<BackendError>,
    },
}

impl fmt::Debug for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

impl OpenError {
    #[cfg(any(feature = "http", feature = "local"))]
    pub(crate) fn refused(error: object_store::Error) -> Self {
        Self::Refused {
            source: Box::new(Trouble::from(error)),
        }
    }
}
