//! Stores at `az://container/prefix` URLs.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use url::Url;

use super::client::{ClientConnector, retries};
use super::common::{Common, bucket};
use super::options::{Form, Known, Options, may_be_plain};
use crate::builder::Builder;
use crate::objects::Objects;
use crate::open_error::OpenError;

/// The options. Without credentials, `object_store` asks the machine.
const KNOWN: &[Known] = &[
    Known::new(
        "account_name",
        &["AZURE_STORAGE_ACCOUNT_NAME"],
        Form::Word,
        "azure_storage_account_name",
    ),
    Known::new(
        "account_key",
        &["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY"],
        Form::Credential,
        "azure_storage_account_key",
    ),
    Known::new(
        "sas_token",
        &["AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY"],
        Form::Credential,
        "azure_storage_sas_key",
    ),
    Known::new(
        "bearer_token",
        &["AZURE_STORAGE_TOKEN"],
        Form::Credential,
        "azure_storage_token",
    ),
    Known::new(
        "client_id",
        &["AZURE_STORAGE_CLIENT_ID", "AZURE_CLIENT_ID"],
        Form::Credential,
        "azure_storage_client_id",
    ),
    Known::new(
        "client_secret",
        &["AZURE_STORAGE_CLIENT_SECRET", "AZURE_CLIENT_SECRET"],
        Form::Credential,
        "azure_storage_client_secret",
    ),
    Known::new(
        "tenant_id",
        &["AZURE_STORAGE_TENANT_ID", "AZURE_TENANT_ID"],
        Form::Credential,
        "azure_storage_tenant_id",
    ),
    Known::new(
        "federated_token_file",
        &["AZURE_FEDERATED_TOKEN_FILE"],
        Form::Text,
        "azure_federated_token_file",
    ),
    Known::new(
        "use_azure_cli",
        &["AZURE_USE_AZURE_CLI"],
        Form::Flag,
        "azure_use_azure_cli",
    ),
    Known::new(
        "use_emulator",
        &["AZURE_STORAGE_USE_EMULATOR"],
        Form::Flag,
        "azure_storage_use_emulator",
    ),
    Known::new(
        "skip_signature",
        &["AZURE_SKIP_SIGNATURE"],
        Form::Flag,
        "azure_skip_signature",
    ),
    Known::new(
        "endpoint",
        &["AZURE_STORAGE_ENDPOINT"],
        Form::Endpoint,
        "azure_storage_endpoint",
    ),
    Known::new(
        "allow_http",
        &["AZURE_ALLOW_HTTP"],
        Form::Flag,
        "allow_http",
    ),
];

pub(super) fn open(
    url: &Url,
    options: &mut Options<'_>,
    common: &Common,
) -> Result<Builder, OpenError> {
    let container = bucket(url)?;
    let settings = options.take_known(KNOWN)?;
    let account = settings.get("account_name").unwrap_or_default();
    if account.is_empty() && !settings.is_set("use_emulator") {
        return Err(OpenError::Missing {
            name: "account_name",
            env: "`AZURE_STORAGE_ACCOUNT_NAME`",
        });
    }
    if !account.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(OpenError::Value {
            name: "account_name",
            must: "consist of letters and digits",
        });
    }
    let builder = settings.apply(MicrosoftAzureBuilder::new(), |builder, key, value| {
        builder.with_config(key, value)
    })?;
    let allow_http = may_be_plain(&settings)?.to_string();
    let store = builder
        .with_container_name(container)
        .with_config(
            AzureConfigKey::Client(ClientConfigKey::AllowHttp),
            allow_http,
        )
        .with_retry(retries(common))
        .with_http_connector(ClientConnector::new(common))
        .build()
        .map_err(OpenError::refused)?;
    let mut builder =
        Objects::builder(Arc::new(store), format!("az://{container}")).prefix(url.path());
    builder.origin = Some(format!(
        "az {account} {} {container}{}",
        settings.endpoint(),
        url.path().trim_end_matches('/')
    ));
    Ok(builder)
}
