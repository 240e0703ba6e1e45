//! Decides which texts of a result are cut, and what is shown of each. Does no I/O.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::file_read::reads_a_file;
use super::held::{ArrivingText, Held};
use super::job::Job;
use crate::backend::Location;
use crate::backend::content::{DIGEST_EXAMPLE, Id, MAX_WHOLE};
use crate::hint::{Draft, Kind};
use crate::report::Change;

/// More texts than this are stored as one: their hints would fill the context themselves.
const MAX_CUTS: usize = 32;

/// Texts that are stored as one and replaced by a hint.
#[derive(Debug)]
pub(super) struct Cut {
    /// Their slots, in order. The hint takes the first; the others leave the result.
    pub(super) slots: Vec<usize>,
    /// For several texts, a line with their lengths, which is stored after them. A line feed is
    /// stored after each text.
    pub(super) manifest: Option<String>,
    pub(super) draft: Draft,
    /// Number of bytes of its hint with the longest location that it may get.
    pub(super) bytes: u64,
    /// The error of a user's preview.
    pub(super) problem: Option<String>,
}

/// Plans the cuts of `held`, in order. `broken` is the slot of the text in which the output broke off, if
/// it did. If the result `stays`, only lost texts are cut, each to a preview.
pub(super) fn plan(
    job: Job<'_>,
    id: &Id,
    held: &Held<'_>,
    broken: Option<usize>,
    stays: bool,
) -> Vec<Cut> {
    let (lost, texts): (Vec<_>, Vec<_>) = held.texts().partition(|text| text.content.is_none());
    let planner = ResultPlanner::new(job, id, held, broken);
    let mut cuts = planner.cut_each(&lost);
    if !stays {
        cuts.extend(planner.cut_texts(&texts, &cuts));
    }
    cuts.sort_by_key(|cut| cut.slots.first().copied());
    cuts
}

/// Slots of texts that `cuts` leave whole, but that have left memory.
pub(super) fn missing(held: &Held<'_>, cuts: &[Cut]) -> Vec<usize> {
    let cut: HashSet<usize> = cuts.iter().flat_map(|cut| &cut.slots).copied().collect();
    let spilled = held.texts().filter(|text| text.spilled().is_some());
    let slots = spilled.map(|text| text.slot);
    slots.filter(|slot| !cut.contains(slot)).collect()
}

/// Decides about one result.
struct ResultPlanner<'a> {
    job: Job<'a>,
    broken: Option<usize>,
    /// The longest location that a text may get.
    location: Option<Location>,
}

impl<'a> ResultPlanner<'a> {
    fn new(job: Job<'a>, id: &Id, held: &Held<'_>, broken: Option<usize>) -> Self {
        // The number after the name is not known yet; six digits are as long as it can get.
        let number = if held.has_several_slots() { 999_999 } else { 1 };
        let target = job.target(id, number, DIGEST_EXAMPLE);
        let keys = target.keys(job.backend.now()).into_iter();
        let locations = keys.map(|key| job.backend.locate(&key));
        Self {
            job,
            broken,
            location: locations.max_by_key(|location| location.as_str().len()),
        }
    }

    /// Cuts each of `texts` to its share of a preview.
    fn cut_each(&self, texts: &[&ArrivingText]) -> Vec<Cut> {
        let share = self.share(texts, texts.len());
        texts.iter().map(|text| self.cut_to(text, share)).collect()
    }

    /// The part of the preview's budget that each text gets if all of `cut` are cut and the budget is
    /// split into `shares`.
    fn share(&self, cut: &[&ArrivingText], shares: usize) -> usize {
        let length = cut.iter().map(|text| text.length()).sum();
        self.job.preview_length.bytes_for(length) / shares.max(1)
    }

    fn cut_texts(&self, texts: &[&ArrivingText], lost: &[Cut]) -> Vec<Cut> {
        let mut longest: Vec<&ArrivingText> = texts.to_vec();
        longest.sort_by_key(|text| (Reverse(text.length()), text.slot));
        let at_least = self.previewed(&longest);
        let some = self.cut_longest(&longest, lost, at_least..=longest.len().min(MAX_CUTS));
        // A preview may gain nothing if the result is within the limit. It then stays whole if it
        // fits.
        let some = some.or_else(|| self.cut_longest(&longest, lost, 0..=at_least.checked_sub(1)?));
        some.unwrap_or_else(|| self.cut_all(texts, lost))
    }

    /// Number of the longest texts that are previewed even if the result is within the limit.
    fn previewed(&self, longest: &[&ArrivingText]) -> usize {
        let Job {
            session,
            policy,
            call,
            ..
        } = self.job;
        let Some(above) = policy.preview_above else {
            return 0;
        };
        if session.settings.keep_file_reads && reads_a_file(call) {
            return 0;
        }
        let long = longest
            .iter()
            .take_while(|text| text.length() > above as u64);
        let count = long.count().min(MAX_CUTS);
        // A result that contains hints was shown before. Its other texts stayed whole then, and
        // still do.
        let is_ours = |text: &&ArrivingText| {
            text.shown().is_some_and(|text| {
                session.apparent_hints(policy, &text).is_some() || session.has_hints(&text)
            })
        };
        if count == 0 || longest.iter().any(is_ours) {
            0
        } else {
            count
        }
    }

