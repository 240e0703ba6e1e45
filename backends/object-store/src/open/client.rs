//! HTTP and TLS for all stores reached over a network.

use std::sync::Arc;
use std::time::Duration;

use object_store::client::{ClientConfigKey, HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, Error, Result, RetryConfig};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use super::common::Common;
use crate::retry::{LONGEST_PAUSE, Retry};

/// Time limit for connecting. Shorter than for a request, to tell an address that does not answer
/// from a slow answer.
const CONNECT: Duration = Duration::from_secs(5);

/// Creates clients with their own cryptography provider.
///
/// `object_store` would use the process's default provider and sets none. Setting one here would
/// conflict with a program that sets its own.
#[derive(Debug)]
pub(super) struct Connector {
    /// Time limit for a request, its answer included.
    timeout: Duration,
}

impl Connector {
    pub(super) fn new(common: &Common) -> Self {
        let Common {
            timeout,
            retries,
            backoff,
        } = *common;
        Self {
            timeout: Retry {
                timeout,
                retries,
                backoff,
            }
            .attempt(),
        }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        let option = |key| options.get_config_value(&key);
        let allow_http = option(ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls(allow_http).map_err(refused)?)
            .https_only(!allow_http)
            .connect_timeout(CONNECT.min(self.timeout))
            .timeout(self.timeout)
            .user_agent(concat!(
                env!("CARGO_PKG_NAME"),
                "/",
                env!("CARGO_PKG_VERSION")
            ))
            .http1_only()
            // A compressed answer differs from the object in length, and its ranges in position.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build()
            .map_err(refused)?;
        Ok(HttpClient::new(client))
    }
}

fn tls(allow_http: bool) -> Result<ClientConfig, rustls::Error> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let config = || {
        ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
    };
    match config()?.with_platform_verifier() {
        Ok(config) => Ok(config.with_no_client_auth()),
        // A container without certificates can still reach a store next to it that has none either.
        Err(_) if allow_http => Ok(config()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth()),
        Err(error) => Err(error),
    }
}

fn refused(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic {
        store: "HTTP client",
        source: Box::new(error),
    }
}

/// `common` must be checked: with a zero, `object_store` would panic on the first failure.
pub(super) fn retries(common: &Common) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: common.backoff,
            max_backoff: LONGEST_PAUSE,
            base: 2.0,
        },
        max_retries: common.retries as usize,
        retry_timeout: common.timeout,
    }
}
