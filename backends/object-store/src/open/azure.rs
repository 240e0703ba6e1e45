//! Stores at `az://container/prefix` URLs.

use object_store::azure::MicrosoftAzureBuilder;
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Known, Settings, bucket, in_bucket, known};
use super::options::Options;
use crate::builder::Builder;
use crate::open_error::OpenError;
use crate::retry::Retry;

/// The options. Without credentials, `object_store` asks the machine.
const KNOWN: &[Known] = known! {
    Word "account_name" from "AZURE_STORAGE_ACCOUNT_NAME";
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

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    retry: &Retry,
) -> Result<Builder, OpenError> {
    let container = bucket(url)?;
    let settings = Settings::take(options, KNOWN)?;
    let account = settings.get("account_name").unwrap_or_default();
    if !account.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(OpenError::Value {
            name: "account_name",
            must: "consist of letters and digits",
        });
    }
    let builder = settings.apply(
        MicrosoftAzureBuilder::new(),
        MicrosoftAzureBuilder::with_config,
    )?;
    let store = builder
        .with_container_name(container)
        .with_retry(retries(retry))
        .with_http_connector(ClientConnector::new(retry))
        .build()
        .map_err(OpenError::refused)?;
    in_bucket(url, &format!("{account} {}", settings.endpoint()), store)
}
