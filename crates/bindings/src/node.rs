//! The module of Node.

use napi::Env;
use napi::bindgen_prelude::{
    Either, Either3, Error, PromiseRaw, Result, Status, ToNapiValue, TypeName, Uint8Array,
};
use napi_derive::napi;

use crate::engine::{self, AnswerJson, Engine, EngineError, KeptMessage, Returned};
use crate::parts;

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

/// Returns true if a list is one of content parts.
#[napi]
pub fn are_parts(list: String) -> bool {
    parts::are_parts(&list)
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
    pub is_error: bool,
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

impl From<AnswerJson> for ShownJson {
    fn from((content, report, is_error): AnswerJson) -> Self {
        Self {
            content,
            report,
            is_error,
        }
    }
}

/// A result that can go to another thread.
fn returned(result: Either3<String, Uint8Array, Vec<String>>) -> Returned {
    match result {
        Either3::A(text) => Returned::Text(text),
        Either3::B(bytes) => Returned::Bytes(bytes.to_vec()),
        Either3::C(parts) => Returned::Parts(parts),
    }
}

#[napi]
impl NodeCore {
    #[napi(constructor)]
    pub fn new(settings: String) -> Result<Self> {
        let settings = engine::settings(&settings)?;
        // Clients of buckets start tasks.
        let engine = napi::bindgen_prelude::within_runtime_if_available(|| Engine::open(settings))?;
        Ok(Self(engine))
    }

    #[napi]
    pub fn session(&self, id: String) -> Result<Self> {
        Ok(Self(self.0.session(&id)?))
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
    pub fn clear<'env>(
        &self,
        env: &'env Env,
        format: Option<String>,
        messages: String,
        turn: String,
        joins: bool,
    ) -> Result<PromiseRaw<'env, PassedMessages>> {
        self.run(env, async move |engine| {
            let passed = engine.clear(format.as_deref(), messages, &turn, joins);
            let (kept, report) = passed.await?;
            let messages = kept.map(|all| {
                let items = all.into_iter().map(|one| match one {
                    KeptMessage::At(nth) => Either::A(u32::try_from(nth).unwrap_or(u32::MAX)),
                    KeptMessage::New(json) => Either::B(json),
                });
                items.collect()
            });
            Ok(PassedMessages { messages, report })
        })
    }

    #[napi]
    pub fn reduce<'env>(
        &self,
        env: &'env Env,
        format: Option<String>,
        body: String,
        turn: String,
    ) -> Result<PromiseRaw<'env, ChangedText>> {
        self.run(env, async move |engine| {
            let (new, report) = engine.reduce(format.as_deref(), body, &turn).await?;
            Ok(ChangedText { new, report })
        })
    }

    #[napi]
    pub fn condense<'env>(
        &self,
        env: &'env Env,
        node: String,
        state: String,
        answer: Option<String>,
    ) -> Result<PromiseRaw<'env, String>> {
        self.run(env, async move |engine| {
            engine.condense(&node, &state, answer).await
        })
    }

    #[napi]
    pub fn answer<'env>(
        &self,
        env: &'env Env,
        format: Option<String>,
        call: String,
    ) -> Result<PromiseRaw<'env, Option<ShownJson>>> {
        self.run(env, async move |engine| {
            let shown = engine.answer(format.as_deref(), &call).await?;
            Ok(shown.map(ShownJson::from))
        })
    }

    #[napi]
    pub fn message<'env>(
        &self,
        env: &'env Env,
        format: Option<String>,
        call: String,
        result: Either3<String, Uint8Array, Vec<String>>,
        is_error: bool,
    ) -> Result<PromiseRaw<'env, ShownJson>> {
        let result = returned(result);
        self.run(env, async move |engine| {
            let shown = engine.message(format.as_deref(), &call, result, is_error);
            Ok(shown.await?.into())
        })
    }

    #[napi]
    pub fn truncate<'env>(
        &self,
        env: &'env Env,
        call: String,
        result: Either3<String, Uint8Array, Vec<String>>,
        is_error: bool,
    ) -> Result<PromiseRaw<'env, ChangedText>> {
        let result = returned(result);
        self.run(env, async move |engine| {
            let (new, report) = engine.truncate(&call, result, is_error).await?;
            Ok(ChangedText { new, report })
        })
    }

    #[napi]
    pub fn read<'env>(
        &self,
        env: &'env Env,
        arguments: String,
    ) -> Result<PromiseRaw<'env, ReaderPage>> {
        self.run(env, async move |engine| {
            let (text, is_error) = engine.read(&arguments).await;
            Ok(ReaderPage { text, is_error })
        })
    }

    #[napi]
    pub fn original<'env>(
        &self,
        env: &'env Env,
        location: String,
    ) -> Result<PromiseRaw<'env, Uint8Array>> {
        self.run(env, async move |engine| {
            Ok(engine.original(&location).await?.into())
        })
    }

    #[napi]
    pub fn check<'env>(&self, env: &'env Env) -> Result<PromiseRaw<'env, ()>> {
        self.run(env, async move |engine| engine.check().await)
    }
}

impl NodeCore {
    /// Does work on another thread. It has an engine of its own, since a worker of Node may end before it does.
    fn run<'env, T, F>(
        &self,
        env: &'env Env,
        work: impl FnOnce(Engine) -> F,
    ) -> Result<PromiseRaw<'env, T>>
    where
        T: ToNapiValue + TypeName + Send + 'static,
        F: Future<Output = std::result::Result<T, EngineError>> + Send + 'static,
    {
        let work = work(self.0.clone());
        env.spawn_future(async move { Ok(work.await?) })
    }
}
