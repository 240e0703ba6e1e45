//! The contract of [`Format`], as a suite that any format can be held to.

mod clauses;
mod json;
mod seen;

use offcut::format::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::clauses::{Shape, all_clauses};

/// Holds a format to every clause of [`Format`]'s contract, over `messages`.
///
/// Give it messages of every kind that the format knows: among them there must be a result and a
/// call, and every way in which they can stand in a message. What messages do not have is not
/// tested.
///
/// ```
/// use offcut::format::{Message, Plain};
/// use offcut::ToolCall;
///
/// let call = ToolCall::new("call_1", "grep", "{}");
/// let messages = [Message::calls(vec![call.clone()]), Message::tool(&call, vec!["3 hits".into()], false)];
/// offcut_testkit::format::conformance(&Plain, &messages);
/// ```
///
/// # Panics
///
/// Where the format breaks the contract. The message names the clause and the place of the message
/// in `messages`.
pub fn conformance<F: Format<Message: PartialEq>>(format: &F, messages: &[F::Message]) {
    let (mut slots, mut calls) = (0, 0);
    for (at, message) in messages.iter().enumerate() {
        let seen = all_clauses(format, message, at, Shape::Good);
        slots += seen.slots.len();
        calls += seen.calls.len();
    }
    assert!(
        slots > 0,
        "the suite tests nothing without a result among the messages"
    );
    assert!(
        calls > 0,
        "the suite tests nothing without a call among the messages"
    );
}

/// The same, and what concerns the messages' JSON: that they are the same once they were written
/// and read, that fields which the format does not know survive every replacement, and that no
/// message, however malformed, makes it panic.
///
/// # Panics
///
/// As [`conformance`].
pub fn json_conformance<F>(format: &F, messages: &[F::Message])
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    conformance(format, messages);
    for (at, message) in messages.iter().enumerate() {
        json::round_trips(format, message, at);
        json::unknown_fields_stay(format, message, at);
        json::malformed_messages_do_no_harm(format, message, at);
    }
}

/// Holds a format to what must hold of any messages, however malformed: each is seen alike twice,
/// and only what is replaced in it changes, where anything can be.
///
/// # Panics
///
/// As [`conformance`].
pub fn malformed_conformance<F: Format<Message: PartialEq>>(format: &F, messages: &[F::Message]) {
    for (at, message) in messages.iter().enumerate() {
        all_clauses(format, message, at, Shape::Malformed);
    }
}
