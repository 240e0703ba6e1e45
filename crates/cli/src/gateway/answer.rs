//! One request on its way to its provider, and the reply on its way back.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use hyper::body::{Body as _, Incoming};
use serde_json::json;
use tokio::time::Instant;
use tracing::Instrument;

use crate::gateway::body::{self, Body, Read};
use crate::gateway::exchange::Exchange;
use crate::gateway::metrics::Metric;
use crate::gateway::own::Refusal;
use crate::gateway::pass::Client;
use crate::gateway::plug::Plug;
use crate::gateway::readers::Credential;
use crate::gateway::send::Payload;
use crate::gateway::service::Service;
use crate::gateway::upstream::Upstream;
use crate::gateway::whose::Whose;
use crate::gateway::{forward, own, page, read};

/// The longest call of the reader.
const MAX_CALL: usize = 64 * 1024;

impl Service {
    /// Answers a request: by itself, or with the provider's reply.
    pub(crate) async fn answer(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let answer = self.answered(request, Instant::now()).await;
        answer.unwrap_or_else(|refusal| *refusal)
    }

    async fn answered(
        self: &Arc<Self>,
        request: Request<Incoming>,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let path = self.check(&request)?;
        if let Some(own) = own::path(&path) {
            return self.own(&own, request).await;
        }
        if self.has_own_key(&request, &path) {
            let message =
                "this key is for paths of this server alone, and no provider is to see it";
            return own::refused(StatusCode::NOT_FOUND, message);
        }
        let Some((upstream, rest)) = self.upstreams.route(&path, request.headers())? else {
            if request.method() == Method::HEAD && path == "/" {
                // Some clients check first that a server answers.
                return Ok(Response::new(body::empty()));
            }
            return own::refused(
                StatusCode::NOT_FOUND,
                "nothing tells which provider is meant: put the name of an upstream before the path, such as /openai/v1",
            );
        };
        // Of every level, so that each line tells its provider.
        let span = tracing::error_span!(
            "request",
            upstream = upstream.name(),
            status = tracing::field::Empty
        );
        let passed = self
            .pass(request, upstream, rest, begun)
            .instrument(span.clone());
        let response = passed.await.unwrap_or_else(|refusal| *refusal);
        span.record("status", response.status().as_u16());
        Ok(response)
    }

