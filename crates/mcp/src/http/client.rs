//! Connections to servers, which are kept.

use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, TryFutureExt};
use http::request::Parts;
use http::{Extensions, Request, Response, Uri};
use http_body::Body;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tower_service::Service;

/// The most headers of a request, and of a reply.
pub const MAX_HEADERS: usize = 256;

/// The time within which a connection breaks that was closed as idle. Later, a server may be at work.
const AT_ONCE: Duration = Duration::from_secs(1);

/// A client that keeps connections open, sends headers as they are spelled and follows no redirect.
#[derive(Clone, Debug)]
pub struct HttpClient<B> {
    kept: legacy::Client<HttpsConnector<Connector>, B>,
    /// Opens a connection for each request.
    fresh: legacy::Client<HttpsConnector<Connector>, B>,
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
            .wrap_connector(Connector(tcp));
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
        })
    }

    /// Sends a request whose body passes as it comes.
    ///
    /// # Errors
    ///
    /// The server can't be reached, or the connection broke before the reply began.
    pub async fn pass(&self, request: Request<B>) -> Result<Response<Incoming>, legacy::Error> {
        self.kept.request(request).await.inspect(remember)
    }

    /// Sends a request with a `body` at hand. If a connection that was used before breaks at once, before the reply
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
        match self.kept.request(request).await {
            Err(error) if was_used(&error) && begun.elapsed() < AT_ONCE => {
                self.fresh.request(Request::from_parts(parts, body())).await
            }
            sent => sent.inspect(remember),
        }
    }
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

/// Notes that a server has answered on the connection of `reply`.
fn remember(reply: &Response<Incoming>) {
    if let Some(Used(used)) = reply.extensions().get() {
        used.store(true, Ordering::Relaxed);
    }
}

/// Returns true if a server had answered before on the connection of `error`.
fn was_used(error: &legacy::Error) -> bool {
    let mut of = Extensions::new();
    if let Some(connection) = error.connect_info() {
        connection.get_extras(&mut of);
    }
    of.get()
        .is_some_and(|Used(used)| used.load(Ordering::Relaxed))
}

/// The mark of a connection on which a server has answered, which its replies and its errors bring along.
#[derive(Clone, Debug, Default)]
struct Used(Arc<AtomicBool>);

/// Opens connections that tell whether they were used. Their addresses would not: a port is used again.
#[derive(Clone, Debug)]
struct Connector(HttpConnector);

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = <HttpConnector as Service<Uri>>::Error;
    type Future = BoxFuture<'static, Result<Stream, Self::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let stream = |tcp| Stream(tcp, Used::default());
        self.0.call(uri).map_ok(stream).boxed()
    }
}

/// A connection to a server.
struct Stream(TokioIo<TcpStream>, Used);

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.0.connected().extra(self.1.clone())
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(context, slices)
    }
}
