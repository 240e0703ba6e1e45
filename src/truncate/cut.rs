//! Which texts of a result are cut, and what is shown of each: a pure decision.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use super::file_read::reads_a_file;
use super::splitter::{Size, Slot, first_head, has_settled_head, size, size_of_text, sure_gain};
use super::text::Text;
use crate::backend::Location;
use crate::config::Policy;
use crate::content::ToolCall;
use crate::hint::{Facts, Hint, Kind, Notes, Placement};
use crate::preview::longest_marks;
use crate::session::Session;
use crate::store::{DIGEST_EXAMPLE, Id, MAX_WHOLE, Name, Phase, Target};

/// More texts than this are stored as one: so many hints would fill the context themselves.
const MAX_CUTS: usize = 32;

/// A text that is to be stored and replaced by a hint: the hint that is to be, but for its
/// location.
#[derive(Debug)]
pub(super) struct Cut {
    /// The slot that it replaces.
    pub(super) slot: usize,
    /// Which of the result's stored texts it is, counted from 1.
    pub(super) number: usize,
    /// What is stored, if it is more than the slot's own bytes.
    pub(super) joined: Option<Joined>,
    bytes: u64,
    lines: u64,
    notes: Notes,
    preview: String,
    /// What a user's preview did wrong.
    pub(super) problem: Option<String>,
}

/// Several texts that are stored as one: a line with their lengths, then each with a line feed
/// behind it.
#[derive(Debug)]
pub(super) struct Joined {
    pub(super) manifest: String,
    /// The slots, in order. All but the first leave the result.
    pub(super) slots: Vec<usize>,
}

impl Cut {
    pub(super) fn hint(
        &self,
        session: &Session,
        tool: &str,
        location: Option<Location>,
        local: bool,
    ) -> Hint {
        let mut hint = Hint::new(Kind::Truncated, self.bytes);
        hint.lines = Some(self.lines);
        hint.notes = Notes {
            local,
            ..self.notes
        };
        hint.location = location;
        let parts = self.joined.as_ref().map_or(1, |joined| joined.slots.len());
        let facts = Facts {
            tool,
            reader: session.reader(),
            parts,
            ..Facts::default()
        };
        hint.prose = session.prose().of_hint(&hint, facts);
        hint.preview.clone_from(&self.preview);
        hint
    }
}

/// A text of a result, before it is decided about.
#[derive(Clone, Copy)]
struct Candidate<'s> {
    slot: usize,
    text: &'s Text,
    /// Whether it may have been shown in part already, and so keeps the head that it was shown
    /// with.
    is_first: bool,
}

impl Candidate<'_> {
    /// Whether it can't stay as it is, however short the others are.
    fn must_be_stored(self) -> bool {
        !self.text.is_utf8() || self.text.json.is_some() || self.text.is_several
    }
}

pub(super) fn plan(
    session: &Session,
    policy: &Policy,
    call: &ToolCall,
    id: &Id,
    slots: &[Slot],
    broken: Option<usize>,
) -> Vec<Cut> {
    Planner {
        session,
        policy,
        call,
        id,
        broken,
        is_several: slots.len() > 1,
    }
    .plan(slots)
}

/// The hints of what is lost already, where everything else passes.
pub(super) fn lost(
    session: &Session,
    policy: &Policy,
    call: &ToolCall,
    id: &Id,
    slots: &[Slot],
) -> Vec<Cut> {
    Planner {
        session,
        policy,
        call,
        id,
        broken: None,
        is_several: slots.len() > 1,
    }
    .lost(slots)
    .0
}

struct Planner<'a> {
    session: &'a Session,
    policy: &'a Policy,
    call: &'a ToolCall,
    id: &'a Id,
    /// The slot of the text in which the output broke off.
    broken: Option<usize>,
    is_several: bool,
}

