//! The stores over a network, and their options. The others that `object_store` has are of no use here, or would break the
//! contract. Without credentials, `object_store` asks the machine.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "s3")]
use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
#[cfg(feature = "azure")]
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{ClientConfigKey, HttpConnector, ReqwestConnector};
#[cfg(feature = "gcs")]
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};
use offcut::backend::BackendError;

use super::options::{Known, Options, known};
use crate::error::refused;
use crate::retry::{LONGEST_PAUSE, Retry};

/// Time limit for connecting. Shorter than for a request, to tell an address that does not answer
/// from a slow answer.
const CONNECT: Duration = Duration::from_secs(5);
const AGENT: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// A store, and the server that it is on.
type Service = (String, Arc<dyn ObjectStore>);

#[cfg(feature = "s3")]
pub(super) const S3: &[Known] = known! {
    Credential "access_key_id" from "AWS_ACCESS_KEY_ID";
    Credential "secret_access_key" from "AWS_SECRET_ACCESS_KEY";
    Credential "session_token" from "AWS_SESSION_TOKEN";
    Word "region" from "AWS_REGION" "AWS_DEFAULT_REGION";
    Endpoint "endpoint" from "AWS_ENDPOINT_URL_S3" "AWS_ENDPOINT_URL" "AWS_ENDPOINT";
    Flag "allow_http" from "AWS_ALLOW_HTTP";
    Flag "virtual_hosted_style_request" from "AWS_VIRTUAL_HOSTED_STYLE_REQUEST";
    Flag "skip_signature" from "AWS_SKIP_SIGNATURE";
    Flag "unsigned_payload" from "AWS_UNSIGNED_PAYLOAD";
    Flag "request_payer" from "AWS_REQUEST_PAYER";
    Word "server_side_encryption" from "AWS_SERVER_SIDE_ENCRYPTION";
    Word "sse_kms_key_id" from "AWS_SSE_KMS_KEY_ID";
    Flag "sse_bucket_key_enabled" from "AWS_SSE_BUCKET_KEY_ENABLED";
    Flag "imdsv1_fallback" from "AWS_IMDSV1_FALLBACK";
    // Set by the platforms of AWS for the programs they run.
    Word "role_arn" from "AWS_ROLE_ARN";
    Word "role_session_name" from "AWS_ROLE_SESSION_NAME";
    Text "web_identity_token_file" from "AWS_WEB_IDENTITY_TOKEN_FILE";
    Endpoint "endpoint_url_sts" from "AWS_ENDPOINT_URL_STS";
    Word "container_credentials_relative_uri" from "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
    Endpoint "container_credentials_full_uri" from "AWS_CONTAINER_CREDENTIALS_FULL_URI";
    Text "container_authorization_token_file" from "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
};

#[cfg(feature = "s3")]
pub(super) fn s3(
    bucket: &str,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Service, BackendError> {
    let settings = options.settings(S3)?;
    let builder = AmazonS3Builder::new().with_client_options(client(retry));
    let store = settings
        .apply(builder, AmazonS3Builder::with_config)?
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // A sweep removes one at a time, and not every server supports bulk removal.
        .with_disable_bulk_delete(true)
        .with_retry(retries(retry))
        .build()
        .map_err(refused)?;
    Ok((settings.endpoint().to_owned(), Arc::new(store)))
}

/// Without any of them, `object_store` looks for gcloud's own credentials before it asks the machine.
#[cfg(feature = "gcs")]
const GCS: &[Known] = known! {
    Text "service_account" from "GOOGLE_SERVICE_ACCOUNT" "SERVICE_ACCOUNT";
    Text "service_account_key" from "GOOGLE_SERVICE_ACCOUNT_KEY";
    Text "application_credentials" from "GOOGLE_APPLICATION_CREDENTIALS";
    Credential "bearer_token" from "GOOGLE_BEARER_TOKEN";
    Flag "skip_signature" from "GOOGLE_SKIP_SIGNATURE";
    Endpoint "endpoint" from "GOOGLE_BASE_URL";
    Flag "allow_http" from "GOOGLE_ALLOW_HTTP";
};

#[cfg(feature = "gcs")]
pub(super) fn gcs(
    bucket: &str,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Service, BackendError> {
    let settings = options.settings(GCS)?;
    let builder = GoogleCloudStorageBuilder::new().with_client_options(client(retry));
    let store = settings
        .apply(builder, GoogleCloudStorageBuilder::with_config)?
        .with_bucket_name(bucket)
        .with_retry(retries(retry))
        .build()
        .map_err(refused)?;
    Ok((settings.endpoint().to_owned(), Arc::new(store)))
}

#[cfg(feature = "azure")]
const AZURE: &[Known] = known! {
    Name "account_name" from "AZURE_STORAGE_ACCOUNT_NAME";
    Credential "account_key" from "AZURE_STORAGE_ACCOUNT_KEY" "AZURE_STORAGE_ACCESS_KEY";
    Credential "sas_token" from "AZURE_STORAGE_SAS_TOKEN" "AZURE_STORAGE_SAS_KEY";
    Credential "bearer_token" from "AZURE_STORAGE_TOKEN";
    Credential "client_id" from "AZURE_STORAGE_CLIENT_ID" "AZURE_CLIENT_ID";
    Credential "client_secret" from "AZURE_STORAGE_CLIENT_SECRET" "AZURE_CLIENT_SECRET";
    Credential "tenant_id" from "AZURE_STORAGE_TENANT_ID" "AZURE_TENANT_ID";
    Text "federated_token_file" from "AZURE_FEDERATED_TOKEN_FILE";
    Flag "use_azure_cli" from "AZURE_USE_AZURE_CLI";
    Flag "use_emulator" from "AZURE_STORAGE_USE_EMULATOR";
    Flag "skip_signature" from "AZURE_SKIP_SIGNATURE";
    Endpoint "endpoint" from "AZURE_STORAGE_ENDPOINT";
    Flag "allow_http" from "AZURE_ALLOW_HTTP";
};

#[cfg(feature = "azure")]
pub(super) fn azure(
    container: &str,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Service, BackendError> {
    let settings = options.settings(AZURE)?;
    let builder = MicrosoftAzureBuilder::new().with_client_options(client(retry));
    let store = settings
        .apply(builder, MicrosoftAzureBuilder::with_config)?
        .with_container_name(container)
        .with_retry(retries(retry))
        .build()
        .map_err(refused)?;
    let account = settings.get("account_name").unwrap_or_default();
    let server = format!("{account} {}", settings.endpoint());
    Ok((server, Arc::new(store)))
}

fn client(retry: &Retry) -> ClientOptions {
    let request = retry.timeout / 4;
    let options = ClientOptions::new()
        .with_timeout(request)
        .with_connect_timeout(CONNECT.min(request))
        .with_config(ClientConfigKey::UserAgent, AGENT);
    // A container without certificates can still reach a store next to it that has none either.
    match ReqwestConnector::default().connect(&options) {
        Ok(_) => options,
        Err(_) => options.with_no_system_certificates(true),
    }
}

/// `retry` must be checked: with a zero, `object_store` would panic on the first failure.
fn retries(retry: &Retry) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: retry.backoff,
            max_backoff: LONGEST_PAUSE,
            base: 2.0,
        },
        max_retries: retry.retries as usize,
        retry_timeout: retry.timeout,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_program_makes_clients_of_its_own_beside_this_crate() {
        // It panics where features turn TLS on without a provider.
        let _ = reqwest::Client::new();
    }
}
