//! Tool results by round, for a scripted model.

use offcut::format::{Format, PartRef, Piece};

/// A tool result as a model is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownResult {
    /// The id of the call that it answers; empty in formats without ids.
    pub call_id: String,
    /// Its texts, one after the other.
    pub text: String,
    /// True if it is marked as an error.
    pub is_error: bool,
}

/// Returns the results of each round, oldest first: all those between two messages with calls, in the order
/// of the messages.
///
/// A scripted model needs nothing else: the number of rounds tells how far the conversation has got.
///
/// ```
/// use offcut::format::{Message, Plain};
/// use offcut::ToolCall;
///
/// let call = ToolCall::new("call_1", "grep", "{}");
/// let messages = [Message::calls(vec![call.clone()]), Message::tool(&call, vec!["3 hits".into()], false)];
/// let rounds = offcut_testkit::rounds(&Plain, &messages);
/// assert_eq!(rounds[0][0].text, "3 hits");
/// ```
#[must_use]
pub fn rounds<F: Format>(format: &F, messages: &[F::Message]) -> Vec<Vec<ShownResult>> {
    let mut rounds: Vec<Vec<ShownResult>> = Vec::new();
    let (mut is_open, mut is_result) = (false, false);
    for message in messages {
        format.visit(message, &mut |piece| match piece {
            Piece::Role(_) => is_result = false,
            Piece::Call(_) => is_open = false,
            Piece::Result(head) => {
                if !is_open {
                    rounds.push(Vec::new());
                }
                (is_open, is_result) = (true, true);
                rounds.last_mut().unwrap().push(ShownResult {
                    call_id: head.id.to_owned(),
                    text: String::new(),
                    is_error: head.is_error,
                });
            }
            Piece::Content(PartRef::Text(text)) if is_result => {
                rounds.last_mut().unwrap().last_mut().unwrap().text += text;
            }
            _ => {}
        });
    }
    rounds
}
