//! Settings and checks shared by all kinds of stores.

use std::time::Duration;

#[cfg(feature = "http")]
use url::Url;

#[cfg(feature = "http")]
use crate::open_error::OpenError;

/// Settings of every kind of store.
#[cfg_attr(
    not(feature = "http"),
    expect(dead_code, reason = "only stores behind a network take some of it")
)]
pub(crate) struct Common {
    pub(crate) timeout: Duration,
    /// Number of retries by `object_store`, below this crate's own retries.
    pub(crate) retries: u32,
    pub(crate) backoff: Duration,
}

/// The name of a bucket, or its equivalent in other stores.
#[cfg(feature = "http")]
pub(super) fn bucket(url: &Url) -> Result<&str, OpenError> {
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
