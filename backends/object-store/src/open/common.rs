//! Buckets of all stores that are reached over a network.

use std::sync::Arc;

use object_store::ObjectStore;
use url::Url;

use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// The name of a bucket, or its equivalent in other stores.
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

/// Begins to build over a bucket's store. `server` tells it from buckets of the same name elsewhere.
pub(super) fn in_bucket(
    url: &Url,
    server: &str,
    store: impl ObjectStore,
) -> Result<Builder, OpenError> {
    let (scheme, bucket, path) = (url.scheme(), bucket(url)?, url.path());
    let mut builder =
        Objects::builder(Arc::new(store), format!("{scheme}://{bucket}")).prefix(path);
    let path = path.trim_end_matches('/');
    builder.origin = Some(format!("{scheme} {server} {bucket}{path}"));
    Ok(builder)
}