impl Planner<'_> {
    /// What is lost, shown as a preview whatever the others are; and the others.
    fn lost<'s>(&self, slots: &'s [Slot]) -> (Vec<Cut>, Vec<Candidate<'s>>) {
        let mut is_first = true;
        let texts = slots
            .iter()
            .enumerate()
            .filter_map(|(slot, part)| match part {
                Slot::Text(text) => Some(Candidate {
                    slot,
                    text,
                    is_first: std::mem::take(&mut is_first),
                }),
                Slot::Part(_) | Slot::Shown => None,
            });
        let (lost, texts): (Vec<_>, Vec<_>) = texts.partition(|candidate| candidate.text.is_lost());
        let cut = |candidate: &Candidate<'_>| {
            self.cut_to(*candidate, self.share(&lost, lost.len(), *candidate))
        };
        (lost.iter().map(cut).collect(), texts)
    }

    fn plan(&self, slots: &[Slot]) -> Vec<Cut> {
        let (mut cuts, texts) = self.lost(slots);
        cuts.extend(self.cut_texts(&texts, &cuts));
        // Names in the order of the parts: `<id>`, `<id>-2`, …
        cuts.sort_by_key(|cut| cut.slot);
        for (cut, number) in cuts.iter_mut().zip(1..) {
            cut.number = number;
        }
        cuts
    }

    /// What of the preview's budget `candidate` gets, for head and all, where `cut` are cut into so
    /// many shares.
    ///
    /// The first text may have been shown as far as its head before anybody knew of the others, so
    /// it keeps that, and what the marks behind it take, without which there is no preview; what is
    /// left is shared equally.
    fn share(&self, cut: &[Candidate<'_>], shares: usize, candidate: Candidate<'_>) -> Budget {
        let all = self
            .policy
            .preview_length
            .of(cut.iter().map(|candidate| candidate.text.length()).sum());
        if !has_settled_head(self.policy) || !cut.iter().any(|candidate| candidate.is_first) {
            let all = all / shares.max(1);
            return Budget { head: all / 2, all };
        }
        let head = first_head(self.policy);
        let first = head + longest_marks() + 1;
        let share = (all - first) / shares.max(1);
        if candidate.is_first {
            Budget {
                head,
                all: first + share,
            }
        } else {
            Budget {
                head: share / 2,
                all: share,
            }
        }
    }

    fn cut_texts(&self, texts: &[Candidate<'_>], lost: &[Cut]) -> Vec<Cut> {
        let mut longest: Vec<Candidate<'_>> = texts.to_vec();
        longest.sort_by_key(|candidate| (Reverse(candidate.text.length()), candidate.slot));
        let at_least = self.previewed(&longest);
        let some = self.cut_longest(&longest, lost, at_least..=longest.len().min(MAX_CUTS));
        // A preview within the limit may be no gain: what fits stays whole.
        let some = some.or_else(|| self.cut_longest(&longest, lost, 0..=at_least.checked_sub(1)?));
        some.unwrap_or_else(|| self.cut_all(texts, lost))
    }

    /// How many of the longest texts are previewed even where all are within the limit.
    fn previewed(&self, longest: &[Candidate<'_>]) -> usize {
        let keeps = self.session.settings().keep_file_reads;
        let Some(above) = self
            .policy
            .preview_above
            .filter(|_| !(keeps && reads_a_file(self.call)))
        else {
            return 0;
        };
        let long = longest
            .iter()
            .take_while(|candidate| candidate.text.length() > above as u64);
        let count = long.count().min(MAX_CUTS);
        // A result with hints in it was shown before: the texts beside them stayed whole, and stay.
        let is_ours = |candidate: &Candidate<'_>| {
            candidate
                .text
                .shown()
                .is_some_and(|text| self.session.own_hints(self.policy, &text).is_some())
        };
        if count == 0 || longest.iter().any(is_ours) {
            0
        } else {
            count
        }
    }

    /// Cuts as few of the longest texts as make the result fit; `None` if none of these numbers of
    /// them does.
    fn cut_longest(
        &self,
        longest: &[Candidate<'_>],
        lost: &[Cut],
        counts: RangeInclusive<usize>,
    ) -> Option<Vec<Cut>> {
        for count in counts {
            let (cut, rest) = longest.split_at(count);
            // Previews cost more than sums.
            if !self.fit(lost.iter(), rest) {
                continue;
            }
            // Shares only get smaller from here on: once a cut is no gain, more cuts are none
            // either.
            let cuts: Option<Vec<Cut>> = cut
                .iter()
                .map(|candidate| self.cut(*candidate, self.share(cut, count, *candidate)))
                .collect();
            let mut cuts = cuts?;
            // Bytes that can't be shown are stored all the same.
            let mut whole = rest.iter().filter(|candidate| candidate.must_be_stored());
            let is_at_hand = whole.try_for_each(|candidate| {
                cuts.push(self.shown_whole(*candidate)?);
                Some(())
            });
            if is_at_hand.is_some() && self.fit(cuts.iter().chain(lost), rest) {
                return Some(cuts);
            }
        }
        None
    }

    /// All texts as one, and each document for itself; where that does not fit either, the
    /// documents too.
    fn cut_all(&self, texts: &[Candidate<'_>], lost: &[Cut]) -> Vec<Cut> {
        let (json, plain): (Vec<Candidate<'_>>, Vec<Candidate<'_>>) = texts
            .iter()
            .partition(|candidate| candidate.text.json.is_some());
        let shares = json.len() + 1;
        let documents = json
            .iter()
            .map(|candidate| self.cut(*candidate, self.share(texts, shares, *candidate)));
        let joined = plain
            .first()
            .and_then(|first| match self.share(texts, shares, *first) {
                // One text is stored as it is.
                share if plain.len() == 1 => self.cut(*first, share),
                share => self.join(&plain, share),
            });
        let apart: Option<Vec<Cut>> = documents.chain([joined]).collect();
        match apart.filter(|cuts| self.fit(cuts.iter().chain(lost), &[])) {
            Some(cuts) => cuts,
            None => {
                let all = texts
                    .first()
                    .and_then(|first| self.join(texts, self.share(texts, 1, *first)));
                all.into_iter().collect()
            }
        }
    }

    /// Whether the hints, with the longest location each can get, and the other texts are within
    /// the limit together.
    fn fit<'c>(&self, cuts: impl Iterator<Item = &'c Cut>, rest: &[Candidate<'_>]) -> bool {
        let limit = self.policy.limit;
        let hints = cuts.map(|cut| {
            let hints = self
                .hints(cut)
                .into_iter()
                .map(|hint| size_of_text(self.session, limit, &hint));
            hints.reduce(Size::max).unwrap_or_default()
        });
        let others = rest.iter().filter(|candidate| !candidate.must_be_stored());
        let others = others.map(|candidate| size(self.session, limit, candidate.text));
        !hints
            .chain(others)
            .fold(Size::default(), Size::plus)
            .is_over(limit)
    }

    /// The text cut to a preview, if that gains anything. What can't be shown as it is has to be
    /// stored anyway.
    fn cut(&self, candidate: Candidate<'_>, budget: Budget) -> Option<Cut> {
        let cut = self.cut_to(candidate, budget);
        let is_gain = !candidate.text.is_utf8() || self.is_gain(&cut, &[candidate]);
        is_gain.then_some(cut)
    }

    fn cut_to(&self, candidate: Candidate<'_>, Budget { head, all }: Budget) -> Cut {
        let text = candidate.text;
        let own = || {
            let shown = text.shown().filter(|_| text.length() <= MAX_WHOLE)?;
            let previewer = self
                .policy
                .previewer(&self.call.name, || self.call.arguments.clone());
            previewer.own(&shown, all)
        };
        match own().transpose() {
            Ok(Some(preview)) => self.cut_as(candidate, preview),
            Ok(None) => self.cut_as(candidate, text.sketch.show(head, all)),
            Err(problem) => Cut {
                problem: Some(problem),
                ..self.cut_as(candidate, text.sketch.show(head, all))
            },
        }
    }

    /// `None` for a text that is not in memory: it is over the limit.
    fn shown_whole(&self, candidate: Candidate<'_>) -> Option<Cut> {
        Some(self.cut_as(candidate, candidate.text.shown()?.into_owned()))
    }

    fn cut_as(&self, candidate: Candidate<'_>, preview: String) -> Cut {
        let Candidate { slot, text, .. } = candidate;
        let notes = Notes {
            not_utf8: !text.is_utf8(),
            interrupted: self.broken == Some(slot),
            ..Notes::default()
        };
        Cut {
            slot,
            number: 1,
            joined: None,
            bytes: text.bytes,
            lines: text.sketch.lines(),
            notes,
            preview,
            problem: None,
        }
    }

    /// All texts as one object.
    fn join(&self, texts: &[Candidate<'_>], Budget { head, all }: Budget) -> Option<Cut> {
        let first = texts.first()?;
        let lengths: Vec<u64> = texts.iter().map(|candidate| candidate.text.bytes).collect();
        let mut manifest = serde_json::json!({"offcut_parts": lengths}).to_string();
        manifest.push('\n');
        let mut sketch = self
            .policy
            .preview
            .sketch(self.policy.preview_length.at_most());
        for candidate in texts {
            sketch.append(&candidate.text.sketch);
            sketch.push("\n");
        }
        let notes = Notes {
            not_utf8: texts.iter().any(|candidate| !candidate.text.is_utf8()),
            interrupted: texts
                .iter()
                .any(|candidate| self.broken == Some(candidate.slot)),
            joined: true,
            local: false,
        };
        let cut = Cut {
            slot: first.slot,
            number: 1,
            bytes: manifest.len() as u64 + lengths.iter().map(|length| length + 1).sum::<u64>(),
            lines: sketch.lines() + 1,
            joined: Some(Joined {
                manifest,
                slots: texts.iter().map(|candidate| candidate.slot).collect(),
            }),
            notes,
            preview: sketch.show(head, all),
            problem: None,
        };
        (notes.not_utf8 || self.is_gain(&cut, texts)).then_some(cut)
    }

    /// Whether the hint is fewer bytes and no more tokens than the texts, wherever it ends up.
    fn is_gain(&self, cut: &Cut, texts: &[Candidate<'_>]) -> bool {
        let bytes: u64 = texts.iter().map(|candidate| candidate.text.length()).sum();
        let hints = self.hints(cut);
        let costs = || {
            hints
                .iter()
                .map(|hint| self.session.meter().text(hint))
                .max()
                .unwrap_or_default()
        };
        let (most, meter) = (sure_gain(self.policy.limit), self.session.meter());
        let at_least = texts
            .iter()
            .map(|candidate| candidate.text.tokens_at_least(most, meter));
        hints.iter().all(|hint| (hint.len() as u64) < bytes) && {
            let tokens = at_least.fold(0, u64::saturating_add);
            tokens == u64::MAX || costs() <= tokens
        }
    }

    /// Every form that the hint can get, the longest of each kind: wherever it is stored, and
    /// before or behind its preview.
    fn hints(&self, cut: &Cut) -> Vec<String> {
        let mut hints = Vec::new();
        for (location, local) in self.locations() {
            let mut hint = cut.hint(self.session, &self.call.name, Some(location), local);
            for placement in [Placement::First, Placement::Last] {
                hint.placement = placement;
                hints.push(hint.render());
            }
        }
        hints
    }

    /// Where it may be stored, and whether that is the spool.
    fn locations(&self) -> Vec<(Location, bool)> {
        let Some(backend) = self.policy.backend() else {
            return Vec::new();
        };
        // The number behind the name is not known yet: one of six digits is as long as any.
        let numbers = if self.is_several {
            &[1, 999_999][..]
        } else {
            &[1]
        };
        let spool = backend.spool();
        let stores = [
            Some((backend, false)),
            spool.as_ref().map(|spool| (spool, true)),
        ];
        let mut locations = Vec::new();
        for number in numbers {
            let name = self
                .id
                .name()
                .unwrap_or_else(|| Name::of_digest(DIGEST_EXAMPLE.to_owned()))
                .part(*number);
            let target =
                Target::with_digest(self.session.roots(), Phase::Truncate, &name, DIGEST_EXAMPLE);
            for (store, local) in stores.into_iter().flatten() {
                locations.extend(target.keys().map(|key| (store.locate(key), local)));
            }
        }
        locations
    }
}

/// What a preview may take, in bytes.
#[derive(Clone, Copy)]
struct Budget {
    head: usize,
    all: usize,
}
