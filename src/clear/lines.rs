//! The line that replaces each part of a cleared result: a hint that names where its content is, or
//! will be.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;

use super::stores::{NotDone, Stores};
use crate::backend::content::{Id, Target, suffix};
use crate::backend::key::digest;
use crate::backend::layout::Phase;
use crate::backend::{Backend, ErrorKind, Key, Location};
use crate::config::{Policy, PreviewLength};
use crate::content::Part;
use crate::format::PartRef;
use crate::hint::{Draft, Kind};
use crate::ours::{ApparentHint, MAX_LINK, SEVERAL};
use crate::preview::Previewer;
use crate::preview::text::lines::{count_lines, opening};
use crate::preview::text::utf8::text_of;
use crate::read_back::{shows_only, texts_in};
use crate::report::{Decision, DecisionFailure, ErrorSource, Reason, Subject};
use crate::session::Session;

/// Maximum length in bytes of what is shown of a string in arguments: its first line.
const MAX_FIRST_LINE: usize = 80;

/// The line that replaces one part of a result.
#[derive(Debug)]
pub(super) enum Line {
    /// A text that needs no storing, and the locations of the originals that it names.
    Ready(String, Vec<Location>),
    /// A text that is no longer than its hint would be, and stays.
    Kept(String),
    /// A hint that names where the content is going to be stored.
    Store {
        backend: Arc<dyn Backend>,
        target: Target,
        content: Bytes,
        draft: Box<Draft>,
        /// The hint, if the name is free.
        expected: String,
    },
    /// Short hints that name where the originals already are, if the hints shown agree with what is
    /// stored there. Otherwise the other line, because the part is an ordinary text.
    Shorten(Vec<Shown>, Box<Line>),
}

impl Line {
    /// Its texts, if its name is free and apparent hints of ours are ours.
    fn texts(&self) -> Vec<&str> {
        match self {
            Self::Ready(text, _) | Self::Kept(text) | Self::Store { expected: text, .. } => {
                vec![text]
            }
            Self::Shorten(shown, _) => shown.iter().map(|shown| &*shown.expected).collect(),
        }
    }

    /// Compares apparent hints of ours with the stored content. A line of other hints is an ordinary text, which has to
    /// be stored.
    pub(super) async fn compared(
        self,
        stores: &Stores<'_>,
        decision: &mut Decision,
    ) -> Result<Self, Reason> {
        let Self::Shorten(hints, otherwise) = self else {
            return Ok(self);
        };
        let (mut texts, mut locations) = (Vec::with_capacity(hints.len()), Vec::new());
        for shown in hints {
            let found = preview_of_content(stores, &shown, decision).await?;
            let Some(stored) = shown.own.stored else {
                texts.push(shown.expected);
                continue;
            };
            let Some(preview) = found else {
                return Ok(*otherwise);
            };
            let mut draft = shown.draft;
            draft.hint.preview = preview;
            texts.push(stores.session.hint(draft, Some(stored.location.clone())));
            locations.push(stored.location);
        }
        let text = join(texts.iter().map(String::as_str));
        Ok(Self::Ready(text, locations))
    }

    /// Stores its content, and adds the locations of the originals to the decision.
    pub(super) async fn stored(
        self,
        stores: &Stores<'_>,
        decision: &mut Decision,
    ) -> Result<Self, NotDone> {
        let line = match self {
            Self::Store {
                backend,
                target,
                content,
                draft,
                ..
            } => {
                let location = stores.save(&backend, &target, content, decision).await?;
                let hint = stores.session.hint(*draft, location.clone());
                Self::Ready(hint, location.into_iter().collect())
            }
            // It has been compared before.
            Self::Shorten(..) => return Err(NotDone::Kept(Reason::Unverified)),
            line => line,
        };
        if let Self::Ready(_, locations) = &line {
            decision.locations.extend(locations.iter().cloned());
        }
        Ok(line)
    }
}

