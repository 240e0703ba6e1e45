//! What is wrong with a URL, the environment or a setting.

use offcut::backend::BackendError;

#[cfg(any(feature = "http", feature = "local"))]
use crate::error::Trouble;

/// A store that can't be opened. No value is part of it: any of them may be secret.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The URL is none, or has what no store's URL has.
    #[error("the store's URL must {must}")]
    Url {
        /// What it must be.
        must: &'static str,
    },
    /// There is no such kind of store.
    #[error(
        "there is no store for `{scheme}:` URLs; there are `s3`, `gs`, `az`, `file` and `memory`"
    )]
    Scheme {
        /// The URL's scheme.
        scheme: String,
    },
    /// The kind of store was left out when the crate was compiled.
    #[error("`{scheme}:` URLs need the feature `{feature}` of offcut-object-store: enable it")]
    Feature {
        /// The URL's scheme.
        scheme: &'static str,
        /// The feature.
        feature: &'static str,
    },
    /// The bucket's name can't be one.
    #[error(
        "the URL must name a bucket, of 3 or more letters, digits, `-`, `_` and `.`: `s3://bucket/prefix`"
    )]
    Bucket,
    /// The prefix is no safe path.
    #[error(
        "the prefix must be a path of at most 120 bytes, of letters, digits, `.`, `_` and `-`: `agents/a-1`"
    )]
    Prefix,
    /// What locations are to begin with can't be shown.
    #[error(
        "what locations begin with must name the store, without spaces, quotes, `?`, `#` and `@`: `s3://bucket`"
    )]
    Shown,
    /// The URL has an option that this kind of store does not have.
    #[error("the store's URL has an unknown option `{name}`; there are {known}")]
    UnknownOption {
        /// The option's name, or `…` if it does not look like one.
        name: String,
        /// The options that there are.
        known: String,
    },
    /// An option has a value that can't be.
    #[error("`{name}` must {must}")]
    Value {
        /// The option's name in the URL, or the variable's in the environment.
        name: &'static str,
        /// What it must be.
        must: &'static str,
    },
    /// An option is missing that must be there with another one.
    #[error("`{name}` is missing: set it in the URL, or {} in the environment", .env)]
    Missing {
        /// The option's name in the URL.
        name: &'static str,
        /// The variable's name in the environment.
        env: &'static str,
    },
    /// The store's own library refuses the settings.
    #[error("the store's settings do not fit together: check its credentials and its endpoint")]
    Refused {
        /// What it says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no place for content that has no name yet.
    #[error("the spool's directory can't be used: set another one with `spool`")]
    Spool {
        /// Why not; `None` if there is no home directory to put it in.
        #[source]
        source: Option<BackendError>,
    },
}

impl OpenError {
    #[cfg(any(feature = "http", feature = "local"))]
    pub(crate) fn refused(error: object_store::Error) -> Self {
        Self::Refused {
            source: Box::new(Trouble::from(error).into_cause()),
        }
    }
}
