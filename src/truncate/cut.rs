//! Which texts of a result are cut, and what is shown of each: a pure decision.

use std::cmp::Reverse;

use bytes::Bytes;

use super::stored_bytes;
use crate::backend::Location;
use crate::config::{Limit, Policy};
use crate::content::{Part, Piece};
use crate::hint::{Facts, Hint, Kind, Notes, count_lines};
use crate::session::Session;
use crate::store::{Name, Phase, Target};

/// More texts than this are stored as one: so many hints would fill the context themselves.
const MAX_CUTS: usize = 32;

/// A text that is to be stored and replaced by a hint.
#[derive(Debug)]
pub(super) struct Cut {
    pub(super) draft: Draft,
    /// The other pieces that are stored with it and leave the result.
    pub(super) drops: Vec<usize>,
}

/// The hint that is to be, but for its location.
#[derive(Debug)]
pub(super) struct Draft {
    /// The piece that it replaces.
    pub(super) index: usize,
    /// Which of the result's stored texts it is, counted from 1.
    pub(super) number: usize,
    pub(super) content: Bytes,
    lines: u64,
    notes: Notes,
    parts: usize,
    preview: String,
}

impl Draft {
    pub(super) fn hint(&self, session: &Session, location: Option<Location>) -> Hint {
        let mut hint = Hint::new(Kind::Truncated, self.content.len() as u64);
        hint.lines = Some(self.lines);
        hint.notes = self.notes;
        hint.location = location;
        let facts = Facts { reader: session.reader(), parts: self.parts, ..Facts::default() };
        hint.prose = session.language().prose().of_hint(&hint, facts);
        hint.preview.clone_from(&self.preview);
        hint
    }
}

/// A text of a result, before it is decided about.
#[derive(Clone, Copy)]
struct Text<'p> {
    index: usize,
    shown: &'p str,
    not_utf8: bool,
    is_json: bool,
}

impl Text<'_> {
    /// Whether it can't stay as it is, however short the others are.
    fn must_be_stored(self) -> bool {
        self.not_utf8 || self.is_json
    }
}

/// Whether the texts together are strictly more than the limit.
pub(super) fn is_over<'t>(session: &Session, limit: Limit, texts: impl IntoIterator<Item = &'t str> + Clone) -> bool {
    match limit {
        Limit::Bytes(bytes) => texts.into_iter().map(str::len).sum::<usize>() > bytes,
        Limit::Tokens { tokens } => texts.into_iter().map(|text| session.meter().text(text)).sum::<u64>() > tokens,
    }
}

struct Planner<'a> {
    session: &'a Session,
    policy: &'a Policy,
    id: &'a str,
    pieces: &'a [Piece],
    interrupted: bool,
}

pub(super) fn plan(session: &Session, policy: &Policy, id: &str, pieces: &[Piece], interrupted: bool) -> Vec<Cut> {
    Planner { session, policy, id, pieces, interrupted }.plan()
}

