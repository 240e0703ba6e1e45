//! The part of a request that its provider's cache may hold.

use std::borrow::Cow;
use std::hash::Hasher;

use memchr::memmem;
use rustc_hash::FxHasher;

use crate::gateway::record::Size;

/// Difference in length that options such as a limit of the answer may make.
const OPTIONS: u64 = 64;
const MARK: &str = "\"cache_control\"";

/// A request's body, as far as it can be compared with the one before it: lengths and hashes of its
/// messages, and the length of all else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    messages: Vec<Seen>,
    /// Bytes of instructions, tools and options.
    rest: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    hash: u64,
    bytes: u64,
}

impl Prompt {
    /// A body of `bytes` with these messages.
    pub(crate) fn of<'m>(messages: impl Iterator<Item = &'m str>, bytes: u64) -> Self {
        let messages: Vec<_> = messages
            .map(|message| Seen {
                hash: hash(message),
                bytes: message.len() as u64,
            })
            .collect();
        let held: u64 = messages.iter().map(|message| message.bytes).sum();
        Self {
            rest: bytes.saturating_sub(held),
            messages,
        }
    }

    /// A body whose messages are not known.
    pub(crate) fn unread(bytes: u64) -> Self {
        Self {
            messages: Vec::new(),
            rest: bytes,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        let messages: u64 = self.messages.iter().map(|message| message.bytes).sum();
        messages + self.rest
    }

    /// The size of this body, sent after the body `before` of the same conversation.
    ///
    /// Providers read instructions and tools before the messages, wherever a body has them. If those
    /// have changed, which their length tells, a cache holds nothing.
    pub(super) fn after(&self, before: &Self) -> Size {
        let mut cached = 0;
        if self.is_like(before) {
            let pairs = self.messages.iter().zip(&before.messages);
            let same = pairs.take_while(|(own, other)| own.hash == other.hash);
            let messages: u64 = same.map(|(own, _)| own.bytes).sum();
            cached = messages + self.rest;
        }
        Size {
            cached,
            fresh: self.bytes() - cached,
        }
    }

    /// Returns true if instructions and tools are as long as those of `before`, apart from commas between
    /// messages and from options that change from call to call.
    fn is_like(&self, before: &Self) -> bool {
        let commas = self.messages.len().abs_diff(before.messages.len()) as u64;
        before.bytes() > 0 && self.rest.abs_diff(before.rest) <= 2 * commas + OPTIONS
    }
}

/// A hash of a message without its cache marks, which move from call to call and do not belong to what the
/// model reads.
fn hash(message: &str) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(without_marks(message).as_bytes());
    hasher.finish()
}

/// The JSON of a message without its fields `cache_control`.
fn without_marks(message: &str) -> Cow<'_, str> {
    let (mut kept, mut rest) = (String::new(), message);
    // Inside of a string, the quotes would be escaped.
    while let Some(at) = memmem::find(rest.as_bytes(), MARK.as_bytes()) {
        let (before, after) = rest.split_at(at);
        let after = &after[MARK.len()..];
        kept.push_str(before);
        let Some(following) = after_object(after) else {
            kept.push_str(MARK);
            rest = after;
            continue;
        };
        kept.truncate(kept.trim_end().len());
        rest = following.trim_start();
        if kept.ends_with(',') {
            kept.pop();
        } else {
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
    }
    if rest.len() == message.len() {
        return message.into();
    }
    kept.push_str(rest);
    kept.into()
}

/// The text after a colon and a flat object.
fn after_object(text: &str) -> Option<&str> {
    let object = text.trim_start().strip_prefix(':')?.trim_start();
    object
        .strip_prefix('{')?
        .split_once('}')
        .map(|(_, rest)| rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(messages: &[&str], rest: usize) -> Prompt {
        let bytes: usize = messages.iter().map(|message| message.len()).sum();
        Prompt::of(messages.iter().copied(), (bytes + rest) as u64)
    }

    #[test]
    fn the_messages_that_both_begin_with_are_cached() {
        let size = |cached, fresh| Size { cached, fresh };
        let first = prompt(&[r#""one""#, r#""two""#], 3_000);
        assert_eq!(first.bytes(), 3_010);
        assert_eq!(first.after(&Prompt::default()), size(0, 3_010));
        assert_eq!(first.after(&first), size(3_010, 0));
        let longer = prompt(&[r#""one""#, r#""two""#, r#""three""#], 3_001);
        assert_eq!(longer.after(&first), size(3_011, 7));
        let changed = prompt(&[r#""one""#, r#""TWO""#, r#""three""#], 3_001);
        assert_eq!(changed.after(&longer), size(3_006, 12));
        let other_tools = prompt(&[r#""one""#, r#""two""#], 9_000);
        assert_eq!(other_tools.after(&first), size(0, 9_010));
        assert_eq!(Prompt::unread(9).after(&Prompt::default()), size(0, 9));
    }

    #[test]
    fn marks_move_without_a_change() {
        let plain =
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
        for marked in [
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b","cache_control":{"type":"ephemeral"}}]}"#,
            r#"{"role":"user","content":[{"type":"text","text":"a", "cache_control": {"type": "ephemeral", "ttl": "1h"} },{"cache_control":{},"type":"text","text":"b"}]}"#,
        ] {
            assert_eq!(without_marks(marked), plain);
        }
        for own in [
            r#"{"content":"{\"cache_control\": {}}"}"#,
            r#"{"cache_control": null, "name": "cache_control"}"#,
            r#"{"cache_control""#,
        ] {
            assert_eq!(without_marks(own), own);
        }
    }
}
