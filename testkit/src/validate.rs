//! Whether a provider would take a list of messages.
//!
//! Each check is written from what a provider documents or answers with status 400, not from how
//! the formats are read: it is what passes are held to.

mod anthropic;
mod gemini;
mod openai_chat;
mod responses;
mod rules;

use offcut::format::WireFormat;
use serde_json::Value;

pub use rules::InvalidMessage;

/// Checks that a provider of `format` would take `messages`: shapes, roles, order, and a result for
/// each call. Rules of only some providers of the format are not checked, nor is anything about
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
/// The first message that would be refused, and why; for a format that is newer than this crate, in
/// any case.
pub fn validate(format: WireFormat, messages: &[Value]) -> Result<(), InvalidMessage> {
    match format {
        WireFormat::OpenAiChat => openai_chat::validate(messages),
        WireFormat::Responses => responses::validate(messages),
        WireFormat::Anthropic => anthropic::validate(messages),
        WireFormat::Gemini => gemini::validate(messages),
        // Taking everything would let a test pass that checks nothing.
        _ => Err(rules::invalid(
            0,
            format!("this version of offcut-testkit has no rules for {format}"),
        )),
    }
}
