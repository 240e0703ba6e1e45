//! Stores at `s3://bucket/prefix` URLs.

use std::sync::Arc;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Common, bucket};
use super::options::{Form, Known, Options, may_be_plain};
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// The options. The others that `object_store` has are of no use here, or would break the contract.
pub(super) const KNOWN: &[Known] = &[
    Known::new(
        "access_key_id",
        &["AWS_ACCESS_KEY_ID"],
        Form::Credential,
        "aws_access_key_id",
    ),
    Known::new(
        "secret_access_key",
        &["AWS_SECRET_ACCESS_KEY"],
        Form::Credential,
        "aws_secret_access_key",
    ),
    Known::new(
        "session_token",
        &["AWS_SESSION_TOKEN"],
        Form::Credential,
        "aws_session_token",
    ),
    Known::new(
        "region",
        &["AWS_REGION", "AWS_DEFAULT_REGION"],
        Form::Word,
        "aws_region",
    ),
    Known::new(
        "endpoint",
        &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"],
        Form::Endpoint,
        "aws_endpoint",
    ),
    Known::new(
        "allow_http",
        &["AWS_ALLOW_HTTP"],
        Form::Flag,
        "aws_allow_http",
    ),
    Known::new(
        "virtual_hosted_style_request",
        &["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"],
        Form::Flag,
        "aws_virtual_hosted_style_request",
    ),
    Known::new(
        "skip_signature",
        &["AWS_SKIP_SIGNATURE"],
        Form::Flag,
        "aws_skip_signature",
    ),
    Known::new(
        "unsigned_payload",
        &["AWS_UNSIGNED_PAYLOAD"],
        Form::Flag,
        "aws_unsigned_payload",
    ),
    Known::new(
        "request_payer",
        &["AWS_REQUEST_PAYER"],
        Form::Flag,
        "aws_request_payer",
    ),
    Known::new(
        "server_side_encryption",
        &["AWS_SERVER_SIDE_ENCRYPTION"],
        Form::Word,
        "aws_server_side_encryption",
    ),
    Known::new(
        "sse_kms_key_id",
        &["AWS_SSE_KMS_KEY_ID"],
        Form::Word,
        "aws_sse_kms_key_id",
    ),
    Known::new(
        "sse_bucket_key_enabled",
        &["AWS_SSE_BUCKET_KEY_ENABLED"],
        Form::Flag,
        "aws_sse_bucket_key_enabled",
    ),
    Known::new(
        "imdsv1_fallback",
        &["AWS_IMDSV1_FALLBACK"],
        Form::Flag,
        "aws_imdsv1_fallback",
    ),
    // Set by the platforms of AWS for the programs they run.
    Known::new("role_arn", &["AWS_ROLE_ARN"], Form::Word, "aws_role_arn"),
    Known::new(
        "role_session_name",
        &["AWS_ROLE_SESSION_NAME"],
        Form::Word,
        "aws_role_session_name",
    ),
    Known::new(
        "web_identity_token_file",
        &["AWS_WEB_IDENTITY_TOKEN_FILE"],
        Form::Text,
        "aws_web_identity_token_file",
    ),
    Known::new(
        "endpoint_url_sts",
        &["AWS_ENDPOINT_URL_STS"],
        Form::Endpoint,
        "aws_endpoint_url_sts",
    ),
    Known::new(
        "container_credentials_relative_uri",
        &["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"],
        Form::Word,
        "aws_container_credentials_relative_uri",
    ),
    Known::new(
        "container_credentials_full_uri",
        &["AWS_CONTAINER_CREDENTIALS_FULL_URI"],
        Form::Endpoint,
        "aws_container_credentials_full_uri",
    ),
    Known::new(
        "container_authorization_token_file",
        &["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"],
        Form::Text,
        "aws_container_authorization_token_file",
    ),
];

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    common: &Common,
) -> Result<Builder, OpenError> {
    let bucket = bucket(url)?;
    let settings = options.take_known(KNOWN)?;
    match (
        settings.get("access_key_id"),
        settings.get("secret_access_key"),
    ) {
        (Some(_), None) => {
            return Err(OpenError::Missing {
                name: "secret_access_key",
                env: "`AWS_SECRET_ACCESS_KEY`",
            });
        }
        (None, Some(_)) => {
            return Err(OpenError::Missing {
                name: "access_key_id",
                env: "`AWS_ACCESS_KEY_ID`",
            });
        }
        _ => {}
    }
    let builder = settings.apply(AmazonS3Builder::new(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let store = builder
        .with_bucket_name(bucket)
        .with_allow_http(may_be_plain(&settings)?)
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // A sweep removes one at a time, and not every server supports bulk removal.
        .with_disable_bulk_delete(true)
        .with_retry(retries(common))
        .with_http_connector(ClientConnector::new(common))
        .build()
        .map_err(OpenError::refused)?;
    let mut builder =
        Objects::builder(Arc::new(store), format!("s3://{bucket}")).prefix(url.path());
    builder.origin = Some(format!(
        "s3 {} {bucket}{}",
        settings.endpoint(),
        url.path().trim_end_matches('/')
    ));
    Ok(builder)
}
