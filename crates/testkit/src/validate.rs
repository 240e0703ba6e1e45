//! Checks of message lists by the rules of their providers.
//!
//! Each check follows a provider's documentation or its answers with status 400, not our own
//! formats: passes are tested against it.

mod anthropic;
mod gemini;
mod openai_chat;
mod responses;
mod rules;

use offcut::format::WireFormat;
use serde_json::Value;

pub use rules::InvalidMessage;

/// Checks that a provider of `format` would accept `messages`: shapes, roles, order, and a result
/// for each call. Rules of only some providers of the format are not checked, nor is anything about
/// models, tools and lengths.
///
/// ```
/// use offcut::format::WireFormat;
/// use offcut_testkit::validate;
/// use serde_json::json;
///
/// let mut messages = vec![json!({"role": "user", "content": "go"})];
/// assert_eq!(validate(WireFormat::OpenAiChat, &messages), Ok(()));
///
/// messages.push(json!({"role": "tool", "tool_call_id": "a", "content": "3 hits"}));
/// let error = validate(WireFormat::OpenAiChat, &messages).unwrap_err();
/// assert_eq!(error.message, 1); // answers no call
/// ```
///
/// # Errors
///
/// Names the first message that would be rejected, and the reason. A format newer than this crate
/// is always an error.
pub fn validate(format: WireFormat, messages: &[Value]) -> Result<(), InvalidMessage> {
    match format {
        WireFormat::OpenAiChat => openai_chat::validate(messages),
        WireFormat::Responses => responses::validate(messages),
        WireFormat::Anthropic => anthropic::validate(messages),
        WireFormat::Gemini => gemini::validate(messages),
        // Accepting everything would let a test pass that checks nothing.
        _ => Err(rules::invalid(
            0,
            format!("this version of offcut-testkit has no rules for {format}"),
        )),
    }
}
