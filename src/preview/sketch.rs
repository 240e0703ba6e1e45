//! What has to be kept of a text that comes piece by piece.

use super::choice::Wanted;
use super::gathered::Gathered;
use super::head_tail;

/// What has to be kept of a text, as it comes, so that it can be previewed: bounded, however long
/// the text.
#[derive(Clone, Debug)]
pub(crate) enum Sketch {
    Ends(head_tail::Sketch),
    Gathered(Wanted, Box<Gathered>),
}

impl Sketch {
    /// The text goes on with `text`.
    pub(crate) fn push(&mut self, text: &str) {
        match self {
            Self::Ends(ends) => ends.push(text),
            Self::Gathered(_, gathered) => gathered.push(text),
        }
    }

    /// The text goes on with one of which `other` is the sketch, made the same way. A line feed has
    /// to come next.
    pub(crate) fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Ends(ends), other) => ends.append(other.ends()),
            (Self::Gathered(_, gathered), Self::Gathered(_, other)) => gathered.append(other),
            // Made another way; it never is.
            (Self::Gathered(..), Self::Ends(_)) => {}
        }
    }

    fn ends(&self) -> &head_tail::Sketch {
        match self {
            Self::Ends(ends) => ends,
            Self::Gathered(_, gathered) => gathered.ends(),
        }
    }

    /// How long the text is so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.ends().bytes()
    }

    /// The lines so far: a last one without a line feed counts too.
    pub(crate) fn lines(&self) -> u64 {
        self.ends().lines()
    }

    /// The first bytes of everything that [`show`](Self::show) is going to give with this budget
    /// for the head, whatever follows.
    pub(crate) fn settled(&self, head: usize) -> &str {
        match self {
            Self::Ends(ends) => ends.settled(head),
            Self::Gathered(..) => "",
        }
    }

    /// What is shown of the text in at most `budget` bytes; where that is head and tail, with so
    /// many for the head. A budget too small for anything sensible gives an empty preview.
    pub(crate) fn show(&self, head: usize, budget: usize) -> String {
        match self {
            Self::Ends(ends) => ends.show(head, budget),
            Self::Gathered(wanted, gathered) => gathered.show(*wanted, head, budget),
        }
    }
}
