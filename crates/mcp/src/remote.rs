//! A server over streamable HTTP.

pub(crate) mod address;
pub(crate) mod body;
mod carry;
pub(crate) mod connection;
mod exchange;
pub(crate) mod failure;
mod link;
pub(crate) mod meaning;
pub(crate) mod parameters;
pub(crate) mod session;
mod stream;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Uri};
use tokio::io::{AsyncRead, AsyncWrite, duplex};
use tokio::time::timeout;

pub use address::RemoteError;

use crate::gateway::{Conversation, run_for};
use connection::Connection;
use link::Link;

/// Number of bytes between the client's pipes and the requests.
const PIPE: usize = 64 * 1024;
/// Time for the server to be told that the session has ended.
const FAREWELL: Duration = Duration::from_secs(2);

/// An MCP server over streamable HTTP, for a client over pipes.
///
/// - Each message of the client is a `POST`; answers are JSON or a stream of events.
/// - `Mcp-Session-Id`, `MCP-Protocol-Version` and the headers that repeat parts of a message are set
///   as the revision wants them. A session that the server has ended is started again.
/// - Messages outside of answers come by the server's own stream, if it has one.
/// - A stream that breaks is resumed by `Last-Event-ID`.
/// - If the server can't be reached, or answers with an HTTP error, the client gets a JSON-RPC error
///   for its request.
/// - At the end, the session is ended with `DELETE`.
///
/// Redirects are followed within the server's origin, with the same method. The certificates are
/// those of the system.
#[derive(Debug)]
pub struct Remote {
    url: Uri,
    headers: HeaderMap,
}

impl Remote {
    /// The server at `url`.
    ///
    /// # Errors
    ///
    /// The URL is not one of `http` or `https`, or holds credentials.
    pub fn new(url: &str) -> Result<Self, RemoteError> {
        Ok(Self {
            url: address::url(url)?,
            headers: HeaderMap::new(),
        })
    }

    /// Sends a header with each request, such as `Authorization`.
    ///
    /// # Errors
    ///
    /// The name or the value is not valid, or the header belongs to the connection.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, RemoteError> {
        address::add(&mut self.headers, name, value)?;
        Ok(self)
    }

    /// Connections to the server.
    pub(crate) fn connection(self) -> Result<Connection, RemoteError> {
        Connection::new(self.url, self.headers)
    }

    /// Carries the messages between a `client`, a reader and a writer with one line a message, and the
    /// server. Returns once the client has closed its end and has the last answers, or once `stop`
    /// is ready.
    ///
    /// # Errors
    ///
    /// The client is gone, or the certificates of the system can't be used.
    pub async fn run(
        self,
        conversation: &Conversation,
        client: (impl AsyncRead + Unpin, impl AsyncWrite + Unpin),
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let connection = self.connection().map_err(io::Error::other)?;
        let (to_server, from_client) = duplex(PIPE);
        let (to_client, from_server) = duplex(PIPE);
        let gateway = conversation.gateway.clone();
        let link = Arc::new(Link::new(connection, to_client, gateway));
        let done = {
            // Answers are waited for there.
            let passed = run_for(
                Duration::ZERO,
                conversation,
                client,
                (from_server, to_server),
            );
            let carried = async {
                carry::carry(link.clone(), from_client).await;
                link.close_client().await;
                std::future::pending::<()>().await;
            };
            tokio::select! {
                passed = passed => passed,
                () = carried => Ok(()),
                () = stop => Ok(()),
            }
        };
        _ = timeout(FAREWELL, link.close()).await;
        done
    }
}
