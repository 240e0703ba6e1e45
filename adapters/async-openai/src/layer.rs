//! A layer around a client's HTTP service, for loops that nobody wants to touch.

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

/// Clears old results in each request for a chat completion or a response, on its way out. The loop
/// keeps its messages as they were; each request repeats what was decided for the one before, so
/// that the provider's prompt cache holds.
///
/// One layer belongs to one conversation: give each a [`session`](ToolReduction::session) and a
/// client of its own. Results are not truncated as they come, which only the loop can do, and the
/// loop has to offer the model [`read_file_tool`](ToolReduction::read_file_tool), if hints name it.
/// Put the layer outside of retries.
///
/// Bodies are written anew in any case, their keys in one order, so that a request begins with the
/// bytes of the one before.
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
    /// Clears as `reduction` says.
    #[must_use]
    pub fn new(reduction: ToolReduction) -> Self {
        Self { reduction }
    }
}

impl<S> Layer<S> for ClearLayer {
    type Service = Clearing<S>;

    fn layer(&self, inner: S) -> Clearing<S> {
        Clearing {
            reduction: self.reduction.clone(),
            inner,
        }
    }
}

/// The service of a [`ClearLayer`].
#[derive(Clone, Debug)]
pub struct Clearing<S> {
    reduction: ToolReduction,
    inner: S,
}

impl<S> Service<HttpRequestFactory> for Clearing<S>
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
        // The service that was polled is the one that is called; the clone has not been.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let reduction = self.reduction.clone();
        Box::pin(async move {
            let request = clear(&reduction, request).await?;
            inner.call(request).await
        })
    }
}

/// The request with its conversation cleared; anything else as it is.
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
    // An `input` may be one text.
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
