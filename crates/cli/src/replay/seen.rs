//! Shares of what turns needed that was still in view.

use serde_json::{Value, json};

use crate::evidence::Kind;

/// Counts by kind of need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen([Count; Kind::ALL.len()]);

/// Number of needs of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) needed: u64,
    /// Those that no message held whole any more: only shortened ones were left to show them.
    pub(crate) cut: u64,
    /// Those that were in view.
    pub(crate) seen: u64,
    /// Those that were in view, or stored where a hint leads.
    pub(crate) readable: u64,
}

impl Count {
    /// Those that a shortened message shows.
    pub(crate) fn seen_in_cut(&self) -> u64 {
        self.seen + self.cut - self.needed
    }
}

impl Seen {
    pub(crate) fn count(&self, kind: Kind) -> Count {
        self.0[kind as usize]
    }

    pub(crate) fn note(&mut self, kind: Kind, is_cut: bool, is_seen: bool, is_readable: bool) {
        let count = &mut self.0[kind as usize];
        count.needed += 1;
        count.cut += u64::from(is_cut);
        count.seen += u64::from(is_seen);
        count.readable += u64::from(is_seen || is_readable);
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            own.needed += more.needed;
            own.cut += more.cut;
            own.seen += more.seen;
            own.readable += more.readable;
        }
    }

    /// Shares by kind, for `--json`.
    pub(crate) fn shares(&self) -> Value {
        let of = |((_, name), count): (&(Kind, &str), &Count)| {
            let shares = json!({
                "needed": count.needed,
                "cut": count.cut,
                "seen": share(count.seen, count.needed),
                "readable": share(count.readable, count.needed),
            });
            ((*name).to_owned(), shares)
        };
        // Names and lines have fields of their own.
        Value::Object(Kind::ALL.iter().zip(&self.0).skip(2).map(of).collect())
    }
}

/// `part / whole`, or 1 if `whole` is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}
