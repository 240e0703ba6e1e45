//! Drafts what takes the place of a result, a call's arguments or a user's text: a line for each part, a hint that names
//! where its content is, or will be.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::backend::content::{Id, Target, suffix};
use crate::backend::key::digest;
use crate::backend::layout::Phase;
use crate::backend::{Backend, Key, Location};
use crate::config::{Policy, PreviewLength};
use crate::content::Part;
use crate::fingerprint::SlotId;
use crate::format::PartRef;
use crate::handler::Replacement;
use crate::hint::{Draft, Kind};
use crate::json::Frame;
use crate::ours::{MAX_LINK, cleared_arguments};
use crate::preview::Previewer;
use crate::preview::text::lines::count_lines;
use crate::report::{Change, Decision, ErrorSource, Outcome, Reason, Subject};
use crate::session::Session;
use crate::slots::{Grounds, Item, Place, bytes_of};
use crate::tokens::{Meter, Text};

/// A result, a call's arguments or a user's text that a pass has examined: the decision about it, and its
/// replacement.
#[derive(Debug)]
pub(super) struct SlotEdit {
    pub(super) decision: Decision,
    pub(super) place: Place,
    pub(super) id: SlotId,
    /// The grounds before the pass.
    pub(super) grounds: Grounds,
    pub(super) content: Content,
    /// The text around the strings that leave, if arguments leave string by string.
    pub(super) frame: Option<Frame>,
    /// Arguments of its call, which are replaced together with the result or not at all.
    pub(super) arguments: Option<Box<SlotEdit>>,
}

/// The replacement of a result or of a call's arguments.
#[derive(Debug)]
pub(super) enum Content {
    /// None: the item stays.
    Kept,
    /// One line for each part, once their contents are stored.
    Lines(Vec<Line>),
    /// A handler's replacement, once its content is stored, if it is to be, in this store under this name.
    Given(Box<Replacement>, Option<(Arc<dyn Backend>, Target)>),
    /// A replacement that needs nothing more to be stored.
    Ready(Vec<Part>),
}

/// The line that replaces one part of a result.
#[derive(Debug)]
pub(super) struct Line {
    /// Its text, if the name of its content is free.
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// The content that a line stands for.
#[derive(Debug)]
pub(super) enum Origin {
    /// It is stored at these locations, or lost.
    There(Vec<Location>),
    /// The text itself, which is no longer than its hint would be.
    Itself,
    /// It is going to be stored under a name that the hint gives.
    New {
        backend: Arc<dyn Backend>,
        target: Target,
        content: Bytes,
        draft: Box<Draft>,
    },
}

impl SlotEdit {
    pub(super) fn new(item: &Item<'_>, outcome: Outcome) -> Self {
        Self {
            decision: item.decision(outcome),
            place: item.place,
            id: item.id,
            grounds: item.grounds,
            content: Content::Kept,
            frame: None,
            arguments: None,
        }
    }

    /// Keeps the item as it is, and its arguments with it.
    pub(super) fn keep(&mut self, reason: Reason) {
        self.decision.keep(reason);
        self.content = Content::Kept;
        if let Some(arguments) = &mut self.arguments {
            arguments.keep(reason);
        }
    }

    /// Returns true if the item is to be replaced.
    pub(super) fn goes(&self) -> bool {
        !matches!(self.content, Content::Kept)
    }

    /// Number of tokens fewer, including those of the arguments.
    pub(super) fn freed(&self) -> i128 {
        let arguments = self.arguments.as_ref().map_or(0, |edit| edit.freed());
        self.decision.tokens.map_or(0, Change::net) + arguments
    }

    /// The parts that take the place of the item: neighbouring hints are one text, and arguments are JSON.
    pub(super) fn replacement(&self, lines: &[Line]) -> Vec<Part> {
        if self.place.subject == Subject::Arguments {
            let texts = lines.iter().map(|line| line.text.as_str());
            return vec![match &self.frame {
                Some(frame) => frame.filled(texts).into(),
                None => cleared_arguments(&join(texts)).into(),
            }];
        }
        let is_kept = |line: &Line| matches!(line.origin, Origin::Itself);
        let parts = lines.chunk_by(|one, next| !is_kept(one) && !is_kept(next));
        let texts = parts.map(|lines| join(lines.iter().map(|line| line.text.as_str())));
        let texts = texts.filter(|text| !text.is_empty());
        let mut parts: Vec<Part> = texts.map(Part::Text).collect();
        if parts.is_empty() {
            parts.push("".into());
        }
        parts
    }

    /// Sets the size to that of `put`. Returns true if that is a gain.
    pub(super) fn resize(&mut self, meter: &Meter, put: &[Part]) -> bool {
        let decision = &mut self.decision;
        let texts = put.iter().map(|part| Text::from(PartRef::from(part)));
        decision.resize(bytes_of(put), meter.sum(texts));
        decision.bytes.gains(decision.tokens.unwrap_or_default())
    }
}

/// Joins lines into one text, leaving out empty ones.
fn join<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}