/// A hint in the conversation that may be ours.
#[derive(Debug)]
pub(super) struct Shown {
    own: ApparentHint,
    /// The hint that replaces it.
    draft: Draft,
    previewer: Previewer,
    /// Maximum number of bytes of the new hint's preview.
    budget: usize,
    /// Maximum number of bytes of its preview when it was truncated.
    was_previewed_in: usize,
    /// The new hint as it is expected to be.
    expected: String,
}

/// The result or call that a line is about.
pub(super) struct Source<'s> {
    pub(super) id: Id,
    pub(super) tool: &'s str,
    pub(super) policy: &'s Policy,
    pub(super) previewer: Previewer,
    /// Maximum length of a preview.
    pub(super) length: PreviewLength,
    pub(super) subject: Subject,
    /// The first error of a user's preview.
    pub(super) problem: OnceCell<String>,
}

impl Source<'_> {
    /// The preview of a text that is cleared.
    pub(super) fn preview(&self, text: &str) -> String {
        let budget = self.length.bytes_for(text.len() as u64);
        let (preview, problem) = self.previewer.show(text, budget);
        if let Some(problem) = problem {
            self.problem.get_or_init(|| problem);
        }
        preview
    }

    /// The error of a user's preview, for the report.
    pub(super) fn failure(&self) -> Option<DecisionFailure> {
        let problem = self.problem.get()?;
        Some(ErrorSource::Callback.said(problem))
    }
}

/// Writes the lines of one pass, and gives each content a name that is unique within the pass.
pub(super) struct Stubs<'a> {
    session: &'a Session,
    /// Ids of the results so far, and the first result that has each. A later result with the same id gets its digest
    /// in its name, whichever pass clears it.
    ids: HashMap<&'a str, usize>,
    is_repeated_id: bool,
    /// Number of bytes left, in this result, for hints that do not lead into a store.
    room: usize,
    /// The names used in this pass, and the digest of what is stored under each.
    names: HashMap<Key, String>,
}

