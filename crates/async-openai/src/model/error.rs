//! Errors with advice on what to do.

use std::fmt;

use async_openai::error::{ApiErrorResponse, OpenAIError};
use offcut::ErrorChain;
use offcut::agent::ModelError;

/// Reason for a model that could not be set up.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ModelSetupError {
    /// The environment names no model.
    #[error("no model is named: set OPENAI_MODEL, or use `OpenAiChatModel::named`")]
    Unnamed,
    /// TLS can't be set up.
    #[error(
        "TLS can't be set up: install certificates, or build your own client and use `OpenAiChatModel::new`"
    )]
    Tls {
        /// Reason given by the TLS library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl fmt::Debug for ModelSetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&ErrorChain(self), f)
    }
}

/// Converts the client's error. Leaves out the words of models and tools, and the endpoint's URL,
/// which may hold a password or a key.
pub(super) fn from_client(error: OpenAIError) -> ModelError {
    match error {
        OpenAIError::ApiError(refusal) => refused(&refusal),
        // The error of `async_openai` holds the answer; its source does not.
        OpenAIError::JSONDeserialize(source, _) => {
            let text = "the endpoint's answer is not JSON: set OPENAI_BASE_URL to an OpenAI-compatible API, up to `/v1`";
            ModelError::new(text).with_source(source)
        }
        OpenAIError::Reqwest(source) if source.is_connect() => {
            ModelError::new("the endpoint can't be reached: check OPENAI_BASE_URL and the network")
                .with_source(source.without_url())
        }
        OpenAIError::Reqwest(source) => ModelError::new("the request failed in transit: try again")
            .with_source(source.without_url()),
        OpenAIError::StreamError(_) => {
            ModelError::new("the answer was cut off because the connection was lost: try again")
        }
        other => ModelError::new("the request could not be sent").with_source(other),
    }
}

fn refused(
    ApiErrorResponse {
        status_code,
        api_error,
    }: &ApiErrorResponse,
) -> ModelError {
    let is_code = |code: &str| {
        api_error.code.as_deref() == Some(code) || api_error.r#type.as_deref() == Some(code)
    };
    let advice = match status_code.as_u16() {
        // Without the endpoint's message, which may repeat the key.
        401 | 403 => {
            return ModelError::new(format!(
                "the endpoint answered {status_code}: check OPENAI_API_KEY"
            ));
        }
        404 => "; check the model's name and OPENAI_BASE_URL",
        _ if is_code("context_length_exceeded") => "; lower `max_tokens_for_clear`",
        _ => "",
    };
    let text = format!(
        "the endpoint answered {status_code}: {}{advice}",
        api_error.message
    );
    if status_code.as_u16() == 429 && !is_code("insufficient_quota") {
        ModelError::rate_limited(text)
    } else {
        ModelError::new(text)
    }
}
