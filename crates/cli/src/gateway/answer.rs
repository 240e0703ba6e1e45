//! Requests as they come in: refused, answered by the server itself, or passed to a provider.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use offcut::agent::Tool;
use offcut::format::{BodyError, LoopFormat, WireFormat};
use offcut::{Part, ToolCall, ToolReduction};
use offcut_mcp::http::{is_from_own_page, is_own_host};
use serde_json::{Map, Value, json};
use tokio::time::Instant;
use tracing::Instrument;

use crate::gateway::body::{self, Body, Read};
use crate::gateway::encoding::ContentEncoding;
use crate::gateway::metrics::Metric;
use crate::gateway::own::{self, Denial, Refusal};
use crate::gateway::plug::compressed;
use crate::gateway::reducer::Exchange;
use crate::gateway::send::{self, Payload};
use crate::gateway::service::Service;
use crate::gateway::upstream::Upstream;
use crate::gateway::{outcome, page};

/// The longest call of the reader.
const MAX_CALL: usize = 64 * 1024;

/// The plug's name in metrics, in place of an upstream's.
const NAME: &str = "plug";

/// The text for a call that reads a conversation which no provider has answered with its key.
const NOT_ANSWERED: &str = "This can't be read yet: since the server started, no provider has answered its conversation with this key. Call once more in your next message. If you get this answer again, do without it.";

