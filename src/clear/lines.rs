//! What each part of a cleared result becomes: a hint at where its content is going to be, or is
//! already.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::{Draft, Line, Shown, ToShorten, ToStore};
use crate::backend::{Location, digest};
use crate::config::Policy;
use crate::format::{Data, PartRef};
use crate::hint::{Hint, Kind, Placement, count_lines};
use crate::ours::{MAX_LINK, OwnHint, SEVERAL};
use crate::preview::Previewer;
use crate::session::Session;
use crate::store::{Id, Name, Phase, Target};

/// Makes the lines of one pass, and gives each content a name that no other content of the pass
/// has.
pub(super) struct Liner<'a> {
    session: &'a Session,
    /// The ids of the results so far. A later result of the same id is named with its digest,
    /// whichever pass clears it.
    ids: HashSet<&'a str>,
    is_repeated_id: bool,
    /// How many bytes of the result's hints may still lead nowhere into a store.
    room: usize,
    /// The names that are used in this pass, and the digest of what is stored under them.
    names: HashMap<String, String>,
}

/// The result or call that a line is about.
#[derive(Clone, Copy)]
pub(super) struct Source<'s> {
    pub(super) id: &'s Id,
    pub(super) tool: &'s str,
    pub(super) policy: &'s Policy,
    pub(super) previewer: &'s Previewer,
}

impl<'a> Liner<'a> {
    pub(super) fn new(session: &'a Session) -> Self {
        Self {
            session,
            ids: HashSet::new(),
            is_repeated_id: false,
            room: SEVERAL,
            names: HashMap::new(),
        }
    }

    /// Goes on to the next result of the conversation.
    pub(super) fn begin(&mut self, id: &'a str) {
        self.is_repeated_id = !self.ids.insert(id);
        self.room = SEVERAL;
    }

    /// What a part becomes. `number` counts the result's parts from 1.
    pub(super) fn part(&mut self, of: Source<'_>, part: PartRef<'_>, number: usize) -> Line {
        let preview = |text: &str| {
            of.previewer
                .show(text, of.policy.stub_length.of(text.len() as u64))
                .0
        };
        let (content, mime, preview) = match part {
            PartRef::Text(text) => {
                if let Some(line) = self
                    .session
                    .own_hints(of.policy, text)
                    .and_then(|own| self.hints(of, text, own, number))
                {
                    return line;
                }
                (Bytes::copy_from_slice(text.as_bytes()), None, preview(text))
            }
            PartRef::Json(value) => {
                let text = value.to_string();
                let preview = preview(&text);
                (text.into(), Some("application/json"), preview)
            }
            PartRef::Media { mime, data } => match decode(data) {
                Some(bytes) => (bytes, Some(mime), String::new()),
                // Base64 that is none is stored as the text that it is.
                None => (raw(data), Some("text/plain"), String::new()),
            },
            PartRef::Link { url, .. }
                if url.len() <= MAX_LINK
                    && self.has_room_for(&link(of.tool, url, self.session)) =>
            {
                return Line::Ready(link(of.tool, url, self.session), Vec::new());
            }
            PartRef::Link { url, .. } => (
                Bytes::copy_from_slice(url.as_bytes()),
                Some("text/uri-list"),
                String::new(),
            ),
            PartRef::Opaque(value) => (
                value.to_string().into(),
                Some("application/json"),
                String::new(),
            ),
        };
        let name = of.id.name_of(&content).part(number);
        let name = mime.map_or_else(|| name.clone(), |mime| name.clone().with_ending(mime));
        let draft = draft(of.tool, mime, &content, preview);
        self.store(of, &name, content, draft)
    }

    /// What a whole text becomes that is worth a preview, and no less yet.
    pub(super) fn preview(&mut self, of: Source<'_>, text: &str) -> Line {
        let content = Bytes::copy_from_slice(text.as_bytes());
        let preview = of
            .previewer
            .show(text, of.policy.preview_length.of(text.len() as u64))
            .0;
        let mut draft = draft(of.tool, None, &content, preview);
        draft.hint.kind = Kind::Truncated;
        self.store(of, &of.id.name_of(text.as_bytes()), content, draft)
    }

    /// What a call's arguments become.
    pub(super) fn arguments(&mut self, of: Source<'_>, content: Bytes) -> Line {
        let name = of.id.name_of(&content).arguments();
        let draft = Draft {
            is_arguments: true,
            ..draft(of.tool, None, &content, String::new())
        };
        self.store(of, &name, content, draft)
    }

    /// What a text becomes that may be hints of ours; `None` if it is certain that it is a text
    /// like any other.
    fn hints(
        &mut self,
        of: Source<'_>,
        text: &str,
        own: Vec<OwnHint>,
        number: usize,
    ) -> Option<Line> {
        let leads_nowhere = |own: &&OwnHint| own.stored.is_none();
        let mut locations = HashSet::new();
        let mut is_new = |own: &OwnHint| {
            own.stored
                .as_ref()
                .is_none_or(|stored| locations.insert(stored.key.clone()))
        };
        if text.len() > SEVERAL && !own.iter().all(&mut is_new) {
            return None;
        }
        // Behind its preview, a hint can't be one line of several.
        let is_last = |own: &OwnHint| own.stored.is_none() && own.hint.placement == Placement::Last;
        let nowhere: usize = own
            .iter()
            .filter(leads_nowhere)
            .map(|own| own.hint.render().len() + 1)
            .sum();
        if own.iter().any(is_last) || nowhere > self.room {
            return None;
        }
        self.room -= nowhere;
        if own.iter().all(|own| own.stored.is_none()) {
            return Some(Line::Ready(text.to_owned(), Vec::new()));
        }
        let hints = own.into_iter().map(|own| shown(of, own)).collect();
        let content = Bytes::copy_from_slice(text.as_bytes());
        let name = of.id.name_of(&content).part(number);
        let budget = of.policy.stub_length.of(content.len() as u64);
        let draft = draft(of.tool, None, &content, of.previewer.show(text, budget).0);
        let otherwise = Box::new(self.store(of, &name, content, draft));
        Some(Line::Shorten(Box::new(ToShorten { hints, otherwise })))
    }