/// Drafts the lines of one result, of a call's arguments or of a user's text, and gives each content a name that is unique
/// within the pass.
pub(super) struct Drafts<'d> {
    pub(super) session: &'d Session,
    /// The names used in this pass, and the digest of what is stored under each.
    pub(super) names: &'d mut HashMap<Key, String>,
    pub(super) id: Id,
    /// True if an earlier result has the same id. This one then gets its digest in its name, whichever pass clears it.
    pub(super) repeats_id: bool,
    pub(super) tool: &'d str,
    pub(super) policy: &'d Policy,
    pub(super) previewer: Previewer,
    /// Maximum length of a preview.
    pub(super) length: PreviewLength,
    /// Number of bytes left for hints that do not lead into a store.
    pub(super) room: usize,
    /// The decision about it, which records failures of a user's code.
    pub(super) decision: &'d mut Decision,
}

impl Drafts<'_> {
    /// The line for a part that is not a hint of ours. `number` counts the result's parts from 1.
    pub(super) fn part(&mut self, part: PartRef<'_>, number: usize) -> Line {
        let (content, mime) = match part {
            PartRef::Text(text) => {
                let (content, preview) = (text.as_bytes().to_vec(), self.preview(text));
                let line = self.line_for(content.into(), None, preview, number);
                if line.text.len() < text.len() {
                    return line;
                }
                return Line {
                    text: text.to_owned(),
                    origin: Origin::Itself,
                };
            }
            PartRef::Json(value) | PartRef::Opaque(value) => {
                (value.to_string().into(), "application/json")
            }
            PartRef::Media { mime, data } => match data.decode() {
                Some(bytes) => (bytes, mime),
                // Invalid base64 is stored verbatim, as text.
                None => (data.raw(), "text/plain"),
            },
            PartRef::Link { url, .. } => {
                let draft = Draft::new(Kind::Link, 0, self.tool, String::new());
                let text = self.session.hint(draft, Some(Location::new(url)));
                if url.len() <= MAX_LINK && self.has_room_for(&text) {
                    let origin = Origin::There(Vec::new());
                    return Line { text, origin };
                }
                (Bytes::copy_from_slice(url.as_bytes()), "text/uri-list")
            }
        };
        let preview = match part {
            PartRef::Json(_) => self.preview(&String::from_utf8_lossy(&content)),
            _ => String::new(),
        };
        self.line_for(content, Some(mime), preview, number)
    }

    /// The preview of a text that is cleared.
    fn preview(&mut self, text: &str) -> String {
        let budget = self.length.bytes_for(text.len() as u64);
        let (preview, problem) = self.previewer.show(text, text.len(), budget);
        self.decision.fail_first(ErrorSource::Callback, problem);
        preview
    }

    /// Uses up room for a line that does not lead into a store; `false` if too little is left.
    fn has_room_for(&mut self, line: &str) -> bool {
        let left = self.room.checked_sub(line.len() + 1);
        self.room = left.unwrap_or(self.room);
        left.is_some()
    }

    /// A target whose name no other content has in this pass.
    pub(super) fn target(&mut self, suffix: &str, mime: Option<&str>, content: &[u8]) -> Target {
        let (roots, digest) = (&self.session.roots, digest(content));
        let target = Target::new(roots, Phase::Clear, &self.id, suffix, mime, &digest);
        let first = self.names.entry(target.first.clone());
        let is_used = *first.or_insert_with(|| digest.clone()) != digest;
        if is_used || self.repeats_id && self.id.text.is_some() && !self.id.is_given {
            target.second_only()
        } else {
            target
        }
    }

    /// The line of a hint that names content of the media type `mime`, or text; without a backend, one that says that
    /// the content is gone. `number` counts the contents of a result, or of a call, from 1.
    pub(super) fn line_for(
        &mut self,
        content: Bytes,
        mime: Option<&str>,
        preview: String,
        number: usize,
    ) -> Line {
        let mut draft = Draft::new(Kind::Cleared, content.len() as u64, self.tool, preview);
        draft.subject = self.decision.subject;
        let media = mime.filter(|mime| *mime != "application/json");
        draft.hint.lines = media.is_none().then(|| count_lines(&content));
        draft.mime = media.map(str::to_owned);
        let Some(backend) = self.policy.backend() else {
            let mut text = self.session.hint(draft, None);
            // A few such notices are enough; further ones are left empty.
            if !self.has_room_for(&text) {
                text.clear();
            }
            let origin = Origin::There(Vec::new());
            return Line { text, origin };
        };
        let mut suffix = suffix(number);
        if draft.subject == Subject::Arguments {
            suffix.insert_str(0, "-args");
        }
        let target = self.target(&suffix, mime, &content);
        Line {
            text: (self.session).hint(draft.clone(), Some(target.expected(backend))),
            origin: Origin::New {
                backend: Arc::clone(backend),
                target,
                content,
                draft: Box::new(draft),
            },
        }
    }
}