    /// Cuts as few of the longest texts as make the result fit, trying `counts` in order; `None` if
    /// none of them works.
    fn cut_longest(
        &self,
        longest: &[&ArrivingText],
        lost: &[Cut],
        counts: RangeInclusive<usize>,
    ) -> Option<Vec<Cut>> {
        for count in counts {
            let (cut, rest) = longest.split_at(count);
            // Try the cheap sum first: previews cost more.
            if !self.fit(lost.iter(), rest) {
                continue;
            }
            // Shares only get smaller from here on: if one cut gains nothing now, further counts
            // won't help.
            let share = self.share(cut, count);
            let cuts = cut.iter().map(|text| self.cut(text, share));
            let cuts: Option<Vec<Cut>> = cuts.collect();
            let mut cuts = cuts?;
            // Bytes that can't be shown are stored all the same.
            let mut whole = rest.iter().filter(|text| text.must_be_stored());
            let is_at_hand = whole.try_for_each(|text| {
                // A text that is not in memory is over the limit.
                let shown = text.shown()?.into_owned();
                cuts.push(self.cut_as(text, shown));
                Some(())
            });
            if is_at_hand.is_some() && self.fit(cuts.iter().chain(lost), rest) {
                return Some(cuts);
            }
        }
        None
    }

    /// Cuts all texts as one, and each document on its own; if that does not fit either, joins the
    /// documents too.
    fn cut_all(&self, texts: &[&ArrivingText], lost: &[Cut]) -> Vec<Cut> {
        let (json, plain): (Vec<&ArrivingText>, Vec<&ArrivingText>) =
            texts.iter().partition(|text| text.json.is_some());
        let share = self.share(texts, json.len() + 1);
        let documents = json.iter().map(|text| self.cut(text, share));
        let joined = match plain.as_slice() {
            // A single text is stored as it is.
            [only] => self.cut(only, share),
            _ => self.join(&plain, share),
        };
        let apart: Option<Vec<Cut>> = documents.chain([joined]).collect();
        let apart = apart.filter(|cuts| self.fit(cuts.iter().chain(lost), &[]));
        apart.unwrap_or_else(|| {
            let all = self.join(texts, self.share(texts, 1));
            all.into_iter().collect()
        })
    }

    /// Returns `true` if the hints, with the longest location each can get, and the other texts are
    /// together within the limit.
    fn fit<'c>(&self, cuts: impl Iterator<Item = &'c Cut>, rest: &[&ArrivingText]) -> bool {
        let others = rest.iter().filter(|text| !text.must_be_stored());
        let others = others.map(|text| text.length());
        !self
            .job
            .is_over_limit(cuts.map(|cut| cut.bytes).chain(others).sum())
    }

    /// Cuts the text to a preview, if that gains anything.
    fn cut(&self, text: &ArrivingText, share: usize) -> Option<Cut> {
        let cut = self.cut_to(text, share);
        Self::is_worth_it(&cut, &[text]).then_some(cut)
    }

    fn cut_to(&self, text: &ArrivingText, share: usize) -> Cut {
        let Job { policy, call, .. } = self.job;
        let own = || {
            policy.hooks.preview.as_ref()?;
            let shown = text.shown().filter(|_| text.length() <= MAX_WHOLE)?;
            let previewer = policy.previewer(&call.name, || call.arguments.clone());
            previewer.own(&shown, share)
        };
        let (preview, problem) = match own() {
            Some(Ok(preview)) => (preview, None),
            failed => (text.sketch.show(share), failed.and_then(Result::err)),
        };
        Cut {
            problem,
            ..self.cut_as(text, preview)
        }
    }

    fn cut_as(&self, text: &ArrivingText, preview: String) -> Cut {
        self.new_cut(&[text], None, text.bytes, text.sketch.lines(), preview)
    }

    /// Joins all texts into one object.
    fn join(&self, texts: &[&ArrivingText], share: usize) -> Option<Cut> {
        let lengths: Vec<u64> = texts.iter().map(|text| text.bytes).collect();
        let manifest = format!("{}\n", serde_json::json!({"offcut_parts": lengths}));
        let mut sketch = self.job.sketch();
        for text in texts {
            sketch.append(&text.sketch);
            sketch.push("\n");
        }
        let bytes = manifest.len() as u64 + lengths.iter().map(|length| length + 1).sum::<u64>();
        let (lines, preview) = (sketch.lines() + 1, sketch.show(share));
        let cut = self.new_cut(texts, Some(manifest), bytes, lines, preview);
        Self::is_worth_it(&cut, texts).then_some(cut)
    }

    /// Cuts `texts` to `preview`; `bytes` and `lines` are those of the stored content.
    fn new_cut(
        &self,
        texts: &[&ArrivingText],
        manifest: Option<String>,
        bytes: u64,
        lines: u64,
        preview: String,
    ) -> Cut {
        let Job { session, call, .. } = self.job;
        let mut draft = Draft::new(Kind::Truncated, bytes, &call.name, preview);
        draft.parts = texts.len();
        draft.hint.lines = Some(lines);
        draft.hint.flags.joined = manifest.is_some();
        for text in texts {
            draft.hint.flags.not_utf8 |= !text.is_utf8();
            draft.hint.flags.interrupted |= self.broken == Some(text.slot);
        }
        let hint = session.hint(draft.clone(), self.location.clone());
        Cut {
            slots: texts.iter().map(|text| text.slot).collect(),
            manifest,
            bytes: hint.len() as u64,
            draft,
            problem: None,
        }
    }

    /// Returns `true` if the hint is a gain, wherever it ends up. Text that can't be shown as it is must be
    /// stored anyway.
    fn is_worth_it(cut: &Cut, texts: &[&ArrivingText]) -> bool {
        let bytes = Change {
            before: texts.iter().map(|text| text.length()).sum(),
            after: cut.bytes,
        };
        cut.draft.hint.flags.not_utf8 || bytes.gains_uncounted()
    }
}
