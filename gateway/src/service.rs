//! One request on its way to its provider, and the reply on its way back.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body as _, Incoming};
use tracing::Instrument;

use crate::body::{self, Body, Read};
use crate::error::GatewayError;
use crate::exchange::Exchange;
use crate::metrics::{Metric, Metrics};
use crate::page::Token;
use crate::pass::Passage;
use crate::plug::Plug;
use crate::reducer::Reducer;
use crate::send::{Payload, Refusal, Sender};
use crate::settings::ServeSettings;
use crate::tenant::Tenants;
use crate::upstream::{Upstream, Upstreams};
use crate::watch::Watch;
use crate::{forward, own, page, read};

/// The longest call of the reader.
const MAX_CALL: usize = 64 * 1024;

/// The parts that all requests share.
pub(crate) struct Service {
    settings: ServeSettings,
    upstreams: Upstreams,
    passage: Passage,
    plug: Option<Plug>,
    pub(crate) watch: Arc<Watch>,
    token: Option<Token>,
    /// Names by which the page may be asked for, besides those of loopback.
    page_hosts: Vec<String>,
    pub(crate) metrics: Arc<Metrics>,
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Service")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Service {
    pub(crate) fn new(
        settings: ServeSettings,
        reducer: Option<Reducer>,
        plug: Option<Plug>,
    ) -> Result<Self, GatewayError> {
        let upstreams = Upstreams::new(&settings)?;
        let metrics = Arc::<Metrics>::default();
        let sender = Sender::new(&settings, metrics.clone())?;
        let tenants = match reducer {
            Some(_) => Tenants::new(&settings)?,
            None => Tenants::User,
        };
        let watch = Arc::<Watch>::default();
        let mut page_hosts = settings.hosts.clone();
        // A name of somebody else that leads here is not an address.
        page_hosts.push(settings.listen.ip().to_string());
        Ok(Self {
            passage: Passage::new(
                &settings,
                sender,
                reducer,
                tenants,
                metrics.clone(),
                watch.clone(),
            ),
            watch,
            token: Token::new(),
            page_hosts,
            plug,
            upstreams,
            metrics,
            settings,
        })
    }

    /// The path of the live page, with the token that its figures need.
    pub(crate) fn page(&self) -> Option<String> {
        let token = self.token.as_ref()?.text();
        Some(format!("{}#{token}", page::PATH))
    }

    /// Notes on what will not be done, and why.
    pub(crate) fn notes(&self) -> Vec<String> {
        let Some(reducer) = &self.passage.reducer else {
            return vec!["requests are counted and not changed".to_owned()];
        };
        let mut notes = Vec::new();
        if self.settings.holdout > 0.0 {
            let share = (self.settings.holdout * 10_000.0).round() / 100.0;
            notes.push(format!(
                "{share} % of conversations are left alone, for comparison (`holdout`)"
            ));
        }
        if self.settings.cut_without_reader {
            notes.push("results are replaced even where the model can't read them back".to_owned());
            return notes;
        }
        if reducer.shares_machine() {
            return notes;
        }
        let reader = reducer.any().settings().read_file_tool_name.clone();
        let reader = reader.unwrap_or_else(|| "read_file".to_owned());
        notes.push(format!(
            "agents can't open stored content as files here: only requests that have the tool {reader} are reduced (GET /v1/read gives its definition), and all others pass unchanged"
        ));
        notes
    }

