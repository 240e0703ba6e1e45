//! Stores at `gs://bucket/prefix` URLs.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Common, bucket};
use super::options::{Form, Known, Options, may_be_plain};
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// The options. Without any of them, `object_store` looks for gcloud's own credentials, then asks
/// the machine.
const KNOWN: &[Known] = &[
    Known::new(
        "service_account",
        &["GOOGLE_SERVICE_ACCOUNT", "SERVICE_ACCOUNT"],
        Form::Text,
        "google_service_account",
    ),
    Known::new(
        "service_account_key",
        &["GOOGLE_SERVICE_ACCOUNT_KEY"],
        Form::Text,
        "google_service_account_key",
    ),
    Known::new(
        "application_credentials",
        &["GOOGLE_APPLICATION_CREDENTIALS"],
        Form::Text,
        "google_application_credentials",
    ),
    Known::new(
        "bearer_token",
        &["GOOGLE_BEARER_TOKEN"],
        Form::Credential,
        "google_bearer_token",
    ),
    Known::new(
        "skip_signature",
        &["GOOGLE_SKIP_SIGNATURE"],
        Form::Flag,
        "google_skip_signature",
    ),
    Known::new(
        "endpoint",
        &["GOOGLE_BASE_URL"],
        Form::Endpoint,
        "google_base_url",
    ),
    Known::new(
        "allow_http",
        &["GOOGLE_ALLOW_HTTP"],
        Form::Flag,
        "allow_http",
    ),
];

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    common: &Common,
) -> Result<Builder, OpenError> {
    let bucket = bucket(url)?;
    let settings = options.take_known(KNOWN)?;
    let builder = settings.apply(GoogleCloudStorageBuilder::new(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let allow_http = may_be_plain(&settings)?.to_string();
    let store = builder
        .with_bucket_name(bucket)
        .with_config(
            GoogleConfigKey::Client(ClientConfigKey::AllowHttp),
            allow_http,
        )
        .with_retry(retries(common))
        .with_http_connector(ClientConnector::new(common))
        .build()
        .map_err(OpenError::refused)?;
    let mut builder =
        Objects::builder(Arc::new(store), format!("gs://{bucket}")).prefix(url.path());
    builder.origin = Some(format!(
        "gs {} {bucket}{}",
        settings.endpoint(),
        url.path().trim_end_matches('/')
    ));
    Ok(builder)
}
