//! Opens a store from a URL and the environment. Everything is checked here, because `object_store`
//! panics on some values, ignores others, and repeats some in its errors.

#[cfg(feature = "azure")]
mod azure;
#[cfg(feature = "http")]
mod client;
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
use offcut::backend::StoreUrl;
use url::Url;

use self::common::Common;
use self::options::{Env, Options};
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;
use crate::retry::{Defaults, check_times};

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
    /// - `timeout=120s`, `backoff=100ms` and `spool`: as in [`Builder`].
    /// - `retries=5`; for S3, one less than `AWS_MAX_ATTEMPTS` if that is set.
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
    // Checked before the URL is parsed, since the parser turns `/../x` into `/x`.
    if !StoreUrl::from(url).has_plain_path() {
        return Err(OpenError::Url {
            must: "spell its prefix plainly, without `.`, `..`, `\\` or empty segments, even percent-encoded, and have no control \
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
            must: "have no user or password: put credentials in the environment",
        });
    }
    if url.port().is_some() || url.fragment().is_some() {
        return Err(OpenError::Url {
            must: "have no port or fragment; an `endpoint` may have a port",
        });
    }
    if is_relative {
        return Err(OpenError::Url {
            must: "name a directory by its absolute path: `file:///var/lib/agent`",
        });
    }
    let mut options = Options::of(&url, env)?;
    let defaults = Defaults::default();
    // AWS tools count attempts, and the first attempt is not a retry.
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
    options.reject_unknown()?;
    builder.spool = spool.map(Into::into);
    // `object_store` does most of the retrying. If it must not retry, this crate does not either.
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

#[cfg(test)]
mod tests;