impl<'a> Stubs<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self {
            session,
            ids: HashMap::new(),
            is_repeated_id: false,
            room: SEVERAL,
            names: HashMap::new(),
        }
    }

    /// Moves on to the result `at` this place of the conversation.
    pub(super) fn begin(&mut self, at: usize, id: &'a str) {
        self.is_repeated_id = *self.ids.entry(id).or_insert(at) != at;
        self.room = SEVERAL;
    }

    /// The line for a part. `number` counts the result's parts from 1.
    pub(super) fn part(&mut self, of: &Source<'_>, part: PartRef<'_>, number: usize) -> Line {
        let (content, mime, preview) = match part {
            PartRef::Text(text) => {
                let own = self.session.apparent_hints(of.policy, text);
                if let Some(line) = own.and_then(|own| self.hints(of, text, own, number)) {
                    return line;
                }
                let content = Bytes::copy_from_slice(text.as_bytes());
                (content, None, of.preview(text))
            }
            PartRef::Json(value) => {
                let text = value.to_string();
                let preview = of.preview(&text);
                (text.into(), Some("application/json"), preview)
            }
            PartRef::Media { mime, data } => match data.decode() {
                Some(bytes) => (bytes, Some(mime), String::new()),
                // Invalid base64 is stored verbatim, as text.
                None => (data.raw(), Some("text/plain"), String::new()),
            },
            PartRef::Link { url, .. } => {
                let draft = Draft::new(Kind::Link, 0, of.tool, String::new());
                let line = self.session.hint(draft, Some(Location::new(url)));
                if url.len() <= MAX_LINK && self.has_room_for(&line) {
                    return Line::Ready(line, Vec::new());
                }
                let content = Bytes::copy_from_slice(url.as_bytes());
                (content, Some("text/uri-list"), String::new())
            }
            PartRef::Opaque(value) => {
                let text = value.to_string();
                (text.into(), Some("application/json"), String::new())
            }
        };
        let line = self.store(of, content, mime, preview, number);
        match (part, &line) {
            (PartRef::Text(text), Line::Ready(hint, _) | Line::Store { expected: hint, .. })
                if hint.len() >= text.len() =>
            {
                Line::Kept(text.to_owned())
            }
            _ => line,
        }
    }

    /// The line for a call's arguments, or for one string of them. `number` counts such strings
    /// from 1.
    pub(super) fn argument(
        &mut self,
        of: &Source<'_>,
        content: String,
        number: usize,
        is_string: bool,
    ) -> Line {
        let of_stub = of.length.bytes_for(content.len() as u64);
        let most = if is_string {
            of_stub.min(MAX_FIRST_LINE)
        } else {
            0
        };
        let preview = opening(&content, most).to_owned();
        self.store(of, content.into(), None, preview, number)
    }

    /// The line for a text that may be hints of ours; `None` if it is certainly an ordinary text.
    fn hints(
        &mut self,
        of: &Source<'_>,
        text: &str,
        own: Vec<ApparentHint>,
        number: usize,
    ) -> Option<Line> {
        let mut locations = HashSet::new();
        let mut is_new = |own: &ApparentHint| {
            own.stored
                .as_ref()
                .is_none_or(|stored| locations.insert(stored.key.clone()))
        };
        if text.len() > SEVERAL && !own.iter().all(&mut is_new) {
            return None;
        }
        let mut nowhere = 0;
        for own in own.iter().filter(|own| own.stored.is_none()) {
            nowhere += own.hint.render().len() + 1;
        }
        self.room = self.room.checked_sub(nowhere)?;
        if own.iter().all(|own| own.stored.is_none()) {
            return Some(Line::Ready(text.to_owned(), Vec::new()));
        }
        let shown = own.into_iter().map(|own| self.shown(of, own)).collect();
        let content = Bytes::copy_from_slice(text.as_bytes());
        let otherwise = self.store(of, content, None, of.preview(text), number);
        Some(Line::Shorten(shown, Box::new(otherwise)))
    }

    /// Uses up room for a line that does not lead into a store; `false` if its result has too
    /// little left.
    fn has_room_for(&mut self, line: &str) -> bool {
        let left = self.room.checked_sub(line.len() + 1);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    /// A target whose name no other content has in this pass.
    pub(super) fn target(
        &mut self,
        id: &Id,
        suffix: &str,
        mime: Option<&str>,
        digest: &str,
    ) -> Target {
        let target = Target::new(&self.session.roots, Phase::Clear, id, suffix, mime, digest);
        let first = self.names.entry(target.first.clone());
        let is_used = first.or_insert_with(|| digest.to_owned()) != digest;
        let is_repeated = self.is_repeated_id && id.text.is_some() && !id.is_given;
        if is_used || is_repeated {
            target.second_only()
        } else {
            target
        }
    }

    /// A hint that names stored content of the media type `mime`, or text; without a backend, one that says that
    /// the content is gone.
    fn store(
        &mut self,
        of: &Source<'_>,
        content: Bytes,
        mime: Option<&str>,
        preview: String,
        number: usize,
    ) -> Line {
        let mut draft = Draft::new(Kind::Cleared, content.len() as u64, of.tool, preview);
        draft.subject = of.subject;
        let media = mime.filter(|mime| *mime != "application/json");
        draft.hint.lines = media.is_none().then(|| count_lines(&content));
        draft.mime = media.map(str::to_owned);
        let Some(backend) = of.policy.backend() else {
            let mut line = self.session.hint(draft, None);
            // A few such notices are enough; further ones are left empty.
            if !self.has_room_for(&line) {
                line.clear();
            }
            return Line::Ready(line, Vec::new());
        };
        let digest = digest(&content);
        let mut suffix = suffix(number);
        if of.subject == Subject::Arguments {
            suffix.insert_str(0, "-args");
        }
        let target = self.target(&of.id, &suffix, mime, &digest);
        Line::Store {
            expected: (self.session).hint(draft.clone(), Some(target.expected(backend))),
            backend: Arc::clone(backend),
            target,
            content,
            draft: Box::new(draft),
        }
    }

    /// A hint in the conversation, and its replacement if it is one of ours.
    fn shown(&self, of: &Source<'_>, own: ApparentHint) -> Shown {
        let hint = &own.hint;
        // At most what is shown now: text that was not worth showing then is not worth it now. The words of a page say
        // which lines it showed, so no others stand below them.
        let budget = match hint.kind {
            Kind::Page { .. } | Kind::Matches => 0,
            _ => of.length.bytes_for(hint.bytes).min(hint.preview.len()),
        };
        let mut draft = Draft {
            hint: hint.clone(),
            subject: of.subject,
            ..Draft::new(hint.kind, hint.bytes, of.tool, String::new())
        };
        // Words of our own are said anew. Others stay, since they may say something that is said nowhere else.
        let is_usual = self.session.prose.of_hint(&draft, self.session.reader()) == hint.prose;
        draft.words = (!is_usual).then(|| hint.prose.clone());
        draft.hint.kind = Kind::Cleared;
        // The final preview is made from the stored content. Until that has been read, the shown
        // preview is used instead, because it gives a preview of the same length.
        draft.hint.preview = of.previewer.show(&hint.preview, budget).0;
        let expected = match &own.stored {
            Some(stored) => (self.session).hint(draft.clone(), Some(stored.location.clone())),
            None => hint.render(),
        };
        Shown {
            draft,
            previewer: of.previewer.clone(),
            budget,
            was_previewed_in: of.policy.preview_length.bytes_for(hint.bytes),
            expected,
            own,
        }
    }
}