    /// Refuses requests that must not reach a provider. Returns the path with its query.
    fn check(&self, request: &Request<Incoming>) -> Result<String, Refusal> {
        let (headers, settings) = (request.headers(), &self.settings);
        if request.method() == Method::CONNECT {
            return own::refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "this server is not a proxy for other hosts: set its address as the base URL",
            );
        }
        let path = request.uri().path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        if !forward::is_plain_path(path) {
            return own::refused(
                StatusCode::BAD_REQUEST,
                "the path must begin with `/`, be encoded as URLs are, and must not hold `..`, however it is spelled",
            );
        }
        let host = own::host(headers);
        if headers.get_all(header::HOST).iter().count() > 1 {
            return own::refused(
                StatusCode::BAD_REQUEST,
                "the request has more than one host",
            );
        }
        let is_on_loopback = settings.listen.ip().is_loopback();
        if is_on_loopback && !offcut_mcp::http::is_own_host(host, &settings.hosts) {
            return own::refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this server is for its own machine: use 127.0.0.1, or add the name to `serve.hosts`",
            );
        }
        if settings.is_local() && is_from_afar(headers) {
            return own::refused(
                StatusCode::MISDIRECTED_REQUEST,
                "a proxy passes on what other machines send: set `serve.expose = true`, which needs `serve.tenant_key`",
            );
        }
        // Whoever follows a link to the page sees no figures yet.
        let may_look = is_look(request) && own::path(path).is_some_and(|own| page::is_for(&own));
        if !may_look && !self.is_from_own_page(headers, host) {
            return own::refused(
                StatusCode::FORBIDDEN,
                "web pages have no access to this server",
            );
        }
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return own::refused(
                StatusCode::NOT_IMPLEMENTED,
                "the only transfer encoding is chunked: compress with content-encoding",
            );
        }
        if own::asks_for_upgrade(headers) {
            return Err(Box::new(own::no_upgrade()));
        }
        Ok(path.to_owned())
    }

    /// Returns true if a request comes from no web page, or from one of this server. Browsers say so:
    /// in `origin` if the page could do harm, and newer ones in `sec-fetch-site` in any case.
    fn is_from_own_page(&self, headers: &HeaderMap, host: &str) -> bool {
        let is_own = |origin: &HeaderValue| {
            let origin: Option<Uri> = origin.to_str().ok().and_then(|origin| origin.parse().ok());
            let authority = origin.as_ref().and_then(Uri::authority);
            let scheme = origin.as_ref().and_then(Uri::scheme_str);
            matches!(scheme, Some("http" | "https"))
                && authority.is_some_and(|authority| {
                    offcut_mcp::http::is_own_host(authority.as_str(), &self.page_hosts)
                        && authority.as_str().eq_ignore_ascii_case(host)
                })
        };
        let is_near = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
        headers.get_all(header::ORIGIN).iter().all(is_own)
            && headers.get_all("sec-fetch-site").iter().all(is_near)
    }

    /// Returns true if a request bears the page's token, or a key of the plug, anywhere in its headers, its path or
    /// its query: clients of different providers send their key in different ways.
    fn has_own_key(&self, request: &Request<Incoming>, path: &str) -> bool {
        let headers = request.headers().values().map(HeaderValue::as_bytes);
        let mut texts = headers.chain([path.as_bytes()]);
        texts.any(|text| {
            let mut keys = self.plug.keys().chain(&self.token);
            keys.any(|key| key.is_in(text))
        })
    }

    /// Answers those who watch the server, on an address of its own.
    pub(crate) async fn monitor<B>(&self, request: &Request<B>) -> Response<Body> {
        let host = own::host(request.headers());
        let is_local = |address: SocketAddr| address.ip().is_loopback();
        let settings = &self.settings;
        if settings.metrics_listen.is_some_and(is_local)
            && !offcut_mcp::http::is_own_host(host, &settings.hosts)
        {
            let message = "use 127.0.0.1, or add the name to `serve.hosts`";
            return own::error(StatusCode::MISDIRECTED_REQUEST, message);
        }
        match request.uri().path() {
            path @ ("/healthz" | "/readyz" | "/metrics") => self.figure(path).await,
            _ => own::error(
                StatusCode::NOT_FOUND,
                "this address has /metrics, /healthz and /readyz",
            ),
        }
    }

    /// Answers `/healthz`, `/readyz` or `/metrics`.
    async fn figure(&self, path: &str) -> Response<Body> {
        match path {
            "/metrics" => {
                // It is in a metric of its own.
                _ = self.ready().await;
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                own::typed(StatusCode::OK, kind, self.metrics.text())
            }
            "/readyz" if self.ready().await.is_err() => own::error(
                StatusCode::SERVICE_UNAVAILABLE,
                "a store does not answer, or takes nothing",
            ),
            _ => own::typed(StatusCode::OK, "text/plain", "ok\n"),
        }
    }

    /// Answers what is asked of this server itself.
    async fn own(&self, path: &str, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let is_look = is_look(&request);
        let answer = match path {
            "/metrics" if self.settings.metrics_listen.is_some() => own::error(
                StatusCode::NOT_FOUND,
                "the metrics are at the address of `serve.metrics_listen`",
            ),
            "/healthz" | "/readyz" | "/metrics" => self.figure(path).await,
            "/v1/read" => return self.read(request).await,
            "/v1/tenant" => self.tenant(&request),
            _ if page::is_for(path) => {
                let (token, hosts) = (self.token.as_ref(), &self.page_hosts);
                return Ok(page::answer(path, &self.watch, token, hosts, &request));
            }
            _ if Plug::is_for(path) => {
                return self.answer_plug(path, request).await;
            }
            _ => {
                let message = "this server has no such path; a provider's needs the name of its upstream before it";
                own::error(StatusCode::NOT_FOUND, message)
            }
        };
        if is_look {
            return Ok(answer);
        }
        own::refused(StatusCode::METHOD_NOT_ALLOWED, "use GET")
    }

    /// Passes a request to its provider, and the reply back.
    async fn pass(
        self: &Arc<Self>,
        request: Request<Incoming>,
        upstream: &Upstream,
        rest: &str,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let exchange = Exchange::of(request.method(), rest);
        let (parts, body) = request.into_parts();
        let Ok(uri) = upstream.uri(rest) else {
            let message = "the path is not one that a URL can hold";
            return own::refused(StatusCode::BAD_REQUEST, message);
        };
        let client = self.client(&parts.headers, parts.uri.query());
        let mut parts = forward::head(parts, uri);
        if let Some(header) = &self.tenants.header {
            parts.headers.remove(header);
        }
        if let Some(exchange) = exchange {
            return self
                .pass_conversation(parts, body, exchange, upstream, client, begun)
                .await;
        }
        let (mut parts, mut payload) = (parts, Payload::Whole(Bytes::new()));
        if !body.is_end_stream() {
            if body.size_hint().exact().is_none() {
                // Without it, the body of a GET would not be sent.
                let chunked = HeaderValue::from_static("chunked");
                parts.headers.insert(header::TRANSFER_ENCODING, chunked);
            }
            payload = Payload::Stream(self.uploads.passed(body)?);
        }
        let on_usage = self.counting(upstream, None, Arc::default());
        self.sender.send(parts, payload, upstream, on_usage).await
    }

    /// The client of a request, by its headers and its query.
    fn client(&self, headers: &HeaderMap, query: Option<&str>) -> Client {
        let tenant = self.tenants.of(headers, query);
        let keeps_apart = self.tenants.key.is_some();
        Client {
            whose: Whose::of(&self.tenants, tenant.as_ref(), headers),
            tenant,
            credential: (!keeps_apart)
                .then(|| Credential::of(headers, query))
                .flatten(),
        }
    }

    /// The folder of the tenant that a request belongs to.
    fn tenant<B>(&self, request: &Request<B>) -> Response<Body> {
        let client = self.client(request.headers(), request.uri().query());
        let Some(tenant) = client.tenant else {
            let message = "send what tells tenants apart: the key, or the header that `serve.tenant_header` names";
            return own::error(StatusCode::UNAUTHORIZED, message);
        };
        let whole = self.reducer.any().session(tenant.name());
        let answer = json!({"tenant": tenant.name(), "folder": whole.prefix()});
        own::json(StatusCode::OK, &answer)
    }

    /// Reads stored content, or gives the reader's definitions.
    async fn read(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let reducer = &self.reducer;
        if request.method() == Method::GET {
            return Ok(read::definitions(reducer));
        }
        if request.method() != Method::POST {
            return own::refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "use GET for definitions and POST to read",
            );
        }
        let client = self.client(request.headers(), request.uri().query());
        let is_owner = own::bears(request.headers(), self.token.as_ref());
        let keeps_apart = self.tenants.key.is_some();
        let may_read = keeps_apart || is_owner || client.credential.is_some();
        let Some(tenant) = client.tenant.filter(|_| may_read) else {
            let message = "send the key that the conversation was sent with, since it tells whose content may be read; where there is none, the token of this server's page as `Authorization: Bearer TOKEN`";
            return own::refused(StatusCode::UNAUTHORIZED, message);
        };
        let read = self.uploads.read(request.into_body(), MAX_CALL);
        let Read::Whole(bytes, _) = read.await? else {
            let message = format!(
                "the body must be the arguments of one call, as JSON of up to {MAX_CALL} bytes"
            );
            return own::refused(StatusCode::PAYLOAD_TOO_LARGE, &message);
        };
        let Ok(call) = str::from_utf8(&bytes) else {
            return own::refused(StatusCode::BAD_REQUEST, "the body must be JSON");
        };
        let readable = match client.credential {
            Some(credential) if !is_owner => {
                let Ok(name) = self.readers.conversation(&credential, call) else {
                    let message = "no provider has answered that conversation with this key since this server started: send its next request first, or read with the token of this server's page";
                    return own::refused(StatusCode::FORBIDDEN, message);
                };
                reducer.of_conversation(&tenant, name.unwrap_or("none"))
            }
            _ => reducer.of_tenant(&tenant),
        };
        let answer = read::answer(&readable, call).await;
        self.metrics.add(Metric::Reads, &[], 1);
        Ok(answer)
    }
}

/// Returns true if a request only looks.
fn is_look<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Returns true if a proxy says that the client is on another machine.
fn is_from_afar(headers: &HeaderMap) -> bool {
    let addresses = ["x-forwarded-for", "x-real-ip"].into_iter();
    let mut addresses = addresses.flat_map(|name| forward::words(headers, name));
    addresses.any(|address| {
        let address = str::from_utf8(address).ok();
        let address = address.and_then(|address| address.parse::<IpAddr>().ok());
        address.is_some_and(|address| !address.to_canonical().is_loopback())
    })
}
