//! The module of Node.

use napi::bindgen_prelude::{Either, Error, Result, Status, Uint8Array};
use napi_derive::napi;

use crate::engine::{self, Engine, EngineError, KeptMessage, Returned, ShownMessage};

impl From<EngineError> for Error {
    fn from(failure: EngineError) -> Self {
        // The package makes an error of the class that the first word names.
        let (class, text) = match failure {
            EngineError::Settings(text) => ("SettingsError", text),
            EngineError::Argument(text) => ("TypeError", text),
            EngineError::Store(text) => ("StoreError", text),
        };
        Self::new(Status::GenericFailure, format!("{class}: {text}"))
    }
}

/// Applies updates to a declared state.
#[napi]
pub fn apply(schema: String, state: Option<String>, updates: String) -> Result<String> {
    Ok(engine::apply(&schema, state.as_deref(), &updates)?)
}

/// A reduction: JSON text in, JSON text out. `Reduction` of the package is made of it.
#[napi(js_name = "Core")]
pub struct NodeCore(Engine);

/// The messages after a pass, each as its index if it has not changed.
#[napi(object)]
pub struct PassedMessages {
    pub messages: Option<Vec<Either<u32, String>>>,
    pub report: String,
}

/// A message.
#[napi(object)]
pub struct ShownJson {
    pub content: String,
    pub report: String,
}

/// A page of the reader.
#[napi(object)]
pub struct ReaderPage {
    pub text: String,
    pub is_error: bool,
}

/// A new body or result; none if it has not changed.
#[napi(object)]
pub struct ChangedText {
    pub new: Option<String>,
    pub report: String,
}

impl From<ShownMessage> for ShownJson {
    fn from(shown: ShownMessage) -> Self {
        Self {
            content: shown.content,
            report: shown.report,
        }
    }
}

fn returned(result: Either<String, Uint8Array>) -> Returned {
    match result {
        Either::A(json) => Returned::Parts(json),
        Either::B(bytes) => Returned::Bytes(bytes.to_vec()),
    }
}

#[napi]
impl NodeCore {
    #[napi(constructor)]
    pub fn new(settings: String) -> Result<Self> {
        // Clients of buckets start tasks.
        let engine =
            napi::bindgen_prelude::within_runtime_if_available(|| Engine::open(&settings))?;
        Ok(Self(engine))
    }

    #[napi]
    pub fn session(&self, id: String) -> Self {
        Self(self.0.session(&id))
    }

    #[napi(getter)]
    pub fn reader_name(&self) -> Option<String> {
        self.0.reader_name().map(str::to_owned)
    }

    #[napi]
    pub fn tool(&self, format: String) -> Result<String> {
        Ok(self.0.tool(&format)?)
    }

    #[napi]
    pub async fn clear(
        &self,
        format: Option<String>,
        messages: String,
        tools: String,
        last_usage: Option<u32>,
        joins: bool,
    ) -> Result<PassedMessages> {
        let usage = last_usage.map(u64::from);
        let passed = self
            .0
            .clear(format.as_deref(), messages, &tools, usage, joins);
        let (kept, report) = passed.await?;
        let messages = kept.map(|all| {
            let items = all.into_iter().map(|one| match one {
                KeptMessage::At(nth) => Either::A(u32::try_from(nth).unwrap_or(u32::MAX)),
                KeptMessage::New(json) => Either::B(json),
            });
            items.collect()
        });
        Ok(PassedMessages { messages, report })
    }

    #[napi]
    pub async fn reduce(&self, body: String) -> Result<ChangedText> {
        let (new, report) = self.0.reduce(body).await?;
        Ok(ChangedText { new, report })
    }

    #[napi]
    pub async fn answer(&self, format: Option<String>, call: String) -> Result<Option<ShownJson>> {
        let shown = self.0.answer(format.as_deref(), &call).await?;
        Ok(shown.map(ShownJson::from))
    }

    #[napi]
    pub async fn message(
        &self,
        format: Option<String>,
        call: String,
        result: Either<String, Uint8Array>,
        is_error: bool,
    ) -> Result<ShownJson> {
        let result = returned(result);
        let shown = self.0.message(format.as_deref(), &call, result, is_error);
        Ok(shown.await?.into())
    }

    #[napi]
    pub async fn truncate(
        &self,
        call: String,
        result: Either<String, Uint8Array>,
        is_error: bool,
    ) -> Result<ChangedText> {
        let (new, report) = self.0.truncate(&call, returned(result), is_error).await?;
        Ok(ChangedText { new, report })
    }

    #[napi]
    pub async fn read(&self, arguments: String) -> ReaderPage {
        let (text, is_error) = self.0.read(&arguments).await;
        ReaderPage { text, is_error }
    }

    #[napi]
    pub async fn original(&self, location: String) -> Result<Uint8Array> {
        Ok(self.0.original(&location).await?.into())
    }

    #[napi]
    pub async fn check(&self) -> Result<()> {
        Ok(self.0.check().await?)
    }
}
