//! Results in a list of messages.

use offcut::format::{Conversation, PartRef, Piece};

use super::tenant::READER;

/// A result that consists of texts.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    pub(super) message: usize,
    pub(super) slot: usize,
    /// The tool's name, if the message has it.
    pub(super) tool: String,
    pub(super) texts: Vec<String>,
}

/// Finds the results that may be shortened: all texts, and not what the model has just read back.
pub(super) fn results(conversation: &dyn Conversation) -> Vec<Found> {
    let mut found = Vec::new();
    for message in 0..conversation.len() {
        let mut slots = 0;
        // The result that is being read; `None` outside of results, and in one that stays.
        let mut open: Option<Found> = None;
        conversation.visit(message, &mut |piece| match piece {
            Piece::Result(head) => {
                found.extend(open.take());
                let tool = head.name.unwrap_or_default();
                open = (!head.is_fixed && !tool.ends_with(READER)).then(|| Found {
                    message,
                    slot: slots,
                    tool: tool.to_owned(),
                    texts: Vec::new(),
                });
                slots += 1;
            }
            Piece::Content(PartRef::Text(text)) => {
                if let Some(result) = &mut open {
                    result.texts.push(text.to_owned());
                }
            }
            // Such a result stays as it is.
            Piece::Content(_) => open = None,
            Piece::Role(_) => found.extend(open.take()),
            _ => {}
        });
        found.extend(open);
    }
    found
}
