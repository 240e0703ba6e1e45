//! An endpoint for MCP clients over streamable HTTP.

mod access;
mod hosted;
mod login;
mod names;
mod proxy;
mod reply;
mod session;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::gateway::{Conversation, McpGateway};
use crate::http::Clients;
use crate::remote::Remote;
use access::Access;
use hosted::Hosted;
use proxy::Proxy;
use reply::{Body, REFUSED};

/// Maximum number of connections at once.
const MAX_CONNECTIONS: usize = 1024;
/// Time for a request's head.
const HEAD: Duration = Duration::from_secs(30);
/// Time for which a client may take nothing of an answer.
const SILENCE: Duration = Duration::from_secs(60);
/// Time for connections to end when the endpoint does.
const FAREWELL: Duration = Duration::from_secs(2);

/// An endpoint for MCP clients over streamable HTTP, at the path `/mcp`.
///
/// In front of a server over HTTP, requests and answers pass, and only long results, the list of tools
/// and calls of the reader are the gateway's. Sessions, streams and their resumption are the server's own. A
/// refusal for want of credentials leads the client to the server's authorization server.
///
/// In front of servers over pipes, each session has a server of its own. Clients of revisions without sessions are
/// told to fall back to one with.
///
/// All clients share one place. What they store has names that nobody can guess, so the gateway's reduction should not
/// make [short](offcut::StoredNames::Short) ones.
///
/// Requests that name another host than this machine or an address, or come from a web page of another origin, are
/// refused.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use offcut::{ToolReduction, backend::Memory};
/// use offcut_mcp::{McpEndpoint, McpGateway, Remote};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let gateway = McpGateway::new(ToolReduction::recommended(Memory::new()).build()?);
/// let remote = Remote::new("https://example.com/mcp")?;
/// let listener = tokio::net::TcpListener::bind("127.0.0.1:7770").await?;
/// McpEndpoint::before(Arc::new(gateway), remote).serve(listener, std::future::pending()).await?;
/// # Ok(()) }
/// ```
pub struct McpEndpoint {
    access: Access,
    servers: EndpointServers,
}

/// The servers of an endpoint.
enum EndpointServers {
    Remote(Box<Proxy>),
    Hosted(Box<Hosted>),
}

impl McpEndpoint {
    /// An endpoint in front of a server over HTTP.
    #[must_use]
    pub fn before(gateway: Arc<McpGateway>, remote: Remote) -> Self {
        Self {
            access: Access::default(),
            servers: EndpointServers::Remote(Box::new(Proxy::new(gateway, remote))),
        }
    }

    /// An endpoint in front of servers over pipes. `start` runs one for a conversation whose client is at
    /// the other end of a reader and a writer, until both have ended.
    #[must_use]
    pub fn hosting<R>(
        gateway: Arc<McpGateway>,
        start: impl Fn(Conversation, (DuplexStream, DuplexStream)) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: Future<Output = ()> + Send + 'static,
    {
        let start = move |conversation, client| start(conversation, client).boxed();
        let hosted = Hosted::new(gateway, Box::new(start));
        Self {
            access: Access::default(),
            servers: EndpointServers::Hosted(Box::new(hosted)),
        }
    }

    /// Lets in clients that address the endpoint by this name, besides `localhost` and addresses.
    #[must_use]
    pub fn allow_host(mut self, name: impl Into<String>) -> Self {
        self.access.hosts.push(name.into());
        self
    }

    /// Serves the clients of `listener` until `stop` is ready; then sessions and their servers end.
    ///
    /// # Errors
    ///
    /// The listener can't be used at all. A single connection that fails ends only itself.
    pub async fn serve(
        mut self,
        listener: TcpListener,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        self.access.is_loopback = listener.local_addr()?.ip().is_loopback();
        let endpoint = Arc::new(self);
        let mut clients = Clients::new(Arc::new(Semaphore::new(MAX_CONNECTIONS)), HEAD, SILENCE);
        let answer = |own: Arc<Self>, request| async move { own.answer(request).await };
        let accepting = clients.accept(listener, &endpoint, answer, |_| (), stop);
        accepting.await;
        if let EndpointServers::Hosted(hosted) = &endpoint.servers {
            hosted.close().await;
        }
        _ = clients.end(FAREWELL).await;
        Ok(())
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let host = match self.access.host(request.headers()) {
            Ok(host) => host,
            Err(problem) => {
                return reply::error(StatusCode::FORBIDDEN, REFUSED, problem, None);
            }
        };
        let path = request.uri().path();
        // Clients and guides write it with a slash at its end too.
        let is_own = path.trim_end_matches('/') == login::PATH;
        let metadata = match &self.servers {
            EndpointServers::Remote(proxy) if is_own => return proxy.answer(request, &host).await,
            EndpointServers::Hosted(hosted) if is_own => return hosted.answer(request).await,
            EndpointServers::Remote(proxy) if request.method() == Method::GET => {
                proxy.login.answer(path, &host).await
            }
            _ => None,
        };
        metadata.unwrap_or_else(|| {
            let problem = "there is nothing here: clients connect to /mcp";
            reply::error(StatusCode::NOT_FOUND, REFUSED, problem, None)
        })
    }
}

impl fmt::Debug for McpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpEndpoint")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
