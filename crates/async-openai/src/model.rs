//! A chat model at any OpenAI-compatible endpoint.

mod answer;
mod error;
mod request;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_openai::Client;
use async_openai::config::{Config, OpenAIConfig};
use async_trait::async_trait;
use futures_util::StreamExt;
use offcut::agent::{ChatModel, ModelError, ModelReply, ModelRequest};
use serde_json::{Map, Value, json};

use answer::{ArrivingAnswer, OnText};

pub use error::ModelSetupError;

/// A model for [`offcut::agent::Agent`], at any endpoint compatible with OpenAI's chat completions.
///
/// [`async_openai`] retries rate limits, server errors and refused connections three times. It
/// waits as long as the endpoint asks, otherwise 100 ms, doubled each time. The endpoint's count of
/// input tokens is passed on, and [`ToolReduction`](offcut::ToolReduction) counts from it.
///
/// Messages are sent as [`offcut::format::Message`] holds them. Images in results, which tool
/// messages of the API can't hold, follow in a user message. The model's thoughts are not kept.
///
/// # Default
///
/// - whole answers; streamed ones with [`on_text`](Self::on_text)
/// - no generation options except those set with [`with`](Self::with)
///
/// ```no_run
/// use offcut::agent::Agent;
/// use offcut::backend::Memory;
/// use offcut::format::Message;
/// use offcut::ToolReduction;
/// use offcut_async_openai::OpenAiChatModel;
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let reduction = ToolReduction::recommended(Memory::new()).build()?;
/// let agent = Agent::builder(OpenAiChatModel::from_env()?)
///     .tool(reduction.read_file_tool())
///     .middleware(reduction)
///     .build()?;
/// agent.run(&mut vec![Message::user("Hello.")]).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct OpenAiChatModel<C: Config = OpenAIConfig> {
    client: Client<C>,
    generation: Map<String, Value>,
    on_text: Option<Arc<OnText>>,
}

/// Time for a connection to be made.
const CONNECT: Duration = Duration::from_secs(10);

impl OpenAiChatModel {
    /// Creates the model named by the environment: `OPENAI_MODEL` at `OPENAI_BASE_URL` (OpenAI's
    /// own unless set) with the key `OPENAI_API_KEY`, which your own endpoint may not need.
    ///
    /// # Errors
    ///
    /// [`ModelSetupError`] if `OPENAI_MODEL` is not set, or if TLS can't be set up.
    pub fn from_env() -> Result<Self, ModelSetupError> {
        let model = std::env::var("OPENAI_MODEL")
            .ok()
            .filter(|model| !model.is_empty());
        Self::named(model.ok_or(ModelSetupError::Unnamed)?)
    }

    /// Creates the model `name` at the endpoint named by the environment, as in
    /// [`from_env`](Self::from_env).
    ///
    /// # Errors
    ///
    /// [`ModelSetupError`] if TLS can't be set up.
    pub fn named(name: impl Into<String>) -> Result<Self, ModelSetupError> {
        // Not for the whole answer, since models think for minutes.
        let http = reqwest::Client::builder().connect_timeout(CONNECT).build();
        let http = http.map_err(|error| ModelSetupError::Tls {
            source: error.into(),
        })?;
        Ok(Self::new(
            Client::build(http, OpenAIConfig::default()),
            name,
        ))
    }
}

impl<C: Config> OpenAiChatModel<C> {
    /// Creates the model `name` over `client`, which handles retries, timeouts and proxies.
    pub fn new(client: Client<C>, name: impl Into<String>) -> Self {
        let generation = Map::from_iter([("model".to_owned(), Value::String(name.into()))]);
        Self {
            client,
            generation,
            on_text: None,
        }
    }

    /// Sets a generation option by the endpoint's name for it: `temperature`,
    /// `max_completion_tokens`.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.generation.insert(name.into(), value.into());
        self
    }

    /// Streams answers, and passes their text to `on_text` as it arrives.
    #[must_use]
    pub fn on_text(mut self, on_text: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_text = Some(Arc::new(on_text));
        self
    }

    async fn streamed(
        &self,
        mut body: Map<String, Value>,
        on_text: &OnText,
    ) -> Result<ModelReply, ModelError> {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({"include_usage": true}));
        let chat = self.client.chat();
        let chunks = chat.create_stream_byot::<_, Value>(body).await;
        let mut chunks = chunks.map_err(error::from_client)?;
        let mut answer = ArrivingAnswer::default();
        while let Some(chunk) = chunks.next().await {
            answer.take(&chunk.map_err(error::from_client)?, on_text)?;
        }
        answer.into_reply()
    }
}

#[async_trait]
impl<C: Config> ChatModel for OpenAiChatModel<C> {
    async fn complete(&self, request: ModelRequest<'_>) -> Result<ModelReply, ModelError> {
        let mut body = self.generation.clone();
        body.extend(
            request
                .generation_config
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        body.insert(
            "messages".into(),
            request::messages(request.messages).into(),
        );
        if !request.tools.is_empty() {
            body.insert("tools".into(), request.tools.into());
        }
        if let Some(on_text) = &self.on_text {
            return self.streamed(body, &**on_text).await;
        }
        let answer = self.client.chat().create_byot::<_, Value>(body).await;
        answer::reply(&answer.map_err(error::from_client)?)
    }
}

impl<C: Config> fmt::Debug for OpenAiChatModel<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Leaves out the client, whose configuration holds the key.
        f.debug_struct("OpenAiChatModel")
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
