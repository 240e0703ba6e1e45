//! Texts of a result that are cut, and the hint that replaces them.

use offcut_hint::Draft;

use crate::backend::Location;
use crate::hint::Hint;
use crate::session::Session;
use crate::tokens::Meter;

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
    pub(super) forms: Vec<Form>,
    /// The error of a user's preview.
    pub(super) problem: Option<String>,
}

/// A hint that names one location.
#[derive(Debug)]
pub(super) struct Form {
    hint: Hint,
    text: String,
}

impl Form {
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
            |form: &Form| form.hint.location == location && form.hint.flags.local == local;
        match self.forms.into_iter().find(is_there) {
            Some(form) => form.text,
            None => Form::new(session, self.draft, location, local).text,
        }
    }

    /// Number of bytes of its longest form, with the header on either side of the preview, so that
    /// a result shows the same pieces whole and streamed.
    pub(super) fn bytes(&self) -> u64 {
        let longest = self
            .forms
            .iter()
            .map(|form| form.hint.length_in_any_placement(&form.text));
        longest.max().unwrap_or_default() as u64
    }

    /// Returns `true` if it provably costs at most as many tokens as `text` in all its forms.
    /// Counts nothing, so `false` proves nothing.
    pub(super) fn costs_at_most(&self, text: &str, meter: &Meter) -> bool {
        self.forms.iter().all(|form| {
            let other = form.hint.with_other_placement().render();
            meter.costs_at_most(&form.text, text) && meter.costs_at_most(&other, text)
        })
    }

    /// Number of tokens of its most expensive form, with the header on either side of the preview.
    pub(super) fn tokens(&self, meter: &Meter) -> u64 {
        let costs = |form: &Form| {
            let other = form.hint.with_other_placement().render();
            meter.count_str(&form.text).max(meter.count_str(&other))
        };
        self.forms.iter().map(costs).max().unwrap_or_default()
    }
}
