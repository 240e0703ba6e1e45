//! Opens a store from a URL and the environment. Everything is checked here, because `object_store`
//! panics on some values, ignores others, and repeats some in its errors.

#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "http")]
mod client;
#[cfg(feature = "http")]
mod common;
#[cfg(feature = "gcs")]
mod gcs;
#[cfg(feature = "local")]
mod local;
mod options;
#[cfg(feature = "s3")]
mod s3;

use std::sync::Arc;

use object_store::memory::InMemory;
use url::{Position, Url};

use self::options::{Env, Options};
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;
use crate::retry::Retry;

impl Objects {
    /// Opens the store at `url`: `s3://bucket/prefix`, `gs://…`, `az://…`, `file:///directory` or
    /// `memory:/prefix`.
    ///
    /// Options are read from the query (`?region=eu-central-1&timeout=60s`) or from the
    /// environment, under the names that the store's own tools use; the URL wins. If the URL has
    /// any of the credentials, all of them are taken from the URL. An endpoint without TLS must be
    /// on this machine, unless `allow_http=true` is set. `docs/object-stores.md` in the repository
    /// lists all options.
    ///
    /// Makes no request; [`check`](Self::check) does. Does blocking I/O in the spool's directory,
    /// and reads the system's certificates.
    ///
    /// # Default
    ///
    /// - `timeout=120s`, `backoff=100ms` and `spool`: as in [`Builder`]. `retries=5`.
    /// - `region=us-east-1` for S3.
    ///
    /// # Errors
    ///
    /// An [`OpenError`] that names the mistake in the URL or the environment, and never a value
    /// that may be secret.
    pub fn open(url: &str) -> Result<Self, OpenError> {
        open_with(url, &|name| std::env::var(name).ok())
    }
}

fn open_with(url: &str, env: Env<'_>) -> Result<Objects, OpenError> {
    let refuse = |must| Err(OpenError::Url { must });
    let written = url.split(['?', '#']).next().unwrap_or_default();
    let Ok(url) = Url::parse(url) else {
        return refuse(
            "be a URL, such as `s3://bucket/prefix`; a directory needs `offcut::backend::open`",
        );
    };
    // The parser turns `/../x` into `/x`, which is another place.
    let parsed = &url[..Position::AfterPath];
    // It also ends some hosts without a path in a slash.
    if parsed != written && parsed.strip_suffix('/') != Some(written) {
        return refuse(
            "be spelt plainly: an absolute path without `.`, `..`, `\\`, control characters and white space",
        );
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refuse("have no user or password: put credentials in the environment");
    }
    if url.port().is_some() || url.fragment().is_some() {
        return refuse("have no port or fragment; an `endpoint` may have a port");
    }
    let mut options = Options::of(&url, env)?;
    let defaults = Retry::default();
    let retry = Retry {
        timeout: options.duration("timeout")?.unwrap_or(defaults.timeout),
        retries: options.number("retries")?.unwrap_or(defaults.retries),
        backoff: options.duration("backoff")?.unwrap_or(defaults.backoff),
    };
    retry.check()?;
    let spool = options.take("spool");

    let mut builder = open_scheme(&url, &mut options, &retry)?;
    options.reject_unknown()?;
    builder.spool = spool.map(Into::into);
    // `object_store` does most of the retrying. If it must not retry, this crate does not either.
    builder.retry = Retry {
        retries: retry.retries.min(2),
        ..retry
    };
    builder.build()
}

#[cfg_attr(
    not(feature = "http"),
    expect(unused_variables, reason = "only stores behind a network have options")
)]
fn open_scheme(url: &Url, options: &mut Options<'_>, retry: &Retry) -> Result<Builder, OpenError> {
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
        "s3" => s3::open(url, options, retry),
        #[cfg(feature = "gcs")]
        "gs" => gcs::open(url, options, retry),
        #[cfg(feature = "azure")]
        "az" => azure::open(url, options, retry),
        #[cfg(feature = "local")]
        "file" => local::open(url),
        _ => Err(OpenError::Url {
            must: "begin with `memory:`, or with `s3:`, `gs:`, `az:` or `file:` and the feature `s3`, `gcs`, `azure` or `local` of \
                   offcut-object-store",
        }),
    }
}

#[cfg(test)]
mod tests;
