//! Texts that a pass has seen in a conversation, in order.
//!
//! If a history only grows, the next pass finds each text in its old place, and looks up only the
//! new ones.

use crate::decisions::fingerprint::Fingerprint;

/// A text that was seen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) print: Fingerprint,
    /// Its cost, if that is known yet.
    pub(crate) tokens: Option<u64>,
}

/// The kind of piece that a text belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextKind {
    /// A tool's result.
    Result,
    /// The arguments of a call.
    Arguments,
    /// Anything else.
    Other,
}

/// The place of a text in a [`Seen`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowIndex {
    of: TextKind,
    at: usize,
}

/// The texts of a pass in the order of the conversation, followed by those left over from the pass
/// before.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    lists: [List; 3],
    /// True if it has all texts of results and arguments, from the first message on.
    pub(crate) has_all_subjects: bool,
    displaced: Vec<Fingerprint>,
}

#[derive(Debug, Default)]
struct List {
    rows: Vec<Row>,
    /// Number of rows from this pass.
    len: usize,
}

impl Seen {
    /// Begins another pass.
    pub(super) fn restart(mut self) -> Self {
        self.lists.iter_mut().for_each(|list| list.len = 0);
        self.has_all_subjects = false;
        self
    }

    /// Takes the next text. Returns its place, and its cost if the same text was there before.
    pub(crate) fn push(&mut self, of: TextKind, print: Fingerprint) -> (RowIndex, Option<u64>) {
        let list = &mut self.lists[of as usize];
        let at = list.len;
        list.len += 1;
        let spot = RowIndex { of, at };
        match list.rows.get_mut(at) {
            Some(row) if row.print == print => return (spot, row.tokens),
            Some(row) => self.displaced.push(
                std::mem::replace(
                    row,
                    Row {
                        print,
                        tokens: None,
                    },
                )
                .print,
            ),
            None => list.rows.push(Row {
                print,
                tokens: None,
            }),
        }
        (spot, None)
    }

    /// Sets the cost of a text.
    pub(crate) fn set(&mut self, RowIndex { of, at }: RowIndex, tokens: u64) {
        if let Some(row) = self.lists[of as usize].rows.get_mut(at) {
            row.tokens = Some(tokens);
        }
    }

    /// The texts of all results, or of all arguments; empty unless all are known.
    pub(crate) fn subjects(&self, of: TextKind) -> impl Iterator<Item = Row> {
        let list = &self.lists[of as usize];
        list.rows[..list.len]
            .iter()
            .copied()
            .filter(|_| self.has_all_subjects)
    }

    /// Ends the pass. Returns the texts that it displaced, and those left over from the pass
    /// before, which it drops.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = Fingerprint> {
        for list in &mut self.lists {
            self.displaced
                .extend(list.rows.drain(list.len..).map(|row| row.print));
        }
        self.displaced.drain(..)
    }

    pub(super) fn prints(&self) -> impl Iterator<Item = Fingerprint> {
        self.lists
            .iter()
            .flat_map(|list| &list.rows)
            .map(|row| row.print)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::fingerprint::Secret;

    /// Runs a pass over `texts`, which cost their length, and returns how many had to be looked up.
    fn look(secret: &Secret, seen: &mut Seen, texts: &[&str]) -> usize {
        *seen = std::mem::take(seen).restart();
        let mut searched = 0;
        for text in texts {
            let (spot, tokens) = seen.push(TextKind::Result, secret.of(text.as_bytes()));
            assert!(
                tokens.is_none_or(|tokens| tokens == text.len() as u64),
                "{text}: {tokens:?}"
            );
            searched += usize::from(tokens.is_none());
            seen.set(spot, text.len() as u64);
        }
        searched
    }

    #[test]
    fn only_new_messages_are_searched() {
        let (secret, mut seen) = (Secret::random(), Seen::default());
        assert_eq!(look(&secret, &mut seen, &["a", "bb"]), 2);
        assert_eq!(look(&secret, &mut seen, &["a", "bb", "ccc"]), 1);
        assert_eq!(look(&secret, &mut seen, &["a", "hint", "ccc"]), 1);
        assert_eq!(look(&secret, &mut seen, &["a", "hint", "ccc"]), 0);
        assert_eq!(look(&secret, &mut seen, &["new", "a", "hint", "ccc"]), 4);
        assert_eq!(look(&secret, &mut seen, &["new", "a", "hint", "ccc"]), 0);
    }

    #[test]
    fn displaced_texts_are_reported() {
        let (secret, mut seen) = (Secret::random(), Seen::default());
        let print = |text: &str| secret.of(text.as_bytes());
        look(&secret, &mut seen, &["a", "bb", "ccc"]);
        assert_eq!(seen.finish().count(), 0);
        look(&secret, &mut seen, &["a", "x"]);
        assert_eq!(
            seen.finish().collect::<Vec<_>>(),
            [print("bb"), print("ccc")]
        );
        assert_eq!(seen.prints().collect::<Vec<_>>(), [print("a"), print("x")]);
    }

    #[test]
    fn texts_without_a_count_are_not_remembered() {
        let (secret, mut seen) = (Secret::random(), Seen::default());
        seen.push(TextKind::Other, secret.of(b"a"));
        let mut seen = seen.restart();
        assert!(seen.push(TextKind::Other, secret.of(b"a")).1.is_none());
    }

    #[test]
    fn subjects_are_given_only_if_complete() {
        let (secret, mut seen) = (Secret::random(), Seen::default());
        look(&secret, &mut seen, &["a", "bb"]);
        assert_eq!(seen.subjects(TextKind::Result).count(), 0);
        seen.has_all_subjects = true;
        assert_eq!(
            seen.subjects(TextKind::Result)
                .map(|row| row.tokens)
                .collect::<Vec<_>>(),
            [Some(1), Some(2)]
        );
        assert_eq!(seen.subjects(TextKind::Arguments).count(), 0);
    }
}
