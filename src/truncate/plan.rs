//! Decides which texts of a result are cut, and what is shown of each. Does no I/O.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::RangeInclusive;

use bytes::Bytes;

use super::file_read::reads_a_file;
use super::job::Job;
use crate::backend::Location;
use crate::backend::content::{DIGEST_EXAMPLE, Id, MAX_WHOLE};
use crate::hint::{Draft, Kind, OPENING};
use crate::preview::text::lines::count_lines;
use crate::report::Change;

/// More texts than this are stored as one: their hints would fill the context themselves.
const MAX_CUTS: usize = 32;

/// A text that counts towards the limit.
#[derive(Debug)]
pub(super) struct Text<'a> {
    /// Its place among the parts of the result.
    pub(super) slot: usize,
    pub(super) text: Cow<'a, str>,
    /// Its bytes, if they are not UTF-8.
    pub(super) raw: Option<&'a [u8]>,
}

impl Text<'_> {
    /// The original bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        self.raw.unwrap_or(self.text.as_bytes())
    }
}

/// Texts that are stored as one and replaced by a hint.
#[derive(Debug)]
pub(super) struct Cut<'a> {
    /// In order. The hint takes the place of the first; the others leave the result.
    pub(super) texts: Vec<&'a Text<'a>>,
    /// For several texts, a line with their lengths, which is stored after them. A line feed is
    /// stored after each text.
    manifest: Option<String>,
    pub(super) draft: Draft,
    /// Number of bytes of its hint with the longest location that it may get.
    bytes: u64,
    /// The error of a user's preview.
    pub(super) problem: Option<String>,
}

impl Cut<'_> {
    /// The content to store.
    pub(super) fn content(&self) -> Bytes {
        let mut content = Vec::new();
        for text in &self.texts {
            content.extend_from_slice(text.bytes());
            content.extend(self.manifest.is_some().then_some(b'\n'));
        }
        content.extend_from_slice(self.manifest.as_deref().unwrap_or_default().as_bytes());
        content.into()
    }
}

/// Plans the cuts among the `texts` of a result of `parts` parts, in order. `broken` is the slot of the text in which
/// the output broke off, if it did.
pub(super) fn plan<'a>(
    job: Job<'_>,
    id: &Id,
    texts: &'a [Text<'a>],
    parts: usize,
    broken: Option<usize>,
) -> Vec<Cut<'a>> {
    let mut longest: Vec<&Text<'_>> = texts.iter().collect();
    longest.sort_by_key(|text| (Reverse(text.text.len()), text.slot));
    let at_least = previewed(job, &longest);
    let bytes: u64 = texts.iter().map(|text| text.text.len() as u64).sum();
    if at_least == 0 && bytes <= job.limit && texts.iter().all(|text| text.raw.is_none()) {
        return Vec::new();
    }
    // The number after the name is not known yet; six digits are as long as it can get.
    let number = if parts > 1 { 999_999 } else { 1 };
    let target = job.target(id, number, DIGEST_EXAMPLE);
    let keys = target.keys(job.backend.now()).into_iter();
    let locations = keys.map(|key| job.backend.locate(&key));
    let planner = ResultPlanner {
        job,
        broken,
        location: locations.max_by_key(|location| location.as_str().len()),
    };
    let some = planner.cut_longest(&longest, at_least..=longest.len().min(MAX_CUTS));
    // A preview may gain nothing if the result is within the limit. It then stays whole if it
    // fits.
    let some = some.or_else(|| planner.cut_longest(&longest, 0..=at_least.checked_sub(1)?));
    let mut cuts = some.unwrap_or_else(|| planner.join(texts).into_iter().collect());
    cuts.sort_by_key(|cut| cut.texts[0].slot);
    cuts
}

/// Number of the longest texts that are previewed even if the result is within the limit.
fn previewed(job: Job<'_>, longest: &[&Text<'_>]) -> usize {
    let (session, policy) = (job.session, job.policy);
    let Some(above) = policy.preview_above.filter(|_| !policy.skip_truncation) else {
        return 0;
    };
    if session.settings.keep_file_reads && reads_a_file(job.call) {
        return 0;
    }
    let long = longest.iter().take_while(|text| text.text.len() > above);
    // A result that contains hints was shown before. Its other texts stayed whole then, and still do.
    let is_ours = |text: &&Text<'_>| {
        let text = &*text.text;
        text.contains(OPENING)
            && (session.apparent_hints(policy, text).is_some() || session.has_hints(text))
    };
    match long.count().min(MAX_CUTS) {
        count if count > 0 && !longest.iter().any(is_ours) => count,
        _ => 0,
    }
}

/// Decides about one result.
struct ResultPlanner<'j> {
    job: Job<'j>,
    broken: Option<usize>,
    /// The longest location that a text may get.
    location: Option<Location>,
}

