//! A name for a conversation that has none, made of its beginning.

use offcut_decisions::SlotIds;

use crate::format::{Conversation, PartRef, Piece, Role};
use crate::tokens::Text;

/// Call ids of at least this many bytes are taken for random ones. Shorter ones may be numbers that
/// every conversation has.
const MIN_RANDOM: usize = 13;

/// The name of a conversation, as any process gives it; `None` before the first call and result.
///
/// It is made of the first call: id, tool and arguments. Whatever comes before, such as system
/// messages, reminders and marks, may change between requests, and there is nothing to decide before
/// the first result. Only if the call's id may be that of other conversations too do the user's texts
/// before it count.
pub(crate) fn beginning(conversation: &dyn Conversation) -> Option<String> {
    let (mut said, mut is_user) = (SlotIds::arguments("", ""), false);
    let mut found = None;
    for message in 0..conversation.len() {
        conversation.visit(message, &mut |piece| {
            if found.is_some() {
                return;
            }
            match piece {
                Piece::Role(role) => is_user = role == Role::User,
                Piece::Content(PartRef::Text(text)) if is_user => {
                    said = said.clone().with(b't', text.as_bytes());
                }
                Piece::Content(_) => {}
                Piece::Call(call) => {
                    let arguments = Text::of_arguments(call.arguments).read();
                    let first = SlotIds::arguments(call.id, call.name);
                    found = Some((call.id.len(), first.with(b'a', arguments.as_bytes())));
                }
                // A history may have lost its calls.
                Piece::Result(head) => {
                    let first = SlotIds::result(head.id, head.name.unwrap_or_default());
                    found = Some((head.id.len(), first));
                }
            }
        });
        if found.is_some() {
            break;
        }
    }
    let (id, mut first) = found?;
    if id < MIN_RANDOM {
        first = first.with(b's', &said.finish().to_be_bytes());
    }
    Some(format!("c-{:032x}", first.finish()))
}
