//! Stores at `gs://bucket/prefix` URLs.

use object_store::gcp::GoogleCloudStorageBuilder;
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Known, Settings, bucket, in_bucket, known};
use super::options::Options;
use crate::builder::Builder;
use crate::open_error::OpenError;
use crate::retry::Retry;

/// The options. Without any of them, `object_store` looks for gcloud's own credentials, then asks
/// the machine.
const KNOWN: &[Known] = known! {
    Text "service_account" from "GOOGLE_SERVICE_ACCOUNT" "SERVICE_ACCOUNT";
    Text "service_account_key" from "GOOGLE_SERVICE_ACCOUNT_KEY";
    Text "application_credentials" from "GOOGLE_APPLICATION_CREDENTIALS";
    Credential "bearer_token" from "GOOGLE_BEARER_TOKEN";
    Flag "skip_signature" from "GOOGLE_SKIP_SIGNATURE";
    Endpoint "endpoint" from "GOOGLE_BASE_URL";
    Flag "allow_http" from "GOOGLE_ALLOW_HTTP";
};

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Builder, OpenError> {
    let bucket = bucket(url)?;
    let settings = Settings::take(options, KNOWN)?;
    let builder = settings.apply(
        GoogleCloudStorageBuilder::new(),
        GoogleCloudStorageBuilder::with_config,
    )?;
    let store = builder
        .with_bucket_name(bucket)
        .with_retry(retries(retry))
        .with_http_connector(ClientConnector::new(retry))
        .build()
        .map_err(OpenError::refused)?;
    in_bucket(url, settings.endpoint(), store)
}