impl Planner<'_> {
    fn plan(&self) -> Vec<Cut> {
        let json: Vec<(usize, String)> = self
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(index, piece)| match piece {
                Piece::Part(Part::Json(value)) => Some((index, value.to_string())),
                _ => None,
            })
            .filter(|(_, text)| is_over(self.session, self.policy.limit, [text.as_str()]))
            .collect();
        // A JSON document counts for itself; once it is shown as a hint, the hint is a text like the others.
        let mut json = json.iter().peekable();
        let texts: Vec<Text<'_>> = self
            .pieces
            .iter()
            .enumerate()
            .filter_map(|(index, piece)| match piece {
                Piece::Part(Part::Text(text)) => Some(Text { index, shown: text, not_utf8: false, is_json: false }),
                Piece::NotUtf8 { text, .. } => Some(Text { index, shown: text, not_utf8: true, is_json: false }),
                Piece::Part(Part::Json(_)) => {
                    let (_, shown) = json.next_if(|(at, _)| *at == index)?;
                    Some(Text { index, shown, not_utf8: false, is_json: true })
                }
                Piece::Part(_) => None,
            })
            .collect();
        let mut cuts = self.cut_texts(&texts);
        // Names in the order of the parts: `<id>`, `<id>-2`, …
        cuts.sort_by_key(|cut| cut.draft.index);
        for (cut, number) in cuts.iter_mut().zip(1..) {
            cut.draft.number = number;
        }
        cuts
    }

    fn cut_texts(&self, texts: &[Text<'_>]) -> Vec<Cut> {
        let mut longest: Vec<Text<'_>> = texts.to_vec();
        longest.sort_by_key(|text| (Reverse(text.shown.len()), text.index));
        for count in 0..=longest.len().min(MAX_CUTS) {
            let (cut, rest) = longest.split_at(count);
            let share = self.policy.preview_length / count.max(1);
            // Shares only get smaller from here on: once a cut is no gain, more cuts are none either.
            let Some(mut cuts) = cut.iter().map(|text| self.cut(*text, share)).collect::<Option<Vec<_>>>() else {
                break;
            };
            // Bytes that can't be shown are stored all the same.
            let whole = rest.iter().filter(|text| text.must_be_stored());
            cuts.extend(whole.map(|text| Cut { draft: self.draft(*text, text.shown.to_owned()), drops: Vec::new() }));
            if self.fits(&cuts, rest) {
                return cuts;
            }
        }
        // All texts as one, and each document for itself; where that does not fit either, the documents too.
        let (json, plain): (Vec<Text<'_>>, Vec<Text<'_>>) = texts.iter().partition(|text| text.is_json);
        let share = self.policy.preview_length / (json.len() + 1);
        let documents = json.iter().map(|text| self.cut(*text, share));
        let apart: Option<Vec<Cut>> = documents.chain([self.join(&plain, share)]).collect();
        match apart.filter(|cuts| self.fits(cuts, &[])) {
            Some(cuts) => cuts,
            None => self.join(texts, self.policy.preview_length).into_iter().collect(),
        }
    }

    /// Whether the hints, with the longest location each can get, and the other texts are within the limit together.
    fn fits(&self, cuts: &[Cut], rest: &[Text<'_>]) -> bool {
        let hints: Vec<String> = cuts.iter().map(|cut| self.longest(&cut.draft)).collect();
        let others = rest.iter().filter(|text| !text.must_be_stored()).map(|text| text.shown);
        !is_over(self.session, self.policy.limit, hints.iter().map(String::as_str).chain(others))
    }

    /// The text cut to `budget` bytes of preview, if that gains anything. What can't be shown as it is has to be stored anyway.
    fn cut(&self, text: Text<'_>, budget: usize) -> Option<Cut> {
        let draft = self.draft(text, self.policy.preview.show(text.shown, budget));
        (text.not_utf8 || self.is_gain(&draft, &[text.shown])).then_some(Cut { draft, drops: Vec::new() })
    }

    fn draft(&self, text: Text<'_>, preview: String) -> Draft {
        let content = stored_bytes(&self.pieces[text.index]);
        let notes = Notes { not_utf8: text.not_utf8, interrupted: self.interrupted, ..Notes::default() };
        Draft { index: text.index, number: 1, lines: count_lines(&content), content, notes, parts: 1, preview }
    }

    /// All texts as one object: a line with their lengths, as JSON, then one after the other, each with a line feed behind it.
    fn join(&self, texts: &[Text<'_>], budget: usize) -> Option<Cut> {
        let first = texts.first()?;
        let contents: Vec<Bytes> = texts.iter().map(|text| stored_bytes(&self.pieces[text.index])).collect();
        let lengths: Vec<usize> = contents.iter().map(Bytes::len).collect();
        let mut content = serde_json::json!({"offcut_parts": lengths}).to_string().into_bytes();
        content.push(b'\n');
        let mut shown = String::new();
        for (text, bytes) in texts.iter().zip(&contents) {
            content.extend_from_slice(bytes);
            content.push(b'\n');
            shown.push_str(text.shown);
            shown.push('\n');
        }
        let notes = Notes {
            not_utf8: texts.iter().any(|text| text.not_utf8),
            interrupted: self.interrupted,
            joined: true,
            local: false,
        };
        let preview = self.policy.preview.show(&shown, budget);
        let (index, lines, parts) = (first.index, count_lines(&content), texts.len());
        let draft = Draft { index, number: 1, lines, content: content.into(), notes, parts, preview };
        let all: Vec<&str> = texts.iter().map(|text| text.shown).collect();
        let is_gain = notes.not_utf8 || self.is_gain(&draft, &all);
        let drops = texts[1..].iter().map(|text| text.index).collect();
        is_gain.then_some(Cut { draft, drops })
    }

    /// Whether the hint is fewer bytes and no more tokens than the texts, wherever it ends up.
    fn is_gain(&self, draft: &Draft, texts: &[&str]) -> bool {
        let bytes: usize = texts.iter().map(|text| text.len()).sum();
        self.locations(draft).into_iter().all(|location| {
            let hint = draft.hint(self.session, Some(location)).render();
            let meter = self.session.meter();
            hint.len() < bytes && meter.are_at_least(texts, meter.text(&hint))
        })
    }

    fn longest(&self, draft: &Draft) -> String {
        let hints = self.locations(draft).into_iter().map(|location| draft.hint(self.session, Some(location)).render());
        hints.max_by_key(String::len).unwrap_or_default()
    }

    /// Where it may be stored. The number behind the name is not known yet: one of six digits is as long as any.
    fn locations(&self, draft: &Draft) -> Vec<Location> {
        let Some(backend) = &self.policy.backend else { return Vec::new() };
        let numbers = if self.pieces.len() > 1 { &[1, 999_999][..] } else { &[1] };
        let names = numbers.iter().map(|number| Name::of(self.id, &draft.content).part(*number));
        names
            .flat_map(|name| {
                Target::new(self.session.roots(), Phase::Truncate, &name, &draft.content).locations(backend)
            })
            .collect()
    }
}