/// Returns the preview of the stored content that a hint shows; `None` if the hint shows something else, or leads nowhere.
async fn preview_of_content(
    stores: &Stores<'_>,
    shown: &Shown,
    decision: &mut Decision,
) -> Result<Option<String>, Reason> {
    let Shown {
        own,
        previewer,
        budget,
        was_previewed_in,
        ..
    } = shown;
    let hint = &own.hint;
    let Some(stored) = &own.stored else {
        return Ok(None);
    };
    // A hint no longer than one of ours may be left alone.
    let may_stay = matches!(hint.kind, Kind::Truncated | Kind::Cleared)
        && hint.preview.len() <= *was_previewed_in;
    let content = match stores.ask(&stored.backend, stored.whole(), decision).await {
        Ok(Some(content)) => content,
        // Too large to compare.
        Ok(None) if may_stay => return Err(Reason::Unverified),
        Ok(None) => return Ok(None),
        Err(Some(error)) if error.kind() == ErrorKind::NotFound => return Ok(None),
        // The store can't tell. Nothing has to be stored here, so this is not a failed offload.
        Err(error) => {
            if let Some(error) = error {
                decision.fail(ErrorSource::Store.said(&error));
            }
            return Err(Reason::StoreFailed);
        }
    };
    let own = |text: &str| previewer.own(text, *was_previewed_in)?.ok();
    if !shows_only(hint, &content, own) {
        return Ok(None);
    }
    if hint.kind == Kind::Cleared && hint.preview.len() <= *budget {
        return Ok(Some(hint.preview.clone()));
    }
    let text = texts_in(hint, &content).unwrap_or(&content);
    let (preview, problem) = previewer.show(&text_of(text), *budget);
    decision.fail_first(problem.map(|problem| ErrorSource::Callback.said(&problem)));
    Ok(Some(preview))
}

/// The parts of a cleared result: neighbouring hints are one text.
pub(super) fn parts_of(lines: &[Line]) -> Vec<Part> {
    let is_kept = |line: &Line| matches!(line, Line::Kept(_));
    let parts = lines.chunk_by(|one, next| !is_kept(one) && !is_kept(next));
    let mut texts: Vec<Part> = parts
        .map(joined)
        .filter(|text| !text.is_empty())
        .map(Part::Text)
        .collect();
    if texts.is_empty() {
        texts.push("".into());
    }
    texts
}

/// All texts of lines in one.
pub(super) fn joined(lines: &[Line]) -> String {
    join(texts_of(lines))
}

/// The texts of lines.
pub(super) fn texts_of(lines: &[Line]) -> impl Iterator<Item = &str> {
    lines.iter().flat_map(Line::texts)
}

/// Joins lines into one text, leaving out empty ones.
fn join<'l>(lines: impl IntoIterator<Item = &'l str>) -> String {
    let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}