const COMPRESS: &str = "/v1/compress";
const RETRIEVE: &str = "/v1/retrieve/";

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
            return Err(Denial::OwnKey.into());
        }
        let Some((upstream, rest)) = self.upstreams.route(&path, request.headers())? else {
            if request.method() == Method::HEAD && path == "/" {
                // Some clients check first that a server answers.
                return Ok(Response::new(body::empty()));
            }
            return Err(Denial::NoUpstream.into());
        };
        // Of every level, so that each line tells its provider and, where content is kept, its tenant's folder.
        let span = tracing::error_span!(
            "request",
            upstream = upstream.name,
            tenant = tracing::field::Empty,
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
            return Err(Denial::Proxy.into());
        }
        let path = request.uri().path_and_query();
        let path = path.map_or("/", |path| path.as_str());
        if !own::is_plain_path(path) {
            return Err(Denial::Path.into());
        }
        let host = own::host(headers);
        if headers.get_all(header::HOST).iter().count() > 1 {
            return Err(Denial::Hosts.into());
        }
        let is_on_loopback = settings.listen.ip().is_loopback();
        if is_on_loopback && !is_own_host(host, &settings.hosts) {
            return Err(Denial::OtherHost.into());
        }
        if settings.is_local() && is_from_afar(headers) {
            return Err(Denial::FromAfar.into());
        }
        // Whoever follows a link to the page sees no figures yet.
        let may_look = is_look(request) && own::path(path).is_some_and(|own| page::is_for(&own));
        // A page elsewhere could have bound its name to this address.
        let has_page = !headers.contains_key(header::ORIGIN) || is_own_host(host, &self.page_hosts);
        if !(may_look || has_page && is_from_own_page(headers, host)) {
            return Err(Denial::WebPage.into());
        }
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return Err(Denial::TransferCoding.into());
        }
        if own::asks_for_upgrade(headers) {
            return Err(Box::new(own::no_upgrade()));
        }
        Ok(path.to_owned())
    }

    /// Returns true if a request bears the page's token, or a key of the plug, anywhere in its headers, its path or
    /// its query: clients of different providers send their key in different ways.
    fn has_own_key(&self, request: &Request<Incoming>, path: &str) -> bool {
        let headers = request.headers().values().map(HeaderValue::as_bytes);
        let mut texts = headers.chain([path.as_bytes()]);
        texts.any(|text| {
            let keys = self.plug.iter().map(|one| &one.credential);
            keys.chain(&self.token).any(|key| key.is_in(text))
        })
    }

    /// Answers those who watch the server, on an address of its own.
    pub(crate) async fn monitor<B>(&self, request: &Request<B>) -> Response<Body> {
        let (host, settings) = (own::host(request.headers()), &self.settings);
        let is_local = |address: SocketAddr| address.ip().is_loopback();
        if settings.metrics_listen.is_some_and(is_local) && !is_own_host(host, &settings.hosts) {
            return Denial::OtherHost.answer();
        }
        match request.uri().path() {
            path @ ("/healthz" | "/readyz" | "/metrics") => self.figure(path).await,
            _ => Denial::MetricsOnly.answer(),
        }
    }

    /// Answers `/healthz`, `/readyz` or `/metrics`.
    async fn figure(&self, path: &str) -> Response<Body> {
        match path {
            "/metrics" => {
                // It is in a metric of its own.
                _ = self.ready().await;
                self.watch.state().write(&self.metrics);
                let open = self.settings.places() - self.places.available_permits();
                self.metrics.set(Metric::Connections, &[], open as u64);
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                own::typed(StatusCode::OK, kind, self.metrics.text())
            }
            "/readyz" if self.ready().await.is_err() => Denial::NotReady.answer(),
            _ => own::typed(StatusCode::OK, "text/plain", "ok\n"),
        }
    }

    /// Answers what is asked of this server itself.
    async fn own(&self, path: &str, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        match path {
            "/v1/read" => self.read(request).await,
            _ if path == COMPRESS || path.starts_with(RETRIEVE) => {
                self.answer_plug(path, request).await
            }
            _ if page::is_for(path) => Ok(self.page(path, &request)),
            _ if !is_look(&request) => Err(Denial::UseGet.into()),
            "/metrics" if self.settings.metrics_listen.is_some() => {
                Err(Denial::MetricsElsewhere.into())
            }
            "/healthz" | "/readyz" | "/metrics" => Ok(self.figure(path).await),
            "/v1/tenant" => self.tenant(&request),
            _ => Err(Denial::NoPath.into()),
        }
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
            return Err(Denial::NoUrl.into());
        };
        let client = self.tenants.client(&parts.headers, parts.uri.query());
        let mut parts = send::head(parts, uri);
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

    /// The folder of the tenant that a request belongs to.
    fn tenant<B>(&self, request: &Request<B>) -> Result<Response<Body>, Refusal> {
        let query = request.uri().query();
        let client = self.tenants.client(request.headers(), query);
        let Some(tenant) = client.tenant else {
            return Err(Denial::NoTenant.into());
        };
        let whole = self.reducer.any().session(&tenant);
        let answer = json!({"tenant": tenant, "folder": whole.prefix()});
        Ok(own::json(StatusCode::OK, &answer))
    }

    /// Reads stored content, or gives the reader's definitions.
    async fn read(&self, request: Request<Incoming>) -> Result<Response<Body>, Refusal> {
        let reducer = &self.reducer;
        if request.method() == Method::GET {
            return Ok(definitions(reducer.any()));
        }
        if request.method() != Method::POST {
            return Err(Denial::UsePost.into());
        }
        let query = request.uri().query();
        let client = self.tenants.client(request.headers(), query);
        let is_owner = own::bears(request.headers(), self.token.as_ref());
        let keeps_apart = self.tenants.key.is_some();
        let may_read = keeps_apart || is_owner || client.credential.is_some();
        let Some(tenant) = client.tenant.filter(|_| may_read) else {
            return Err(Denial::NoKey.into());
        };
        let read = self.uploads.read(request.into_body(), MAX_CALL);
        let Read::Whole(bytes, _) = read.await? else {
            return Err(Denial::LongCall.into());
        };
        let Ok(call) = str::from_utf8(&bytes) else {
            return Err(Denial::NotJson.into());
        };
        let readable = match client.credential {
            Some(credential) if !is_owner => {
                let Ok(name) = self.readers.conversation(&credential, call) else {
                    // For the model, whose next message lets it read on after a restart.
                    let answer = json!({"text": NOT_ANSWERED, "is_error": true});
                    return Ok(own::json(StatusCode::OK, &answer));
                };
                reducer.of_conversation(&tenant, name.unwrap_or("none"))
            }
            _ => reducer.of_tenant(&tenant),
        };
        Ok(own::json(StatusCode::OK, &page_of(&readable, call).await))
    }

    /// Answers a gateway that calls the plug: its `path` is [`COMPRESS`], or begins with [`RETRIEVE`].
    async fn answer_plug(
        &self,
        path: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        if self.plug.is_empty() {
            return Err(Denial::NoPlug.into());
        }
        let key = own::bearer(request.headers());
        let mut tenants = self.plug.iter();
        let Some(tenant) = key.and_then(|key| tenants.find(|one| one.credential.is(key))) else {
            return Err(Denial::PlugKey.into());
        };
        if let Some(hash) = path.strip_prefix(RETRIEVE) {
            if request.method() != Method::GET {
                return Err(Denial::UseGet.into());
            }
            self.watch.state().read(&tenant.row());
            return Ok(tenant.retrieve(hash, request.uri().query()).await);
        }
        if request.method() != Method::POST {
            return Err(Denial::UsePost.into());
        }
        let begun = std::time::Instant::now();
        let max = self.settings.max_body_bytes();
        let Read::Whole(bytes, _room) = self.uploads.read(request.into_body(), max).await? else {
            return Err(Denial::LongBody.into());
        };
        let own_tenant = tenant.clone();
        let work = move |text, deadline| compressed(own_tenant, text, deadline);
        let work = self.jobs.run(&bytes, ContentEncoding::Identity, work);
        let mut look = match work.await {
            Ok(Ok(look)) => look,
            Ok(Err(BodyError::TooDense)) => return Err(Denial::LongBody.into()),
            Ok(Err(_)) => return Err(Denial::NotMessages.into()),
            Err(_) => return Err(Denial::NotReduced.into()),
        };
        let noted = self.note(&mut look.outcome);
        self.count(NAME, look.outcome);
        noted?;
        self.watch.call(&tenant.row(), &look, begun);
        let body = look.text.take().unwrap_or_default();
        let answer = own::typed(StatusCode::OK, "application/json", body);
        Ok(outcome::marked(answer, look.outcome))
    }
}

