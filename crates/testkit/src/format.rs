//! The contract of [`Format`] as a test suite for any format.

mod clauses;
mod json;
mod pairing;
mod seen;

use offcut::format::Format;
use serde::Serialize;
use serde::de::DeserializeOwned;

use self::clauses::{ClauseShape, Subject};

/// Checks a format against every clause of [`Format`]'s contract, using `messages`.
///
/// Pass messages of every kind that the format knows. They must include a call and, after it, the
/// result that answers it, in every position that they can have in a message. Whatever is missing
/// from `messages` is not tested.
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
/// Panics if the format breaks the contract, and names the clause, or if `messages` have no call or no result.
pub fn conformance<F: Format<Message: PartialEq>>(format: &F, messages: &[F::Message]) {
    let (mut slots, mut calls) = (0, 0);
    for subject in subjects(format, messages) {
        let seen = subject.all_clauses(ClauseShape::Good);
        slots += seen.slots;
        calls += seen.calls;
    }
    assert!(
        slots > 0,
        "the messages must include a result: without one the suite tests nothing"
    );
    assert!(
        calls > 0,
        "the messages must include a call: without one the suite tests nothing"
    );
    pairing::results_have_calls(format, messages);
}

/// Runs [`conformance`] and checks the messages' JSON: messages survive writing and reading, fields
/// unknown to the format survive every replacement, and no message, however malformed, makes the
/// format panic.
///
/// # Panics
///
/// The same as for [`conformance`].
pub fn json_conformance<F>(format: &F, messages: &[F::Message])
where
    F: Format<Message: PartialEq + Serialize + DeserializeOwned>,
{
    conformance(format, messages);
    for subject in subjects(format, messages) {
        subject.round_trips();
        subject.unknown_fields_stay();
        subject.malformed_messages_do_no_harm();
    }
}

/// Checks the rules that hold for any messages, however malformed: reading a message twice gives
/// the same pieces, and a replacement, if possible, changes nothing else that is shown.
///
/// # Panics
///
/// The same as for [`conformance`].
pub fn malformed_conformance<F: Format<Message: PartialEq>>(format: &F, messages: &[F::Message]) {
    for subject in subjects(format, messages) {
        subject.all_clauses(ClauseShape::Malformed);
    }
}

fn subjects<'m, F: Format>(
    format: &'m F,
    messages: &'m [F::Message],
) -> impl Iterator<Item = Subject<'m, F>> {
    let messages = messages.iter().enumerate();
    messages.map(move |(at, message)| Subject {
        format,
        message,
        at,
    })
}
