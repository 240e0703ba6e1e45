//! Texts of a result that are cut, and the hint that replaces them.

use crate::hint::Draft;

use crate::backend::Location;
use crate::hint::Hint;
use crate::session::Session;

/// Texts that are stored as one and replaced by a hint.
#[derive(Debug)]
pub(super) struct Cut {
    /// Their slots, in order. The hint takes the first; the others leave the result.
    pub(super) slots: Vec<usize>,
    /// Number of this text among the result's stored texts, counted from 1.
    pub(super) number: usize,
    /// For several texts, a line with their lengths, which is stored after them. A line feed is
    /// stored after each text.
    pub(super) manifest: Option<String>,
    pub(super) draft: Draft,
    /// The hint for each location that it may get, the longest of each kind.
    pub(super) forms: Vec<HintForm>,
    /// The error of a user's preview.
    pub(super) problem: Option<String>,
}

/// A hint that names one location.
#[derive(Debug)]
pub(super) struct HintForm {
    hint: Hint,
    text: String,
}

impl HintForm {
    pub(super) fn new(
        session: &Session,
        mut draft: Draft,
        location: Option<Location>,
        local: bool,
    ) -> Self {
        draft.hint.flags.local = local;
        let hint = session.hint(draft, location);
        let text = hint.render();
        Self { hint, text }
    }
}

impl Cut {
    /// The text of the hint for the location of the original; `true` if that is in the spool.
    /// `None` means that the original is stored nowhere.
    pub(super) fn hint(self, session: &Session, stored: Option<(Location, bool)>) -> String {
        let (location, local) = stored.map_or((None, false), |(at, local)| (Some(at), local));
        let is_there =
            |form: &HintForm| form.hint.location == location && form.hint.flags.local == local;
        match self.forms.into_iter().find(is_there) {
            Some(form) => form.text,
            None => HintForm::new(session, self.draft, location, local).text,
        }
    }

    /// Number of bytes of its longest form.
    pub(super) fn bytes(&self) -> u64 {
        let longest = self.forms.iter().map(|form| form.text.len());
        longest.max().unwrap_or_default() as u64
    }
}
