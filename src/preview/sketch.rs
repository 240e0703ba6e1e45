//! Sketches of texts that arrive in chunks.

use crate::preview::choice::Preview;
use crate::preview::excerpt::Length;
use crate::preview::head_tail::HeadTailSketch;
use crate::preview::kept::KeptLines;
use crate::preview::plain::{Piece, PlainText};
use crate::preview::shapes;
use crate::preview::text::lines::Position;
use crate::preview::units::Cutter;

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    plain: PlainText,
    /// The part of its plain form: about a megabyte at most, plus a few times the budget.
    ends: HeadTailSketch,
    cutter: Cutter,
    lines: KeptLines,
    /// The whole text, if it may be shown in its shape.
    whole: Option<String>,
    /// Length of the text so far in bytes, and its end.
    bytes: u64,
    end: Position,
}

impl Sketch {
    pub(crate) fn new(wanted: Preview, budget: usize) -> Self {
        Self {
            plain: PlainText::default(),
            ends: HeadTailSketch::new(budget),
            cutter: Cutter::new(),
            lines: KeptLines::new(wanted),
            whole: (wanted == Preview::Mixed).then(String::new),
            bytes: 0,
            end: Position::START,
        }
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        self.hold(Some(text));
        self.make_plain(|plain, see| plain.push(text, see));
        self.bytes += text.len() as u64;
        self.end = self.end.after(text.as_bytes());
    }

    /// Appends the text of `other`, a sketch made by the same method that has ended. A line feed must come next.
    pub(crate) fn append(&mut self, other: &Self) {
        self.hold(other.whole.as_deref());
        self.ends.append(&other.ends);
        let before = self.cutter.line() - 1;
        self.lines.append(&other.lines, before);
        self.cutter.skip_to(before + other.cutter.line());
        self.bytes += other.bytes;
        self.end = self.end.join(other.end);
    }

    /// Holds more of the whole text; `None` is more than may be held.
    fn hold(&mut self, more: Option<&str>) {
        let whole = self.whole.take().zip(more);
        let whole = whole.filter(|(whole, more)| whole.len() + more.len() <= shapes::MAX_TEXT);
        self.whole = whole.and_then(|(whole, more)| {
            let is_known = whole.len() > shapes::BEGINNING;
            let whole = whole + more;
            (is_known || shapes::may_have_shape(&whole)).then_some(whole)
        });
    }

    /// Ends the text. Nothing of it is held any more but what a preview may show.
    pub(crate) fn end(&mut self) {
        self.make_plain(|plain, see| plain.end(see));
        self.cutter.end(&mut |unit| self.lines.add(unit));
        self.ends.shrink();
    }

    fn make_plain(&mut self, more: impl FnOnce(&mut PlainText, &mut dyn FnMut(Piece<'_>))) {
        more(&mut self.plain, &mut |piece| {
            self.ends.push(piece);
            self.cutter.push(piece, &mut |unit| self.lines.add(unit));
        });
    }

    /// Length of the text so far in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of lines so far, including a last one without a line feed.
    #[must_use]
    pub(crate) fn lines(&self) -> u64 {
        self.end.lines()
    }

    /// Returns a preview of at most `budget` bytes of the text, which has ended or does so with a line feed. If they are
    /// too few to be useful, it is empty.
    #[must_use]
    pub(crate) fn show(&self, budget: usize) -> String {
        let whole = self.whole.as_deref().filter(|_| self.bytes > budget as u64);
        let shown = whole.and_then(|text| shapes::show(text, budget));
        let length = Length {
            bytes: self.bytes,
            feeds: self.end.feeds(),
        };
        shown.unwrap_or_else(|| self.lines.show(&self.ends, length, budget))
    }
}
