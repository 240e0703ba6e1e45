//! Stores at `s3://bucket/prefix` URLs.

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Known, Settings, bucket, in_bucket, known};
use super::options::Options;
use crate::builder::Builder;
use crate::open_error::OpenError;
use crate::retry::Retry;

/// The options. The others that `object_store` has are of no use here, or would break the contract.
pub(super) const KNOWN: &[Known] = known! {
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

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Builder, OpenError> {
    let bucket = bucket(url)?;
    let settings = Settings::take(options, KNOWN)?;
    let builder = settings.apply(AmazonS3Builder::new(), AmazonS3Builder::with_config)?;
    let store = builder
        .with_bucket_name(bucket)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // A sweep removes one at a time, and not every server supports bulk removal.
        .with_disable_bulk_delete(true)
        .with_retry(retries(retry))
        .with_http_connector(ClientConnector::new(retry))
        .build()
        .map_err(OpenError::refused)?;
    in_bucket(url, settings.endpoint(), store)
}
