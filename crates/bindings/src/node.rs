//! The module of Node.

use napi::Env;
use napi::bindgen_prelude::{Either3, Error, PromiseRaw, Result, Status, Uint8Array};
use napi_derive::napi;

use crate::engine::{self, Engine, EngineError, Given};
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

    /// Answers in JSON; see [`Engine::ask`]. It has an engine of its own, since a worker of Node may end before it
    /// does.
    #[napi]
    pub fn ask<'env>(
        &self,
        env: &'env Env,
        method: String,
        format: Option<String>,
        options: String,
        given: Option<Either3<String, Uint8Array, Vec<String>>>,
    ) -> Result<PromiseRaw<'env, String>> {
        let engine = self.0.clone();
        let given = given.map(|given| match given {
            Either3::A(text) => Given::Text(text),
            Either3::B(bytes) => Given::Bytes(bytes.to_vec()),
            Either3::C(parts) => Given::Parts(parts),
        });
        env.spawn_future(async move {
            let answer = engine.ask(&method, format.as_deref(), &options, given);
            Ok(answer.await?)
        })
    }

    #[napi]
    pub fn original<'env>(
        &self,
        env: &'env Env,
        location: String,
    ) -> Result<PromiseRaw<'env, Uint8Array>> {
        let engine = self.0.clone();
        env.spawn_future(async move { Ok(engine.original(&location).await?.into()) })
    }
}
