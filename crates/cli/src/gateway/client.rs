//! Connections to providers.

use std::sync::Arc;
use std::time::Duration;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::gateway::body::Body;
use crate::gateway::error::GatewayError;
use crate::gateway::settings::ServeSettings;

pub(crate) type HttpClient = Client<HttpsConnector<HttpConnector>, Body>;

/// The most headers of a request, and of a reply.
pub(crate) const MAX_HEADERS: usize = 256;

/// A client that keeps connections open, sends headers as they are spelled and follows no redirect.
/// They may be idle for as long as `idle`.
pub(crate) fn client(settings: &ServeSettings, idle: Duration) -> Result<HttpClient, GatewayError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(GatewayError::Certificates)?
        .with_no_client_auth();
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(Duration::from_secs(settings.connect_seconds)));
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_http1()
        .wrap_connector(tcp);
    let client = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(idle)
        .pool_max_idle_per_host(if idle.is_zero() { 0 } else { usize::MAX })
        .http1_preserve_header_case(true)
        .http1_max_headers(MAX_HEADERS)
        .build(connector);
    Ok(client)
}
