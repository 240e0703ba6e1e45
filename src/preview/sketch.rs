//! Sketches of texts that arrive in chunks.

use super::choice::Wanted;
use super::gathered::Gathered;
use super::head_tail;

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub(crate) enum Sketch {
    Ends(head_tail::Sketch),
    Gathered(Wanted, Box<Gathered>),
}

impl Sketch {
    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        match self {
            Self::Ends(ends) => ends.push(text),
            Self::Gathered(_, gathered) => gathered.push(text),
        }
    }

    /// Appends the text of `other`, a sketch made by the same method. A line feed must come next.
    pub(crate) fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Ends(ends), other) => ends.append(other.ends()),
            (Self::Gathered(_, gathered), Self::Gathered(_, other)) => gathered.append(other),
            // Made by another method; never happens.
            (Self::Gathered(..), Self::Ends(_)) => {}
        }
    }

    fn ends(&self) -> &head_tail::Sketch {
        match self {
            Self::Ends(ends) => ends,
            Self::Gathered(_, gathered) => gathered.ends(),
        }
    }

    /// Length of the text so far in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.ends().bytes()
    }

    /// Number of lines so far, including a last one without a line feed.
    pub(crate) fn lines(&self) -> u64 {
        self.ends().lines()
    }

    /// A prefix of everything that [`show`](Self::show) will return for this head budget, whatever
    /// text follows.
    pub(crate) fn settled(&self, head: usize) -> &str {
        match self {
            Self::Ends(ends) => ends.settled(head),
            Self::Gathered(..) => "",
        }
    }

    /// Returns a preview of at most `budget` bytes. For head and tail, `head` of them are for the
    /// head. If the budget is too small to be useful, the preview is empty.
    pub(crate) fn show(&self, head: usize, budget: usize) -> String {
        match self {
            Self::Ends(ends) => ends.show(head, budget),
            Self::Gathered(wanted, gathered) => gathered.show(*wanted, head, budget),
        }
    }
}