/// Returns true if a request only looks.
fn is_look<B>(request: &Request<B>) -> bool {
    matches!(*request.method(), Method::GET | Method::HEAD)
}

/// Returns true if a proxy says that the client is on another machine.
fn is_from_afar(headers: &HeaderMap) -> bool {
    let addresses = ["x-forwarded-for", "x-real-ip"].into_iter();
    let mut addresses = addresses.flat_map(|name| send::words(headers, name));
    addresses.any(|address| {
        let address = str::from_utf8(address).ok();
        let address = address.and_then(|address| address.parse::<IpAddr>().ok());
        address.is_some_and(|address| !address.to_canonical().is_loopback())
    })
}

/// The answer to a call of the reader of `reduction`. A mistake of the model is in it, marked as an error.
async fn page_of(reduction: &ToolReduction, arguments: &str) -> Value {
    let reader = reduction.read_file_tool();
    let call = ToolCall::new("", reader.definition().name, arguments);
    match reader.call(&call).await {
        Ok(page) => {
            let (parts, _) = page.into_parts().await;
            let texts = parts.iter().map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Json(value) => value.to_string(),
                _ => "(this is not text)".to_owned(),
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            json!({"text": text, "is_error": false})
        }
        Err(error) => json!({"text": error.to_string(), "is_error": true}),
    }
}

/// The reader's definition for the tools of a request, by protocol.
fn definitions(reduction: &ToolReduction) -> Response<Body> {
    let reader = reduction.read_file_tool();
    let formats = WireFormat::ALL.into_iter();
    let definitions: Map<String, Value> = formats
        .map(|format| (format.name().to_owned(), format.tool(&reader)))
        .collect();
    own::json(StatusCode::OK, &definitions.into())
}
