//! Sketches of texts that arrive in chunks.

use crate::choice::Wanted;
use crate::gathered::Gathered;
use crate::head_tail;

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub struct Sketch(pub(crate) Kept);

#[derive(Clone, Debug)]
pub(crate) enum Kept {
    Ends(head_tail::Sketch),
    Gathered(Wanted, Box<Gathered>),
}

impl Sketch {
    /// Appends `text`.
    pub fn push(&mut self, text: &str) {
        match &mut self.0 {
            Kept::Ends(ends) => ends.push(text),
            Kept::Gathered(_, gathered) => gathered.push(text),
        }
    }

    /// Begins with `text`, which is shown elsewhere: it counts for the places of what follows, and is neither
    /// shown nor measured. Nothing may have been pushed before.
    pub fn skip(&mut self, text: &str) {
        match &mut self.0 {
            Kept::Ends(ends) => ends.skip(text),
            Kept::Gathered(_, gathered) => gathered.skip(text),
        }
    }

    /// Appends the text of `other`, a sketch made by the same method. A line feed must come next.
    pub fn append(&mut self, other: &Self) {
        match (&mut self.0, &other.0) {
            (Kept::Ends(ends), _) => ends.append(other.ends()),
            (Kept::Gathered(_, gathered), Kept::Gathered(_, other)) => gathered.append(other),
            // Made by another method; never happens.
            (Kept::Gathered(..), Kept::Ends(_)) => {}
        }
    }

    fn ends(&self) -> &head_tail::Sketch {
        match &self.0 {
            Kept::Ends(ends) => ends,
            Kept::Gathered(_, gathered) => gathered.ends(),
        }
    }

    /// Length of the text so far in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.ends().bytes()
    }

    /// Number of lines so far, including a last one without a line feed.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.ends().lines()
    }

    /// A prefix of everything that [`show`](Self::show) will return for this head budget, whatever
    /// text follows.
    #[must_use]
    pub fn settled(&self, head: usize) -> &str {
        match &self.0 {
            Kept::Ends(ends) => ends.settled(head),
            Kept::Gathered(..) => "",
        }
    }

    /// Returns a preview of at most `budget` bytes. For head and tail, `head` of them are for the
    /// head. If the budget is too small to be useful, the preview is empty.
    #[must_use]
    pub fn show(&self, head: usize, budget: usize) -> String {
        match &self.0 {
            Kept::Ends(ends) => ends.show(head, budget),
            Kept::Gathered(wanted, gathered) => gathered.show(*wanted, head, budget),
        }
    }
}
