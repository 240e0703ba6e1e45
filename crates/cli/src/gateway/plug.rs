//! The plug: `POST /v1/compress` and `GET /v1/retrieve/{hash}`, as LiteLLM's guardrail `headroom`
//! calls them. A gateway that already stands between agents and providers has long results shortened
//! here, and gives the model a tool that reads them back.
//!
//! The text shown is a function of a result's text, its tenant, the settings and the day: no
//! conversation is remembered, so any process gives the same bytes.

mod compress;
mod query;
mod results;
mod store;
mod tenant;

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use offcut::Settings;
use offcut::format::{BodyError, RequestBody, WireFormat};
use serde_json::json;
use tokio::time::Instant;

use crate::gateway::body::{Body, Read};
use crate::gateway::breaker::Open;
use crate::gateway::encoding::ContentEncoding;
use crate::gateway::error::GatewayError;
use crate::gateway::jobs::memory_for;
use crate::gateway::metrics::Metric;
use crate::gateway::outcome::{self, Outcome};
use crate::gateway::own::{self, Refusal};

use crate::gateway::secret::Secret;
use crate::gateway::service::Service;
use crate::gateway::settings::{OnFailure, ServeSettings};
use crate::gateway::watch::Look;
use compress::compress;
use tenant::PlugTenant;
pub(crate) use tenant::check_keys;

/// Answers the calls of gateways.
pub(crate) struct Plug {
    tenants: Vec<Arc<PlugTenant>>,
}

/// The plug's name in metrics, in place of an upstream's.
const NAME: &str = "plug";
const COMPRESS: &str = "/v1/compress";
const RETRIEVE: &str = "/v1/retrieve/";

impl Plug {
    /// Prepares the plug, whose tenants have the credentials of the settings.
    ///
    /// # Errors
    ///
    /// A name or a credential can't be used, or the reduction can't be built.
    pub(crate) fn new(
        serve: &ServeSettings,
        settings: &Settings,
        open: &Open<'_>,
    ) -> Result<Self, GatewayError> {
        check_keys(&serve.compress_keys)?;
        let keys = serve.compress_keys.iter();
        let tenants =
            keys.map(|(name, key)| PlugTenant::new(name, key, settings, open).map(Arc::new));
        let tenants = tenants.collect::<Result<_, _>>()?;
        Ok(Self { tenants })
    }

    /// Returns true if a path of this server is for the plug.
    pub(crate) fn is_for(path: &str) -> bool {
        path == COMPRESS || path.starts_with(RETRIEVE)
    }

    /// The plug's keys.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Secret> {
        self.tenants.iter().map(|tenant| &tenant.credential)
    }

    /// Answers a request for `path`, which is for the plug.
    pub(crate) async fn answer(
        &self,
        path: &str,
        service: &Service,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        if self.tenants.is_empty() {
            let message = "the settings have no `serve.compress_keys`";
            return own::refused(StatusCode::NOT_FOUND, message);
        }
        let mut tenants = self.tenants.iter();
        let key = own::bearer(request.headers());
        let Some(tenant) = key.and_then(|key| tenants.find(|one| one.credential.is(key))) else {
            let message = "send one of `serve.compress_keys` as `Authorization: Bearer KEY`";
            return own::refused(StatusCode::UNAUTHORIZED, message);
        };
        let is_compress = path == COMPRESS;
        match (request.method(), is_compress) {
            (&Method::POST, true) => {
                let max = service.settings.max_body_bytes();
                let read = service.uploads.read(request.into_body(), max).await?;
                let Read::Whole(bytes, _room) = read else {
                    return too_long();
                };
                answer_compress(service, tenant.clone(), &bytes).await
            }
            (&Method::GET, false) => {
                service.metrics.add(Metric::Reads, &[], 1);
                service.watch.state().read(&tenant.name);
                Ok(retrieve(tenant, path, request.uri()).await)
            }
            (_, true) => own::refused(StatusCode::METHOD_NOT_ALLOWED, "use POST"),
            (_, false) => own::refused(StatusCode::METHOD_NOT_ALLOWED, "use GET"),
        }
    }
}