    /// Answers a request: by itself, or with the provider's reply.
    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let begun = Instant::now();
        let path = match self.check(&request) {
            Ok(path) => path,
            Err(refusal) => return *refusal,
        };
        if let Some(answer) = self.own(request.method(), &path) {
            return answer;
        }
        if path.split('?').next() == Some("/v1/read") {
            return self.read(request).await;
        }
        if page::is_for(&path) {
            return page::answer(&self.watch, self.token.as_ref(), &self.page_hosts, &request);
        }
        if Plug::is_for(&path) {
            return match &self.plug {
                Some(plug) => plug.answer(&self.metrics, &self.watch, request).await,
                // No provider is to see what was meant for this server.
                None => own::error(
                    StatusCode::NOT_FOUND,
                    "the settings have no `serve.compress_keys`",
                ),
            };
        }
        let Some((upstream, rest)) = self.upstreams.route(&path, request.headers()) else {
            if request.method() == Method::HEAD && path == "/" {
                // Some clients check first that a server answers.
                return Response::new(body::empty());
            }
            return own::error(
                StatusCode::NOT_FOUND,
                "nothing tells which provider is meant: put the name of an upstream before the path, such as /openai/v1",
            );
        };
        let span = tracing::info_span!(
            "request",
            upstream = upstream.name(),
            status = tracing::field::Empty
        );
        let answered = self
            .pass(request, upstream, rest, begun)
            .instrument(span.clone());
        let response = answered.await.unwrap_or_else(|refusal| *refusal);
        span.record("status", response.status().as_u16());
        response
    }

    /// Refuses requests that must not reach a provider. Returns the path with its query.
    fn check(&self, request: &Request<Incoming>) -> Result<String, Refusal> {
        let headers = request.headers();
        let refused = |status, message| Err(Box::new(own::error(status, message)));
        if request.method() == Method::CONNECT {
            return refused(
                StatusCode::METHOD_NOT_ALLOWED,
                "this server is not a proxy for other hosts: set its address as the base URL",
            );
        }
        let path = request
            .uri()
            .path_and_query()
            .map_or("/", |path| path.as_str());
        if !forward::is_plain_path(path) {
            return refused(
                StatusCode::BAD_REQUEST,
                "the path must begin with `/` and must not hold `..`",
            );
        }
        let hosts: Vec<_> = headers.get_all(header::HOST).iter().collect();
        let host = hosts
            .first()
            .and_then(|host| host.to_str().ok())
            .unwrap_or_default();
        if hosts.len() > 1 {
            return refused(
                StatusCode::BAD_REQUEST,
                "the request has more than one host",
            );
        }
        if self.settings.listen.ip().is_loopback()
            && !offcut_http::is_own_host(host, &self.settings.hosts)
        {
            return refused(
                StatusCode::MISDIRECTED_REQUEST,
                "this server is for its own machine: use 127.0.0.1, or add the name to `serve.hosts`",
            );
        }
        let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
        if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return refused(
                StatusCode::NOT_IMPLEMENTED,
                "the only transfer encoding is chunked: compress with content-encoding",
            );
        }
        if own::asks_for_upgrade(headers) {
            return Err(Box::new(own::no_upgrade()));
        }
        Ok(path.to_owned())
    }

    /// Answers what is asked of this server itself.
    fn own(&self, method: &Method, path: &str) -> Option<Response<Body>> {
        let answer = match path {
            "/healthz" => own::typed(StatusCode::OK, "text/plain", "ok\n".to_owned()),
            "/metrics" => own::typed(
                StatusCode::OK,
                "text/plain; version=0.0.4; charset=utf-8",
                self.metrics.text(),
            ),
            _ => return None,
        };
        if method == Method::GET || method == Method::HEAD {
            return Some(answer);
        }
        Some(own::error(StatusCode::METHOD_NOT_ALLOWED, "use GET"))
    }

    /// Passes a request to its provider, and the reply back.
    async fn pass(
        &self,
        request: Request<Incoming>,
        upstream: &Upstream,
        rest: &str,
        begun: Instant,
    ) -> Result<Response<Body>, Refusal> {
        let exchange = Exchange::of(request.method(), rest);
        let (parts, body) = request.into_parts();
        let uri = upstream.uri(rest).map_err(|_| {
            Box::new(own::error(
                StatusCode::BAD_REQUEST,
                "the path is not one that a URL can hold",
            ))
        })?;
        let parts = forward::head(parts, uri);
        if let Some(exchange) = exchange {
            return self
                .passage
                .pass(parts, body, exchange, upstream, begun)
                .await;
        }
        let (mut parts, mut payload) = (parts, Payload::Whole(Bytes::new()));
        if !body.is_end_stream() {
            if body.size_hint().exact().is_none() {
                // Without it, the body of a GET would not be sent.
                let chunked = HeaderValue::from_static("chunked");
                parts.headers.insert(header::TRANSFER_ENCODING, chunked);
            }
            payload = Payload::Stream(body::passed(body, self.settings.body_pause()));
        }
        self.passage
            .sender
            .send(parts, payload, upstream, None)
            .await
    }

    /// Reads stored content, or gives the reader's definitions.
    async fn read(&self, request: Request<Incoming>) -> Response<Body> {
        let Some(reducer) = &self.passage.reducer else {
            return own::error(StatusCode::NOT_FOUND, "this server stores nothing");
        };
        if request.method() == Method::GET {
            return read::definitions(reducer);
        }
        if request.method() != Method::POST {
            return own::error(
                StatusCode::METHOD_NOT_ALLOWED,
                "use GET for definitions and POST to read",
            );
        }
        let Some(tenant) = self
            .passage
            .tenants
            .of(request.headers(), request.uri().query())
        else {
            let message = "send the key that the conversation was sent with, since it tells whose content may be read";
            return own::error(StatusCode::UNAUTHORIZED, message);
        };
        let read = body::read(request.into_body(), MAX_CALL, self.settings.body_pause()).await;
        let arguments = match read {
            Ok(Read::Whole(bytes)) => String::from_utf8(bytes.into()),
            Ok(Read::TooLong(_)) | Err(_) => {
                return own::error(
                    StatusCode::BAD_REQUEST,
                    "the body must be the arguments of one call, as JSON",
                );
            }
        };
        let outcome = match &arguments {
            Ok(arguments) => read::answer(reducer, &tenant, arguments).await,
            Err(_) => own::error(StatusCode::BAD_REQUEST, "the body must be JSON"),
        };
        self.metrics.add(Metric::Reads, &[], 1);
        outcome
    }
}
