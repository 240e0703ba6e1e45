//! Sketches of texts that arrive in chunks.

use crate::preview::choice::Preview;
use crate::preview::kept::KeptLines;
use crate::preview::plain::{Piece, PlainText};
use crate::preview::shapes;
use crate::preview::text::lines::Length;
use crate::preview::units::Cutter;

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    plain: PlainText,
    gathered: Gathered,
    /// The whole text, if it may be shown in its shape.
    whole: Option<String>,
    /// The length of the text so far.
    length: Length,
}

/// The part of a text's plain form: about a megabyte at most, or a few times the budget.
#[derive(Clone, Debug)]
struct Gathered {
    budget: usize,
    /// All of it, while that fits the budget.
    all: Option<String>,
    cutter: Cutter,
    lines: KeptLines,
}

impl Gathered {
    fn push(&mut self, piece: Piece<'_>) {
        self.hold(Some(piece.text));
        self.cutter.push(piece, &mut |unit| self.lines.add(unit));
    }

    fn hold(&mut self, more: Option<&str>) {
        let all = self.all.take().zip(more);
        let all = all.filter(|(all, more)| all.len() + more.len() <= self.budget);
        self.all = all.map(|(all, more)| all + more);
    }
}

impl Sketch {
    pub(crate) fn new(wanted: Preview, budget: usize) -> Self {
        Self {
            plain: PlainText::default(),
            gathered: Gathered {
                budget,
                all: Some(String::new()),
                cutter: Cutter::new(),
                lines: KeptLines::new(wanted, budget),
            },
            whole: (wanted == Preview::Mixed).then(String::new),
            length: Length::of(""),
        }
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        self.hold(text);
        self.plain
            .push(text, &mut |piece| self.gathered.push(piece));
        self.length = self.length.join(Length::of(text));
    }

    /// Holds more of the whole text, unless it is too much.
    fn hold(&mut self, more: &str) {
        let whole = self.whole.take();
        let whole = whole.filter(|whole| whole.len() + more.len() <= shapes::MAX_TEXT);
        self.whole = whole.and_then(|whole| {
            let is_known = whole.len() > shapes::BEGINNING;
            let whole = whole + more;
            (is_known || shapes::may_have_shape(&whole)).then_some(whole)
        });
    }

    /// Ends the text. Nothing of it is held any more but what a preview may show.
    pub(crate) fn end(&mut self) {
        let all = &mut self.gathered;
        self.plain.end(&mut |piece| all.push(piece));
        all.cutter.end(&mut |unit| all.lines.add(unit));
    }

    /// Length of the text so far in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes
    }

    /// Number of lines so far, including a last one without a line feed.
    #[must_use]
    pub(crate) fn lines(&self) -> u64 {
        self.length.end.lines()
    }

    /// Returns a preview of at most `budget` bytes of the text, which has ended or does so with a line feed. If they are
    /// too few to be useful, it is empty.
    #[must_use]
    pub(crate) fn show(&self, budget: usize) -> String {
        let is_long = self.bytes() > budget as u64;
        let whole = self.whole.as_deref().filter(|_| is_long);
        let shown = whole.and_then(|text| shapes::show(text, budget));
        let Gathered { all, lines, .. } = &self.gathered;
        let all = all.as_ref().filter(|all| all.len() <= budget);
        shown
            .or_else(|| all.cloned())
            .unwrap_or_else(|| lines.show(self.length, budget))
    }
}
