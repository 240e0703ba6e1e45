//! Connections to servers, which are kept.

use std::collections::HashSet;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use http::request::Parts;
use http::{Extensions, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{HttpConnector, HttpInfo};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::time::Instant;

use crate::locked::locked;

/// The most headers of a request, and of a reply.
pub(super) const MAX_HEADERS: usize = 256;

/// The time within which a connection breaks that was closed as idle. Later, a server may be at work.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Number of connections that are remembered. After it, those before count as new once more.
const MOST_USED: usize = 4_096;

/// A client that keeps connections open, sends headers as they are spelled and follows no redirect.
#[derive(Clone, Debug)]
pub struct HttpClient<B> {
    kept: legacy::Client<HttpsConnector<HttpConnector>, B>,
    /// Opens a connection for each request.
    fresh: legacy::Client<HttpsConnector<HttpConnector>, B>,
    /// The connections that have brought a reply, by their addresses here and there.
    used: Arc<Mutex<HashSet<[SocketAddr; 2]>>>,
}

impl<B> HttpClient<B>
where
    B: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static,
{
    /// A client whose connections are made within `connect`, and may be idle for as long as `idle`.
    ///
    /// # Errors
    ///
    /// The certificates that the system trusts can't be used.
    pub fn new(connect: Duration, idle: Duration) -> Result<Self, rustls::Error> {
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(connect));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls()?)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let keeping = |connections| {
            legacy::Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(idle)
                .pool_max_idle_per_host(connections)
                .http1_preserve_header_case(true)
                .http1_max_headers(MAX_HEADERS)
                .build(connector.clone())
        };
        Ok(Self {
            kept: keeping(usize::MAX),
            fresh: keeping(0),
            used: Arc::default(),
        })
    }

    /// Sends a request whose body passes as it comes.
    ///
    /// # Errors
    ///
    /// The server can't be reached, or the connection broke before the reply began.
    pub async fn pass(&self, request: Request<B>) -> Result<Response<Incoming>, legacy::Error> {
        let response = self.kept.request(request).await?;
        if let Some(ends) = response.extensions().get().map(ends) {
            let mut used = locked(&self.used);
            if used.len() == MOST_USED {
                used.clear();
            }
            used.insert(ends);
        }
        Ok(response)
    }

    /// Sends a request with a `body` at hand. If a connection that was kept breaks at once, before the reply
    /// begins, the server has most likely closed it as idle, so the request is sent once more, on a new one.
    ///
    /// # Errors
    ///
    /// The server can't be reached, or the connection broke before the reply began.
    pub async fn send(
        &self,
        parts: Parts,
        body: impl Fn() -> B,
    ) -> Result<Response<Incoming>, legacy::Error> {
        let begun = Instant::now();
        let request = Request::from_parts(parts.clone(), body());
        match self.pass(request).await {
            Err(error) if self.was_kept(&error) && begun.elapsed() < AT_ONCE => {
                self.fresh.request(Request::from_parts(parts, body())).await
            }
            sent => sent,
        }
    }

    /// Returns true if the connection of `error` has been used before.
    fn was_kept(&self, error: &legacy::Error) -> bool {
        let mut of = Extensions::new();
        if let Some(connection) = error.connect_info() {
            connection.get_extras(&mut of);
        }
        let ends = of.get().map(ends);
        ends.is_some_and(|ends| locked(&self.used).contains(&ends))
    }
}

/// The ends of a connection. Ports here are used again, for other servers.
fn ends(of: &HttpInfo) -> [SocketAddr; 2] {
    [of.local_addr(), of.remote_addr()]
}

/// The configuration of TLS. The system's certificates are read once in a process, since that takes milliseconds.
fn tls() -> Result<ClientConfig, rustls::Error> {
    static TLS: OnceLock<ClientConfig> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Ok(tls.clone());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)?
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| tls).clone())
}