impl ResultPlanner<'_> {
    /// Cuts as few of the longest texts as make the result fit, trying `counts` in order; `None` if
    /// none of them works.
    fn cut_longest<'a>(
        &self,
        longest: &[&'a Text<'a>],
        counts: RangeInclusive<usize>,
    ) -> Option<Vec<Cut<'a>>> {
        for count in counts {
            let (cut, rest) = longest.split_at(count);
            // Try the cheap sum first: previews cost more.
            if !self.fit(&[], rest) {
                continue;
            }
            // Shares only get smaller from here on: if one cut gains nothing now, further counts
            // won't help.
            let length = cut.iter().map(|text| text.text.len() as u64).sum();
            let share = self.job.policy.preview_length.bytes_for(length) / count.max(1);
            let cuts = cut.iter().map(|text| self.cut(text, share));
            let mut cuts = cuts.collect::<Option<Vec<_>>>()?;
            // Bytes that can't be shown are stored all the same.
            let stored = rest.iter().filter(|text| text.raw.is_some());
            cuts.extend(stored.filter_map(|text| {
                let preview = text.text.clone().into_owned();
                self.new_cut(vec![text], None, &text.text, preview)
            }));
            if self.fit(&cuts, rest) {
                return Some(cuts);
            }
        }
        None
    }

    /// Returns `true` if the hints, with the longest location each can get, and the other texts are
    /// together within the limit.
    fn fit(&self, cuts: &[Cut<'_>], rest: &[&Text<'_>]) -> bool {
        let others = rest.iter().filter(|text| text.raw.is_none());
        let others = others.map(|text| text.text.len() as u64);
        let bytes: u64 = cuts.iter().map(|cut| cut.bytes).chain(others).sum();
        bytes <= self.job.limit
    }

    /// Cuts the text to a preview, if that gains anything.
    fn cut<'a>(&self, text: &'a Text<'a>, share: usize) -> Option<Cut<'a>> {
        let Job { policy, call, .. } = self.job;
        let previewer = policy.previewer(&call.name, || call.arguments.clone());
        let (preview, problem) = match text.text.len() as u64 <= MAX_WHOLE {
            true => previewer.show(&text.text, text.bytes().len(), share),
            false => {
                let stored = text.bytes().len();
                (policy.preview.show_decoded(&text.text, stored, share), None)
            }
        };
        let cut = self.new_cut(vec![text], None, &text.text, preview)?;
        Some(Cut { problem, ..cut })
    }

    /// Joins all texts into one object.
    fn join<'a>(&self, texts: &'a [Text<'a>]) -> Option<Cut<'a>> {
        let (mut joined, mut lengths, mut length) = (String::new(), Vec::new(), 0);
        for text in texts {
            joined.push_str(&text.text);
            joined.push('\n');
            lengths.push(text.bytes().len());
            length += text.text.len() as u64;
        }
        let manifest = format!("{}\n", serde_json::json!({"offcut_parts": lengths}));
        let budget = self.job.policy.preview_length.bytes_for(length);
        let stored = lengths.iter().map(|length| length + 1).sum();
        let preview = self
            .job
            .policy
            .preview
            .show_decoded(&joined, stored, budget);
        joined.push_str(&manifest);
        self.new_cut(texts.iter().collect(), Some(manifest), &joined, preview)
    }

    /// Cuts `texts` to `preview`, if the hint is a gain, wherever it ends up. What is stored reads as `text`. Text that
    /// can't be shown as it is must be stored anyway.
    fn new_cut<'a>(
        &self,
        texts: Vec<&'a Text<'a>>,
        manifest: Option<String>,
        text: &str,
        preview: String,
    ) -> Option<Cut<'a>> {
        let Job { session, call, .. } = self.job;
        let bytes: usize = texts.iter().map(|text| text.bytes().len()).sum();
        let joined = manifest.as_ref().map_or(0, |line| texts.len() + line.len());
        let bytes = (bytes + joined) as u64;
        let mut draft = Draft::new(Kind::Truncated, bytes, &call.name, preview);
        draft.parts = texts.len();
        draft.hint.lines = Some(count_lines(text.as_bytes()));
        draft.hint.flags.joined = manifest.is_some();
        let mut length = 0;
        for text in &texts {
            length += text.text.len() as u64;
            draft.hint.flags.not_utf8 |= text.raw.is_some();
            draft.hint.flags.interrupted |= self.broken == Some(text.slot);
        }
        let hint = session.hint(draft.clone(), self.location.clone());
        let bytes = hint.len() as u64;
        let is_worth_it = draft.hint.flags.not_utf8 || bytes <= Change::most_after(length);
        is_worth_it.then_some(Cut {
            texts,
            manifest,
            bytes,
            draft,
            problem: None,
        })
    }
}
