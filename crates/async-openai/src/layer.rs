//! A layer around a client's HTTP service, for loops that should stay untouched.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use offcut::format::{Messages, WireFormat};
use offcut::{ToolReduction, Turn};
use reqwest::Response;
use serde_json::Value;
use tower::{Layer, Service};

/// Clears old results in each outgoing request for a chat completion or a response. The loop's own
/// messages stay unchanged. Each request repeats the decisions of the previous one, so that the
/// provider's prompt cache holds.
///
/// One layer belongs to one conversation: give each conversation its own
/// [`session`](ToolReduction::session) and client. New results are not truncated, since only the
/// loop can do that. If hints name [`read_file_tool`](ToolReduction::read_file_tool), the loop must
/// offer it to the model. Put the layer outside of retries.
///
/// Bodies are always rewritten with their keys in a fixed order, so that a request begins with the
/// bytes of the previous one.
///
/// ```no_run
/// use async_openai::config::OpenAIConfig;
/// use async_openai::middleware::{ReqwestService, retry::OpenAIRetryLayer};
/// use offcut::{ToolReduction, backend::Memory};
/// use offcut_async_openai::ClearLayer;
/// use tower::Layer;
///
/// # fn make(client: async_openai::Client<OpenAIConfig>, http: reqwest::Client) -> Result<(), offcut::BuildError> {
/// let reduction = ToolReduction::recommended(Memory::new()).build()?;
/// let service = OpenAIRetryLayer::default().layer(ReqwestService::new(http));
/// let client = client.with_http_service(ClearLayer::new(reduction).layer(service));
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct ClearLayer {
    reduction: ToolReduction,
}

impl ClearLayer {
    /// Creates a layer that clears with `reduction`.
    #[must_use]
    pub fn new(reduction: ToolReduction) -> Self {
        Self { reduction }
    }
}

impl<S> Layer<S> for ClearLayer {
    type Service = ClearService<S>;

    fn layer(&self, inner: S) -> ClearService<S> {
        ClearService {
            reduction: self.reduction.clone(),
            inner,
        }
    }
}

/// The service of a [`ClearLayer`].
#[derive(Clone, Debug)]
pub struct ClearService<S> {
    reduction: ToolReduction,
    inner: S,
}

impl<S> Service<HttpRequestFactory> for ClearService<S>
where
    S: Service<HttpRequestFactory, Response = Response, Error = OpenAIError>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response;
    type Error = OpenAIError;
    type Future = Pin<Box<dyn Future<Output = Result<Response, OpenAIError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), OpenAIError>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: HttpRequestFactory) -> Self::Future {
        // The clone has not been polled, so the polled service is the one to call.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let reduction = self.reduction.clone();
        Box::pin(async move {
            let request = clear(&reduction, request).await?;
            inner.call(request).await
        })
    }
}

/// Returns the request with its conversation cleared; any other request unchanged.
async fn clear(
    reduction: &ToolReduction,
    request: HttpRequestFactory,
) -> Result<HttpRequestFactory, OpenAIError> {
    let built = request.build().await?;
    let format = match built.url().path() {
        path if path.ends_with("/chat/completions") => WireFormat::OpenAiChat,
        path if path.ends_with("/responses") => WireFormat::Responses,
        _ => return Ok(request),
    };
    let body = built.body().and_then(reqwest::Body::as_bytes);
    let Some(mut body) = body.and_then(|body| serde_json::from_slice::<Value>(body).ok()) else {
        return Ok(request);
    };
    let tools = body
        .get("tools")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    // An `input` may be a single text.
    let Some(messages) = WireFormat::messages(&mut body) else {
        return Ok(request);
    };
    let mut conversation = Messages::new(&format, messages);
    let mut turn = Turn {
        tools: &tools,
        ..Turn::new(&mut conversation)
    };
    reduction
        .clear_turn(&mut turn)
        .await
        .map_err(|error| OpenAIError::Boxed(error.into()))?;
    let body = body.to_string();
    Ok(HttpRequestFactory::new(move || {
        let (request, body) = (request.clone(), body.clone());
        async move {
            let mut request = request.build().await?;
            *request.body_mut() = Some(body.into());
            Ok(request)
        }
    }))
}