    /// Whether a line that leads nowhere into a store finds a place among those of its result.
    fn has_room_for(&mut self, line: &str) -> bool {
        let left = self.room.checked_sub(line.len() + 1);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    /// Where `content` is going to be stored: under a name that no other content has in this pass.
    pub(super) fn target(&mut self, id: &Id, name: &Name, content: &[u8]) -> Target {
        let digest = digest(content);
        let is_used = *self
            .names
            .entry(name.file())
            .or_insert_with(|| digest.clone())
            != digest;
        let is_taken = is_used || self.is_repeated_id && !name.is_digest() && !id.is_given();
        let make = if is_taken { Target::taken } else { Target::new };
        make(self.session.roots(), Phase::Clear, name, content)
    }

    /// A hint at stored content; without a backend one that says the content is gone.
    fn store(&mut self, of: Source<'_>, name: &Name, content: Bytes, draft: Draft) -> Line {
        let Some(backend) = of.policy.backend() else {
            let line = draft.render(self.session, None);
            // What is said of the first ones goes for all.
            return Line::Ready(
                if self.has_room_for(&line) {
                    line
                } else {
                    String::new()
                },
                Vec::new(),
            );
        };
        let target = self.target(of.id, name, &content);
        Line::Store(Box::new(ToStore {
            backend: Arc::clone(backend),
            target,
            content,
            draft,
        }))
    }
}

/// A hint of clearing at content of the media type `mime`; `None` is text.
fn draft(tool: &str, mime: Option<&str>, content: &[u8], preview: String) -> Draft {
    let mut hint = Hint::new(Kind::Cleared, content.len() as u64);
    let mime = mime.filter(|mime| *mime != "application/json");
    hint.lines = mime.is_none().then(|| count_lines(content));
    hint.preview = preview;
    Draft {
        hint,
        tool: tool.to_owned(),
        mime: mime.map(str::to_owned),
        is_arguments: false,
        parts: 0,
        words: None,
    }
}

/// A hint at a link.
fn link(tool: &str, url: &str, session: &Session) -> String {
    let draft = Draft {
        hint: Hint::new(Kind::Link, 0),
        ..draft(tool, None, &[], String::new())
    };
    draft.render(session, Some(Location::new(url)))
}

/// A hint that is shown, and what it becomes if it is one of ours.
fn shown(of: Source<'_>, own: OwnHint) -> Shown {
    let OwnHint { hint, stored } = own;
    // No more than is shown now: what was not worth its place then is not worth it when it is old.
    let preview = (
        of.previewer.clone(),
        of.policy.stub_length.of(hint.bytes).min(hint.preview.len()),
    );
    // The preview is made of what is stored, once that has been read. Until then, of what is shown:
    // it is as long.
    let mut draft = draft(
        of.tool,
        None,
        &[],
        preview.0.show(&hint.preview, preview.1).0,
    );
    draft.hint.bytes = hint.bytes;
    draft.hint.lines = hint.lines;
    draft.hint.notes = hint.notes;
    // What was cleared keeps its words: they may say what nothing else does.
    draft.words = (hint.kind == Kind::Cleared).then(|| hint.prose.clone());
    let was_previewed_in = of.policy.preview_length.of(hint.bytes);
    Shown {
        hint,
        stored,
        draft,
        preview,
        was_previewed_in,
    }
}

impl Line {
    /// The text of `lines`, with the first or the second location that each may get.
    pub(super) fn render_all(lines: &[Self], session: &Session, choice: usize) -> String {
        join(lines.iter().map(|line| line.render(session, choice)))
    }

    fn render(&self, session: &Session, choice: usize) -> String {
        match self {
            Self::Ready(text, _) => text.clone(),
            Self::Store(store) => store.draft.render(session, Some(store.location(choice))),
            // One that is no hint of ours is the second of the two that it may become.
            Self::Shorten(shorten) if choice == 1 => shorten.otherwise.render(session, choice),
            Self::Shorten(shorten) => join(shorten.hints.iter().map(|shown| shown.render(session))),
        }
    }
}

impl Shown {
    fn render(&self, session: &Session) -> String {
        match &self.stored {
            Some(stored) => self.draft.render(session, Some(stored.location.clone())),
            None => self.hint.render(),
        }
    }
}

/// Lines as one text. Those that say nothing are left out.
pub(super) fn join(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

impl ToStore {
    fn location(&self, choice: usize) -> Location {
        let [first, second] = self.target.locations(&self.backend);
        if choice == 0 { first } else { second }
    }
}

/// The bytes of media. Base64 is decoded only if that loses nothing: encoding them again gives the
/// same text.
pub(super) fn decode(data: Data<'_>) -> Option<Bytes> {
    match data {
        Data::Bytes(bytes) => Some(bytes.clone()),
        Data::Base64(text) => STANDARD.decode(text).ok().map(Bytes::from),
    }
}

pub(super) fn raw(data: Data<'_>) -> Bytes {
    match data {
        Data::Bytes(bytes) => bytes.clone(),
        Data::Base64(text) => Bytes::copy_from_slice(text.as_bytes()),
    }
}
