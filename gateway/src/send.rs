//! Sends requests to providers.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use offcut::ErrorChain;
use tokio::time::timeout;

use crate::body::{Body, BoxError, ReadError};
use crate::client::{HttpClient, client};
use crate::error::GatewayError;
use crate::holdout::Group;
use crate::metrics::{Metric, Metrics};
use crate::own;
use crate::settings::ServeSettings;
use crate::upstream::Upstream;
use crate::usage::{Scan, Usage, Watched};

/// An answer that takes the place of the provider's.
pub(crate) type Refusal = Box<Response<Body>>;

/// Sends requests to providers, and counts their replies.
pub(crate) struct Sender {
    client: HttpClient,
    patience: Duration,
    metrics: Arc<Metrics>,
}

impl Sender {
    pub(crate) fn new(
        settings: &ServeSettings,
        metrics: Arc<Metrics>,
    ) -> Result<Self, GatewayError> {
        Ok(Self {
            client: client(settings)?,
            patience: settings.answer_time(),
            metrics,
        })
    }

    /// Sends a request, and returns the reply, which passes as it comes. The provider's usage counts
    /// for `group`.
    pub(crate) async fn send(
        &self,
        request: Request<Body>,
        upstream: &Upstream,
        group: Option<Group>,
    ) -> Result<Response<Body>, Refusal> {
        let answered = timeout(self.patience, self.client.request(request)).await;
        let response = match answered {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                if let Some(error) = of_client(&error) {
                    return Err(Box::new(own::not_read(error)));
                }
                self.count(upstream, 0);
                let error = ErrorChain(&error).to_string();
                tracing::warn!(error, "the provider did not answer");
                let name = upstream.name();
                let message = format!(
                    "the provider {name} did not answer: {error}: check the network and `serve.upstreams.{name}`"
                );
                return Err(Box::new(own::error(StatusCode::BAD_GATEWAY, &message)));
            }
            Err(_) => {
                self.count(upstream, 0);
                tracing::warn!("the provider did not begin its answer in time");
                let message = format!(
                    "the provider {} did not begin its answer in time: raise `serve.answer_seconds`, or try again",
                    upstream.name()
                );
                return Err(Box::new(own::error(StatusCode::GATEWAY_TIMEOUT, &message)));
            }
        };
        self.count(upstream, response.status().as_u16());
        let (mut parts, body) = response.into_parts();
        offcut_http::strip(&mut parts.headers);
        // The version belongs to the connection, and an agent's own is another one.
        parts.version = Version::HTTP_11;
        let scan = Scan::new(&parts.headers);
        let (metrics, name) = (self.metrics.clone(), upstream.name().to_owned());
        let on_end = Box::new(move |usage| count_tokens(&metrics, &name, group, usage));
        let body = Watched::new(body, scan, on_end);
        let body = body
            .map_err(|error| -> BoxError { error.into() })
            .boxed_unsync();
        Ok(Response::from_parts(parts, body))
    }

    fn count(&self, upstream: &Upstream, status: u16) {
        let labels = [
            ("upstream", upstream.name()),
            ("status", &status.to_string()),
        ];
        self.metrics.add(Metric::Replies, &labels, 1);
    }
}

/// The error of the client's own body, which ended a request to a provider.
fn of_client<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e ReadError> {
    let mut next = Some(error);
    while let Some(error) = next {
        let of_client = error.downcast_ref();
        if of_client.is_some() {
            return of_client;
        }
        next = error.source();
    }
    None
}

fn count_tokens(metrics: &Metrics, upstream: &str, group: Option<Group>, usage: Usage) {
    for (kind, tokens) in [
        ("fresh", usage.fresh),
        ("cached", usage.cached),
        ("written", usage.written),
    ] {
        if tokens > 0 {
            let mut labels = vec![("upstream", upstream), ("kind", kind)];
            labels.extend(group.map(|group| ("group", group.name())));
            metrics.add(Metric::ProviderTokens, &labels, tokens);
        }
    }
}
