//! Calls of gateways to the plug, and their answers.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use offcut::format::BodyError;

use crate::gateway::body::{Body, Read};
use crate::gateway::encoding::ContentEncoding;
use crate::gateway::metrics::Metric;
use crate::gateway::outcome::{self, Outcome};
use crate::gateway::own::{self, Refusal};
use crate::gateway::plug::{COMPRESS, PlugTenant, compressed, retrieve};
use crate::gateway::service::Service;
use crate::gateway::settings::OnFailure;

/// The plug's name in metrics, in place of an upstream's.
const NAME: &str = "plug";

impl Service {
    /// Answers a request for `path`, which is for the plug.
    pub(crate) async fn answer_plug(
        &self,
        path: &str,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refusal> {
        if self.plug.tenants.is_empty() {
            let message = "the settings have no `serve.compress_keys`";
            return own::refused(StatusCode::NOT_FOUND, message);
        }
        let mut tenants = self.plug.tenants.iter();
        let key = own::bearer(request.headers());
        let Some(tenant) = key.and_then(|key| tenants.find(|one| one.credential.is(key))) else {
            let message = "send one of `serve.compress_keys` as `Authorization: Bearer KEY`";
            return own::refused(StatusCode::UNAUTHORIZED, message);
        };
        let is_compress = path == COMPRESS;
        match (request.method(), is_compress) {
            (&Method::POST, true) => {
                let max = self.settings.max_body_bytes();
                let read = self.uploads.read(request.into_body(), max).await?;
                let Read::Whole(bytes, _room) = read else {
                    return too_long();
                };
                answer_compress(self, tenant.clone(), &bytes).await
            }
            (&Method::GET, false) => {
                self.metrics.add(Metric::Reads, &[], 1);
                self.watch.state().read(&tenant.name);
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
    if look.sent.is_some() {
        service.count_bytes(look.sizes());
    }
    let body = look.text.take().unwrap_or_default();
    let record = service.watch.state().plug(&name, &look);
    service.watch.tell(&record);
    let answer = own::typed(StatusCode::OK, "application/json", body);
    Ok(outcome::marked(answer, outcome))
}

fn too_long<T>() -> Result<T, Refusal> {
    let message = "the body is over `serve.max_body`, or would take too much memory";
    own::refused(StatusCode::PAYLOAD_TOO_LARGE, message)
}
