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
use http::{Response, StatusCode};
use offcut::Settings;
use offcut::format::{BodyError, RequestBody, WireFormat};
use serde_json::json;
use tokio::time::Instant;

use crate::gateway::body::Body;
use crate::gateway::breaker::Open;
use crate::gateway::error::GatewayError;
use crate::gateway::jobs::memory_for;
use crate::gateway::own;
use crate::gateway::secret::Secret;
use crate::gateway::settings::ServeSettings;
use crate::gateway::watch::Look;
use compress::compress;
pub(crate) use tenant::{PlugTenant, check_keys};

/// The tenants of the plug.
pub(crate) struct Plug {
    pub(crate) tenants: Vec<Arc<PlugTenant>>,
}

pub(crate) const COMPRESS: &str = "/v1/compress";
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
}

/// Shortens the results in a body, as far as there is time.
pub(crate) async fn compressed(
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
pub(crate) async fn retrieve(tenant: &PlugTenant, path: &str, uri: &http::Uri) -> Response<Body> {
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
