//! Opens a store from a URL and the environment. Everything is checked here, because `object_store`
//! panics on some values, ignores others, and repeats some in its errors.

mod options;
mod services;

use offcut::backend::BackendError;
use url::{Position, Url};

use self::options::{Env, Options};
use crate::error::{URL, mistake};
use crate::objects::Objects;
use crate::retry::Retry;

impl Objects {
    /// Opens the store at `url`: `s3://bucket/prefix`, `gs://…` or `az://…`.
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
    /// - `timeout=120s`, `backoff=100ms` and `spool`: as in [`Builder`](crate::Builder). `retries=5`.
    /// - `region=us-east-1` for S3.
    ///
    /// # Errors
    ///
    /// Names the mistake in the URL or the environment, and never a value that may be secret.
    pub fn open(url: &str) -> Result<Self, BackendError> {
        open_with(url, &|name| std::env::var(name).ok())
    }
}

fn open_with(url: &str, env: Env<'_>) -> Result<Objects, BackendError> {
    let refuse = |must: &str| Err(mistake(URL, must));
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
    let must = "be a number with `ms`, `s` or `m`: `100ms`";
    let duration = |text: &str| humantime::parse_duration(text).ok();
    let timeout = options.parsed("timeout", must, duration)?;
    let retries = options.parsed("retries", "be a number", |text| text.parse().ok())?;
    let backoff = options.parsed("backoff", must, duration)?;
    let retry = Retry {
        timeout: timeout.unwrap_or(defaults.timeout),
        retries: retries.unwrap_or(5),
        backoff: backoff.unwrap_or(defaults.backoff),
    };
    retry.check()?;
    let spool = options.take("spool");
    let (server, store) = match url.scheme() {
        #[cfg(feature = "s3")]
        "s3" => services::s3(bucket(&url)?, &mut options, &retry)?,
        #[cfg(feature = "gcs")]
        "gs" => services::gcs(bucket(&url)?, &mut options, &retry)?,
        #[cfg(feature = "azure")]
        "az" => services::azure(bucket(&url)?, &mut options, &retry)?,
        _ => {
            return refuse(
                "begin with `s3:`, `gs:` or `az:`, for which offcut-object-store has the features `s3`, `gcs` and `azure`",
            );
        }
    };
    options.reject_unknown()?;

    let (scheme, bucket, path) = (url.scheme(), bucket(&url)?, url.path());
    let mut builder = Objects::builder(store, format!("{scheme}://{bucket}")).prefix(path);
    let path = path.trim_end_matches('/');
    // The server tells it from buckets of the same name elsewhere.
    builder.origin = Some(format!("{scheme} {server} {bucket}{path}"));
    builder.spool = spool.map(Into::into);
    // `object_store` does most of the retrying. If it must not retry, this crate does not either.
    builder.retry = Retry {
        retries: retry.retries.min(defaults.retries),
        ..retry
    };
    builder.build()
}

/// The name of a bucket, or its equivalent in other stores.
fn bucket(url: &Url) -> Result<&str, BackendError> {
    let bucket = url.host_str().unwrap_or_default();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_bucket =
        (3..=255).contains(&bucket.len()) && bucket.bytes().all(is_name) && !bucket.contains("..");
    let must =
        "name a bucket, of 3 or more letters, digits, `-`, `_` and `.`: `s3://bucket/prefix`";
    is_bucket
        .then_some(bucket)
        .ok_or_else(|| mistake(URL, must))
}

#[cfg(test)]
mod tests;
