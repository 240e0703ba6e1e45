//! From a URL and the environment to a store. All of it is checked here, because `object_store`
//! panics at some values, ignores others, and shows some in its errors.

#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "http")]
mod client;
mod error;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "local")]
mod local;
mod options;
#[cfg(feature = "s3")]
mod s3;

use std::sync::Arc;
use std::time::Duration;

use object_store::memory::InMemory;
use offcut::backend::StoreUrl;
use url::Url;

pub use self::error::OpenError;
use self::options::Options;
use crate::builder::{Builder, Defaults, check_times};
use crate::objects::Objects;

/// The environment, by the names of its variables.
pub(crate) type Env<'e> = &'e dyn Fn(&str) -> Option<String>;

/// What every kind of store is told.
#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "only stores behind a network take some of it")
)]
pub(crate) struct Common {
    pub(crate) timeout: Duration,
    /// How often the store itself tries a request again.
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
}

pub(crate) fn open_with(url: &str, env: Env<'_>) -> Result<Objects, OpenError> {
    // Before the URL is parsed: the parser makes `/x` of `/../x`.
    if !StoreUrl::from(url).has_plain_path() {
        return Err(OpenError::Url {
            must: "name its prefix as it is, without `.`, `..`, `\\` and empty segments, also percent-encoded, and have no control \
                   characters and no white space around it",
        });
    }
    let is_relative = url
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("file:"))
        && !url[5..].starts_with("///");
    let url = Url::parse(url).map_err(|_| OpenError::Url {
        must: "be a URL: `s3://bucket/prefix`",
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(OpenError::Url {
            must: "have no user and no password; put credentials in the environment",
        });
    }
    if url.port().is_some() || url.fragment().is_some() {
        return Err(OpenError::Url {
            must: "have no port and no fragment; an `endpoint` may have a port",
        });
    }
    if is_relative {
        return Err(OpenError::Url {
            must: "name a directory by its absolute path: `file:///var/lib/agent`",
        });
    }
    let mut options = Options::of(&url, env)?;
    let defaults = Defaults::default();
    // The AWS tools count attempts, of which the first is no retry.
    let attempts = || {
        (url.scheme() == "s3")
            .then(|| options.env("AWS_MAX_ATTEMPTS"))
            .flatten()
    };
    let attempts = attempts().map(|text| match text.parse::<u32>() {
        Ok(attempts @ 1..) => Ok(attempts - 1),
        _ => Err(OpenError::Value {
            name: "AWS_MAX_ATTEMPTS",
            must: "be a number, at least 1",
        }),
    });
    let retries = match (options.number("retries")?, attempts) {
        (Some(retries), _) => retries,
        (None, attempts) => attempts.transpose()?.unwrap_or(defaults.retries),
    };
    let timeout = options.duration("timeout")?.unwrap_or(defaults.timeout);
    let backoff = options.duration("backoff")?.unwrap_or(defaults.backoff);
    check_times(timeout, retries, backoff)?;
    let spool = options.take("spool");
    let common = Common {
        timeout,
        retries,
        backoff,
    };

    let mut builder = open_scheme(&url, &mut options, &common)?;
    options.is_empty()?;
    builder.spool = spool.map(Into::into);
    // A store that is told not to try again is not tried again from here either.
    builder
        .timeout(timeout)
        .retries(retries.min(2))
        .backoff(backoff)
        .build()
}

#[cfg_attr(
    not(feature = "http"),
    expect(unused_variables, reason = "only stores behind a network have options")
)]
fn open_scheme(
    url: &Url,
    options: &mut Options<'_>,
    common: &Common,
) -> Result<Builder, OpenError> {
    match url.scheme() {
        "memory" => {
            let place = Objects::builder(Arc::new(InMemory::new()), "memory:");
            match url.host_str() {
                None | Some("") => Ok(place.prefix(url.path())),
                Some(_) => Err(OpenError::Url {
                    must: "have no host: `memory:/prefix`",
                }),
            }
        }
        #[cfg(feature = "s3")]
        "s3" => s3::open(url, options, common),
        #[cfg(feature = "gcs")]
        "gs" => gcs::open(url, options, common),
        #[cfg(feature = "azure")]
        "az" => azure::open(url, options, common),
        #[cfg(feature = "local")]
        "file" => local::open(url),
        #[cfg(not(feature = "s3"))]
        "s3" => Err(OpenError::Feature {
            scheme: "s3",
            feature: "s3",
        }),
        #[cfg(not(feature = "gcs"))]
        "gs" => Err(OpenError::Feature {
            scheme: "gs",
            feature: "gcs",
        }),
        #[cfg(not(feature = "azure"))]
        "az" => Err(OpenError::Feature {
            scheme: "az",
            feature: "azure",
        }),
        #[cfg(not(feature = "local"))]
        "file" => Err(OpenError::Feature {
            scheme: "file",
            feature: "local",
        }),
        other => Err(OpenError::Scheme {
            scheme: other.to_owned(),
        }),
    }
}

/// The name of a bucket, or of what other stores have for one.
#[cfg(feature = "http")]
fn bucket(url: &Url) -> Result<&str, OpenError> {
    let bucket = url.host_str().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_bucket =
        (3..=255).contains(&bucket.len()) && bucket.bytes().all(is_name) && !bucket.contains("..");
    if is_bucket {
        Ok(bucket)
    } else {
        Err(OpenError::Bucket)
    }
}

#[cfg(test)]
mod tests;
