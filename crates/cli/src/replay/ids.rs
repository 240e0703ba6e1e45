//! Call ids in a provider's style, so that hints cost the same whatever ids a transcript has.

use offcut::format::Message;
use sha2::{Digest, Sha256};

const PREFIX: &str = "call_";
/// This length gives locations of 40 bytes.
const LENGTH: usize = 21;

/// Replaces each id; equal ids stay equal.
pub(crate) fn of_a_provider(mut messages: Vec<Message>) -> Vec<Message> {
    for message in &mut messages {
        match message {
            Message::Assistant { calls, .. } => {
                calls.iter_mut().for_each(|call| call.id = id(&call.id));
            }
            Message::Tool { call_id, .. } => *call_id = id(call_id),
            Message::System { .. } | Message::User { .. } => {}
        }
    }
    messages
}

/// Returns the replacement for an id. An empty id stays empty, since it pairs by name and order.
fn id(known: &str) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    if known.is_empty() {
        return String::new();
    }
    let digest = Sha256::digest(known);
    let letters = digest
        .iter()
        .take(LENGTH)
        .map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]));
    PREFIX.chars().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_ids_stay_equal() {
        let one = id("toolu_01");
        assert_eq!(
            (one.len(), ".offcut/trunc/".len() + one.len()),
            (PREFIX.len() + LENGTH, 40)
        );
        assert_eq!(one, id("toolu_01"));
        assert_ne!(one, id("toolu_02"));
        assert_eq!(id(""), "");
    }
}
