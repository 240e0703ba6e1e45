//! Sketches of texts that arrive in chunks.

use std::borrow::Cow;

use crate::preview::choice::Preview;
use crate::preview::gathered::Gathered;
use crate::preview::plain::PlainText;
use crate::preview::shapes;
use crate::preview::text::lines::Position;

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    plain: PlainText,
    gathered: Gathered,
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
            gathered: Gathered::new(wanted, budget),
            whole: (wanted == Preview::Mixed).then(String::new),
            bytes: 0,
            end: Position::START,
        }
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        self.hold(Some(text));
        self.plain
            .push(text, &mut |piece| self.gathered.push(piece));
        self.bytes += text.len() as u64;
        self.end = self.end.after(text.as_bytes());
    }

    /// Appends the text of `other`, a sketch made by the same method. A line feed must come next.
    pub(crate) fn append(&mut self, other: &Self) {
        self.hold(other.whole.as_deref());
        self.gathered.append(&other.ended());
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

    /// Ends the text, so that nothing of it is held any more but what a preview may show.
    pub(crate) fn end(&mut self) {
        end(&mut self.plain, &mut self.gathered);
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

    /// Returns a preview of at most `budget` bytes. If they are too few to be useful, it is empty.
    #[must_use]
    pub(crate) fn show(&self, budget: usize) -> String {
        let whole = self.whole.as_deref().filter(|_| self.bytes > budget as u64);
        let shown = whole.and_then(|text| shapes::show(text, budget));
        shown.unwrap_or_else(|| self.ended().show(self.bytes, budget))
    }

    /// All of it, as if the text ended here.
    fn ended(&self) -> Cow<'_, Gathered> {
        if !self.plain.is_inside() && self.gathered.has_ended() {
            return Cow::Borrowed(&self.gathered);
        }
        let (mut plain, mut gathered) = (self.plain.clone(), self.gathered.clone());
        end(&mut plain, &mut gathered);
        Cow::Owned(gathered)
    }
}

fn end(plain: &mut PlainText, gathered: &mut Gathered) {
    plain.end(&mut |piece| gathered.push(piece));
    gathered.end();
}
