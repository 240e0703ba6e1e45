//! What each part of a cleared result becomes: a hint at where its content is going to be, or is already.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::{Draft, Line, ToShorten, ToStore};
use crate::backend::{Location, digest};
use crate::config::Policy;
use crate::format::{Data, PartRef};
use crate::hint::{Hint, Kind, Placement, count_lines};
use crate::preview::Previewer;
use crate::session::Session;
use crate::store::Stored;
use crate::store::{Id, Name, Phase, Target};

/// A longer link is stored like any other content.
const MAX_LINK: usize = 2048;

/// Makes the lines of one pass, and gives each content a name that no other content of the pass has.
pub(super) struct Liner<'a> {
    session: &'a Session,
    /// The ids of the results so far. A later result of the same id is named with its digest, whichever pass clears it.
    ids: HashSet<&'a str>,
    is_repeated_id: bool,
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
        Self { session, ids: HashSet::new(), is_repeated_id: false, names: HashMap::new() }
    }

    /// Goes on to the next result of the conversation.
    pub(super) fn begin(&mut self, id: &'a str) {
        self.is_repeated_id = !self.ids.insert(id);
    }

    /// Whether a hint is one of ours that says the last word: there is nothing shorter to put in its place.
    pub(super) fn is_final(&self, hint: &Hint) -> bool {
        match hint.kind {
            Kind::Cleared => self.is_ours(hint),
            Kind::Link => true,
            // What an unsaved preview shows is all that is left of the original.
            Kind::Truncated | Kind::Page { .. } | Kind::Matches => hint.location.is_none(),
        }
    }

    pub(super) fn is_ours(&self, hint: &Hint) -> bool {
        hint.location.as_ref().is_none_or(|location| self.session.resolve(location.as_str()).is_some())
    }

    /// What a part becomes. `number` counts the result's parts from 1.
    pub(super) fn part(&mut self, of: Source<'_>, part: PartRef<'_>, number: usize) -> Line {
        let preview = |text: &str| of.previewer.show(text, of.policy.stub_length.of(text.len() as u64)).0;
        let (content, mime, preview) = match part {
            PartRef::Text(text) => {
                let hint = Hint::parse(text);
                // Behind its preview, a hint can't be one line of several.
                let is_line = |hint: &Hint| hint.placement == Placement::First && self.is_final(hint);
                if hint.as_ref().is_some_and(is_line) {
                    return Line::Ready(text.to_owned(), None);
                }
                let stored = hint.as_ref().and_then(|hint| self.session.resolve(hint.location.as_ref()?.as_str()));
                if let (Some(hint), Some(stored)) = (hint, stored) {
                    return self.shorten(of, text, hint, stored, number);
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
            PartRef::Link { url, .. } if url.len() <= MAX_LINK => {
                let draft = Draft { hint: Hint::new(Kind::Link, 0), ..draft(of.tool, None, &[], String::new()) };
                return Line::Ready(draft.render(self.session, Some(Location::new(url))), None);
            }
            PartRef::Link { url, .. } => (Bytes::copy_from_slice(url.as_bytes()), Some("text/uri-list"), String::new()),
            PartRef::Opaque(value) => (value.to_string().into(), Some("application/json"), String::new()),
        };
        let name = of.id.name_of(&content).part(number);
        let name = mime.map_or_else(|| name.clone(), |mime| name.clone().with_ending(mime));
        let draft = draft(of.tool, mime, &content, preview);
        self.store(of, &name, content, draft)
    }

    /// What a whole text becomes that is worth a preview, and no less yet.
    pub(super) fn preview(&mut self, of: Source<'_>, text: &str) -> Line {
        let content = Bytes::copy_from_slice(text.as_bytes());
        let preview = of.previewer.show(text, of.policy.preview_length.of(text.len() as u64)).0;
        let mut draft = draft(of.tool, None, &content, preview);
        draft.hint.kind = Kind::Truncated;
        self.store(of, &of.id.name_of(text.as_bytes()), content, draft)
    }

    /// What a call's arguments become.
    pub(super) fn arguments(&mut self, of: Source<'_>, content: Bytes) -> Line {
        let name = of.id.name_of(&content).arguments();
        let draft = Draft { is_arguments: true, ..draft(of.tool, None, &content, String::new()) };
        self.store(of, &name, content, draft)
    }

    /// What a hint becomes that is longer than it needs to be.
    fn shorten(&mut self, of: Source<'_>, text: &str, shown: Hint, stored: Stored, number: usize) -> Line {
        // No more than is shown now: what was not worth its place then is not worth it when it is old.
        let preview = (of.previewer.clone(), of.policy.stub_length.of(shown.bytes).min(shown.preview.len()));
        // The preview is made of what is stored, once that has been read. Until then, of what is shown: it is as long.
        let mut short = draft(of.tool, None, &[], preview.0.show(&shown.preview, preview.1).0);
        short.hint.bytes = shown.bytes;
        short.hint.lines = shown.lines;
        short.hint.notes = shown.notes;
        let otherwise = matches!(shown.kind, Kind::Page { .. } | Kind::Matches).then(|| {
            let content = Bytes::copy_from_slice(text.as_bytes());
            let name = of.id.name_of(&content).part(number);
            let draft = draft(of.tool, None, &content, preview.0.show(text, preview.1).0);
            Box::new(self.store(of, &name, content, draft))
        });
        let was_previewed_in = of.policy.preview_length.of(shown.bytes);
        Line::Shorten(Box::new(ToShorten { shown, stored, draft: short, preview, was_previewed_in, otherwise }))
    }

    /// Where `content` is going to be stored: under a name that no other content has in this pass.
    pub(super) fn target(&mut self, id: &Id, name: &Name, content: &[u8]) -> Target {
        let digest = digest(content);
        let is_used = *self.names.entry(name.file()).or_insert_with(|| digest.clone()) != digest;
        let is_taken = is_used || self.is_repeated_id && !name.is_digest() && !id.is_given();
        let make = if is_taken { Target::taken } else { Target::new };
        make(self.session.roots(), Phase::Clear, name, content)
    }

    /// A hint at stored content; without a backend one that says the content is gone.
    fn store(&mut self, of: Source<'_>, name: &Name, content: Bytes, draft: Draft) -> Line {
        let Some(backend) = of.policy.backend() else { return Line::Ready(draft.render(self.session, None), None) };
        let target = self.target(of.id, name, &content);
        Line::Store(Box::new(ToStore { backend: Arc::clone(backend), target, content, draft }))
    }
}

/// A hint of clearing at content of the media type `mime`; `None` is text.
fn draft(tool: &str, mime: Option<&str>, content: &[u8], preview: String) -> Draft {
    let mut hint = Hint::new(Kind::Cleared, content.len() as u64);
    let mime = mime.filter(|mime| *mime != "application/json");
    hint.lines = mime.is_none().then(|| count_lines(content));
    hint.preview = preview;
    Draft { hint, tool: tool.to_owned(), mime: mime.map(str::to_owned), is_arguments: false }
}

impl Line {
    /// The text of `lines`, with the first or the second location that each may get.
    pub(super) fn render_all(lines: &[Self], session: &Session, choice: usize) -> String {
        let texts: Vec<String> = lines.iter().map(|line| line.render(session, choice)).collect();
        texts.join("\n")
    }

    fn render(&self, session: &Session, choice: usize) -> String {
        match self {
            Self::Ready(text, _) => text.clone(),
            Self::Store(store) => store.draft.render(session, Some(store.location(choice))),
            Self::Shorten(shorten) => match &shorten.otherwise {
                // The longer of the two that it may become.
                Some(otherwise) if choice == 1 => otherwise.render(session, choice),
                _ => shorten.draft.render(session, Some(shorten.stored.location.clone())),
            },
        }
    }
}

impl ToStore {
    fn location(&self, choice: usize) -> Location {
        let [first, second] = self.target.locations(&self.backend);
        if choice == 0 { first } else { second }
    }
}

/// The bytes of media. Base64 is decoded only if that loses nothing: encoding them again gives the same text.
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
