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
    /// There is no such kind of store.
    #[error("there is no store for `{scheme}:` URLs: use `s3`, `gs`, `az`, `file` or `memory`")]
    Scheme {
        /// The URL's scheme.
        scheme: String,
    },
    /// Support for this kind of store was not compiled in.
    #[error("`{scheme}:` URLs require the feature `{feature}` of offcut-object-store: enable it")]
    Feature {
        /// The URL's scheme.
        scheme: &'static str,
        /// Name of the feature.
        feature: &'static str,
    },
    /// The URL has an option that this kind of store does not have.
    #[error("the store's URL has an unknown option `{name}`: use one of {known}")]
    UnknownOption {
        /// The option's name, or `…` if it does not look like one.
        name: String,
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
    /// An option that another one requires is missing.
    #[error("`{name}` is missing: set it in the URL, or {} in the environment", .env)]
    Missing {
        /// The option's name in the URL.
        name: &'static str,
        /// The environment variable.
        env: &'static str,
    },
    /// The underlying library rejects the settings.
    #[error(
        "the store's settings are invalid or contradict each other: check its credentials and its endpoint"
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