/// Shortens the results in a list of messages.
async fn answer_compress(
    service: &Service,
    tenant: Arc<PlugTenant>,
    bytes: &Bytes,
) -> Result<Response<Body>, Refusal> {
    let name = tenant.name.clone();
    let work = move |text, deadline| compressed(tenant, text, deadline);
    let work = service.jobs.run(bytes, ContentEncoding::Identity, work);
    let mut look = match work.await {
        Ok(Ok(look)) => look,
        Ok(Err(BodyError::TooDense)) => return too_long(),
        Ok(Err(_)) => {
            let message =
                "the body must be `{\"messages\": […]}`, in the format of chat completions";
            return own::refused(StatusCode::BAD_REQUEST, message);
        }
        Err(_) => {
            let message = "the messages were not reduced in time: try again";
            return own::refused(StatusCode::SERVICE_UNAVAILABLE, message);
        }
    };
    let metrics = &service.metrics;
    let refused = look.outcome.reason().map(Outcome::Refused);
    let refused = refused.filter(|_| service.settings.on_failure == OnFailure::Refuse);
    let outcome = refused.unwrap_or(look.outcome);
    let labels = [("upstream", NAME), ("outcome", outcome.name())];
    metrics.add(Metric::Requests, &labels, 1);
    if let Some(reason) = outcome.reason() {
        metrics.add(Metric::Unreduced, &[("reason", reason.name())], 1);
        tracing::warn!(
            reason = reason.name(),
            "a call of the plug could not reduce all"
        );
    }
    if refused.is_some() {
        let message = "the messages could not be reduced, and `serve.on_failure` is `refuse`: see the server's log";
        let answer = own::error(StatusCode::SERVICE_UNAVAILABLE, message);
        return Ok(outcome::marked(answer, outcome));
    }
    service.count_bytes(&look);
    let body = look.text.take().unwrap_or_default();
    let record = service.watch.state().plug(&name, look);
    service.watch.tell(&record);
    let answer = own::typed(StatusCode::OK, "application/json", body);
    Ok(outcome::marked(answer, outcome))
}

fn too_long<T>() -> Result<T, Refusal> {
    let message = "the body is over `serve.max_body`, or would take too much memory";
    own::refused(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Shortens the results in a body, as far as there is time.
async fn compressed(
    tenant: Arc<PlugTenant>,
    text: Bytes,
    deadline: Instant,
) -> Result<Look, BodyError> {
    let text = String::from_utf8(text.into()).map_err(|_| BodyError::NoMessages)?;
    let memory = memory_for(text.len());
    let body = RequestBody::parse_within(text, memory)?;
    if !is_chat(body.format()) {
        return Err(BodyError::NoMessages);
    }
    Ok(compress(&tenant, body, deadline).await)
}

/// Returns true for messages in the format of chat completions, or in Anthropic's, from which plain
/// ones can't be told. A list without messages has no format.
fn is_chat(format: Option<WireFormat>) -> bool {
    format.is_none_or(|format| matches!(format, WireFormat::OpenAiChat | WireFormat::Anthropic))
}

/// Reads back what a hash stands for: all of it, or the lines that a query is about.
async fn retrieve(tenant: &PlugTenant, path: &str, uri: &http::Uri) -> Response<Body> {
    let hash = path.strip_prefix(RETRIEVE).unwrap_or_default();
    match tenant.read(hash).await {
        Some(Ok(original)) => {
            let query = uri.query().and_then(query::of);
            let shown = query.and_then(|query| query::lines(&original, &query));
            let shown = shown.as_ref().unwrap_or(&original);
            let body = json!({"hash": hash, "original_content": shown});
            own::json(StatusCode::OK, &body)
        }
        Some(Err(())) => {
            let message = "the store failed: try again, and see the server's log";
            own::error(StatusCode::BAD_GATEWAY, message)
        }
        None => own::error(
            StatusCode::NOT_FOUND,
            "nothing of this hash is stored for this credential",
        ),
    }
}
