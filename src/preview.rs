//! What of a long text is worth its place: pure functions of the text and a budget.

mod choice;
mod cost;
mod excerpt;
mod gathered;
mod head_tail;
mod names;
mod sketch;
mod units;

use serde::{Deserialize, Serialize};

use choice::Wanted;
use gathered::Gathered;

pub(crate) use head_tail::longest_marks;
pub(crate) use sketch::Sketch;

/// How a text is previewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preview {
    /// The beginning and the end, half of the budget each, and a mark between them that says what is left out:
    /// `[… 43000 B, L51-760 …]` stands for 43 000 bytes, from line 51 to line 760.
    #[default]
    HeadTail,
    /// The lines with the most names, verbatim and with their numbers.
    Lines,
    /// Names in the text, each behind the number of a line that has it, so that just that line can be read back.
    Index,
    /// Lines and names, chosen together.
    Mixed,
}

impl Preview {
    /// What is shown of `text` in at most `budget` bytes, marks included. A text that fits is shown whole; a budget too small
    /// for anything sensible gives an empty preview.
    ///
    /// ```
    /// use offcut::preview::Preview;
    /// let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    /// let shown = Preview::HeadTail.show(&text, 100);
    /// assert!(shown.starts_with("line 1\nline 2\n") && shown.ends_with("line 999\nline 1000\n"));
    /// assert!(shown.contains("[… 8825 B, L8-998 …]"), "{shown}");
    /// ```
    #[must_use]
    pub fn show(self, text: &str, budget: usize) -> String {
        let mut sketch = self.sketch(budget);
        sketch.push(text);
        sketch.show(budget / 2, budget)
    }

    /// What has to be kept of a text that comes piece by piece, to show it in at most `budget` bytes.
    pub(crate) fn sketch(self, budget: usize) -> Sketch {
        let chosen = |wanted| Sketch::Gathered(wanted, Box::new(Gathered::new(budget)));
        match self {
            Self::HeadTail => Sketch::Ends(head_tail::Sketch::new(budget)),
            Self::Lines => chosen(Wanted::Lines),
            Self::Index => chosen(Wanted::Index),
            Self::Mixed => chosen(Wanted::Both),
        }
    }
}

/// Whether `preview` could be what some strategy shows of `text`, and holds nothing else.
///
/// A text that imitates a hint must not be cut down to the hint: what it holds beside what is stored would be lost.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    preview.is_empty() || preview == text || head_tail::holds_only(preview, text) || excerpt::holds_only(preview, text)
}
