//! HTTP and TLS.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::BuilderVerifierExt;

use super::ModelSetupError;

const CONNECT: Duration = Duration::from_secs(10);

/// Creates a client with its own cryptography provider. Otherwise reqwest would use the process's
/// default provider, and panic if none is set. Setting one here would conflict with a program that
/// sets its own.
pub(super) fn client() -> Result<reqwest::Client, ModelSetupError> {
    let provider: Arc<CryptoProvider> = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| ModelSetupError::Tls {
            source: error.into(),
        })?
        .with_no_client_auth();
    reqwest::Client::builder()
        .tls_backend_preconfigured(config)
        // Not for the whole answer, since models think for minutes.
        .connect_timeout(CONNECT)
        .build()
        .map_err(|error| ModelSetupError::Tls {
            source: error.into(),
        })
}
