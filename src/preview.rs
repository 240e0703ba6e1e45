//! What of a long text is worth its place: pure functions of the text and a budget.

mod head_tail;

use serde::{Deserialize, Serialize};

pub(crate) use head_tail::{Sketch, longest_marks};

/// How a text is previewed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Preview {
    /// The beginning and the end, half of the budget each, and a mark between them that says what is left out:
    /// `[… 43000 B, L51-760 …]` stands for 43 000 bytes, from line 51 to line 760.
    #[default]
    HeadTail,
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
        match self {
            Self::HeadTail => head_tail::show(text, budget),
        }
    }

    /// What has to be kept of a text that comes piece by piece, to show it in at most `budget` bytes.
    pub(crate) fn sketch(self, budget: usize) -> Sketch {
        match self {
            Self::HeadTail => Sketch::new(budget),
        }
    }
}

/// Whether `preview` could be what some strategy shows of `text`, and holds nothing else.
///
/// A text that imitates a hint must not be cut down to the hint: what it holds beside what is stored would be lost.
pub(crate) fn holds_only(preview: &str, text: &str) -> bool {
    preview.is_empty() || preview == text || head_tail::holds_only(preview, text)
}
