//! Call ids as providers make them, so that hints cost the same whatever a transcript's ids look
//! like.

use offcut::format::Message;
use sha2::{Digest, Sha256};

const PREFIX: &str = "call_";
/// With it, a location has 40 bytes.
const LENGTH: usize = 21;

/// The same messages with each id replaced: what was the same id still is.
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

/// An empty id pairs by name and order: it stays.
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
    fn ids_stay_the_same_ones() {
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
