//! Figures of a replay: exact sums, and what is computed from them.

use serde_json::{Value, json};

use super::card::Prices;
use crate::evidence::Kind;

/// Sums over the model calls of one transcript, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    pub(crate) model_calls: u64,
    /// Tokens sent.
    pub(crate) tokens: u64,
    /// Sent tokens that were not in the previous request.
    pub(crate) fresh: u64,
    /// Tokens of the largest call.
    pub(crate) peak: u64,
    /// Calls that do not begin with the whole previous request.
    pub(crate) breaks: u64,
    /// Names, lines, values, outcomes and everything else that turns needed, and the part of it that was in view.
    pub(crate) seen: Seen,
    /// Number of names that were in view with their surroundings.
    pub(crate) shown: u64,
    /// Number of results of which a turn needs names or lines that are not in view, as if nothing stayed that was read.
    pub(crate) reads: u64,
    /// Number of pages that would have been read back.
    pub(crate) pages: u64,
    /// Tokens that reading those pages adds, by their price: the calls that read, and the pages
    /// themselves, which stay.
    pub(crate) pages_cached: u64,
    pub(crate) pages_fresh: u64,
    pub(crate) stored_objects: u64,
    pub(crate) stored_bytes: u64,
}

impl Figures {
    /// Adds the figures of other calls.
    pub(crate) fn add(&mut self, other: &Self) {
        // Exhaustive, so that a new field does not compile until it is handled here.
        let Self {
            model_calls,
            tokens,
            fresh,
            peak,
            breaks,
            shown,
            reads,
            seen,
            pages,
            pages_cached,
            pages_fresh,
            stored_objects,
            stored_bytes,
        } = other;
        self.model_calls += model_calls;
        self.tokens += tokens;
        self.fresh += fresh;
        self.peak = self.peak.max(*peak);
        self.breaks += breaks;
        self.shown += shown;
        self.reads += reads;
        self.seen.add(seen);
        self.pages += pages;
        self.pages_cached += pages_cached;
        self.pages_fresh += pages_fresh;
        self.stored_objects += stored_objects;
        self.stored_bytes += stored_bytes;
    }

    /// Cost of all calls.
    pub(crate) fn bill(&self, prices: &Prices) -> f64 {
        prices.cached * (self.tokens - self.fresh) as f64 + prices.fresh * self.fresh as f64
    }

    /// The bill including real pages: each page is one more call over a cached context, and stays
    /// until the end.
    pub(crate) fn bill_with_pages(&self, prices: &Prices) -> f64 {
        self.bill(prices)
            + prices.cached * self.pages_cached as f64
            + prices.fresh * self.pages_fresh as f64
    }

    /// The row of a policy, over one transcript or all, for `--json`.
    pub(crate) fn summary(&self, name: &str, prices: &Prices) -> Value {
        let [names, lines] = [Kind::Name, Kind::Quote].map(|kind| self.seen.count(kind));
        json!({
            "name": name,
            "model_calls": self.model_calls,
            "tokens": self.tokens,
            "peak": self.peak,
            "bill": rounded(self.bill(prices)),
            "reads": self.reads,
            "breaks": self.breaks,
            "named": share(names.seen, names.needed),
            "shown": share(self.shown, names.needed),
            "quoted": share(lines.seen, lines.needed),
            "reachable": share(names.readable, names.needed),
            "stored_objects": self.stored_objects,
            "stored_bytes": self.stored_bytes,
            "uses": names.needed,
            "quotes": lines.needed,
            "bill_pages": rounded(self.bill_with_pages(prices)),
            "pages": self.pages,
            "seen": self.seen.shares(),
        })
    }
}

/// Rounds to the digits that prices have, dropping floating-point residue.
fn rounded(bill: f64) -> f64 {
    (bill * 1e4).round() / 1e4
}

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
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 1.0 }
}

/// The same of counts.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    ratio(part as f64, whole as f64)
}
