//! A server's URL, requests to it, and its answers' heads.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use offcut::ErrorChain;

use super::address::{self, RemoteError, is_same_origin, shown};
use super::failure::RequestFailure;
use crate::http::HttpClient;

/// Maximum number of redirects that are followed for one request.
const MAX_REDIRECTS: usize = 5;
/// Time for a connection to be made, and for it to be idle.
const CONNECT: Duration = Duration::from_secs(30);
const IDLE: Duration = Duration::from_secs(30);

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
    client: HttpClient<Full<Bytes>>,
    pub(crate) url: Uri,
    headers: HeaderMap,
}

impl Remote {
    /// The server at `url`.
    ///
    /// # Errors
    ///
    /// The URL is not one of `http` or `https`, or holds credentials; or the certificates of the system can't be used.
    pub fn new(url: &str) -> Result<Self, RemoteError> {
        Ok(Self {
            url: address::url(url)?,
            client: HttpClient::new(CONNECT, IDLE).map_err(RemoteError::Certificates)?,
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

    /// Sends a request of the gateway's own with a body that is at hand, and follows redirects to the
    /// same server, which keep method and body. Any status is an answer.
    pub(crate) async fn send(
        &self,
        method: &Method,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let agent = concat!("offcut/", env!("CARGO_PKG_VERSION"));
        let mut all = HeaderMap::from_iter([(USER_AGENT, HeaderValue::from_static(agent))]);
        let mut accepted = "text/event-stream";
        if method == Method::POST {
            all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            accepted = "application/json, text/event-stream";
        }
        all.insert(ACCEPT, HeaderValue::from_static(accepted));
        // They replace others.
        all.extend(self.headers.clone());
        for (name, value) in headers {
            all.append(name, value.clone());
        }
        self.follow(&self.url, method, all, body).await
    }

    /// Sends a client's request on. Any status is an answer, which may be compressed.
    pub(crate) async fn forward(
        &self,
        method: &Method,
        mut headers: HeaderMap,
        query: Option<&str>,
        body: Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        headers.extend(self.headers.clone());
        // The user's own query replaces a client's, as the user's headers do.
        let query = query.filter(|_| self.url.query().is_none());
        let url = query.and_then(|query| format!("{}?{query}", self.url).parse().ok());
        let url = url.as_ref().unwrap_or(&self.url);
        self.follow(url, method, headers, &body).await
    }

    async fn follow(
        &self,
        url: &Uri,
        method: &Method,
        headers: HeaderMap,
        body: &Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let sent = self.elsewhere(&url, method, headers.clone(), body.clone());
            let response = sent.await?;
            if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED
            {
                return Ok(response);
            }
            let keeps_method = matches!(
                response.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            let next = response.headers().get(LOCATION);
            let next = next.and_then(|next| resolve(&url, next));
            match next {
                Some(next) if keeps_method && is_same_origin(&self.url, &next) => url = next,
                _ => return Err(RequestFailure::Redirected),
            }
        }
        Err(RequestFailure::Redirected)
    }

    /// Sends a request to any place, with no headers but these. Redirects are not followed.
    pub(crate) async fn elsewhere(
        &self,
        url: &Uri,
        method: &Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, RequestFailure> {
        let (mut parts, ()) = Request::new(()).into_parts();
        (parts.method, parts.uri, parts.headers) = (method.clone(), url.clone(), headers);
        let response = self.client.send(parts, || Full::new(body.clone())).await;
        let unreachable = |error| RequestFailure::Unreachable(ErrorChain(&error).to_string());
        let mut response = response.map_err(unreachable)?;
        // The version belongs to the connection, and a client's own is another one.
        *response.version_mut() = Version::HTTP_11;
        Ok(response)
    }
}

/// The URL that a redirect names: a whole one, or a path on the same server.
fn resolve(from: &Uri, location: &HeaderValue) -> Option<Uri> {
    let location = location.to_str().ok()?;
    if location.starts_with('/') {
        format!("{}{location}", shown(from)).parse().ok()
    } else {
        location.parse().ok()
    }
}
