//! L1, checked against a shadow: a copy of every tool result and every call's arguments, kept
//! outside the conversation.
//!
//! Written from the laws, not from the library: a slot holds its original content, or hints whose
//! locations give that content back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use offcut::Part;
use offcut::format::{Data, PartRef, Piece, Role};
use offcut::hint::{Hint, Kind};
use offcut::preview::text::decoding::text_of;
use serde_json::Value;

use super::subject::Subject;
use super::wire::Wire;
use super::{Violation, require};

/// The facts about a part that matter to the laws: its bytes, and whether it counts as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PartContent {
    Text(String),
    /// Text that is not valid UTF-8.
    Raw(Bytes),
    Json(String),
    Media(Bytes),
    Link(String),
    Opaque(String),
}

impl PartContent {
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) | Self::Json(text) | Self::Link(text) | Self::Opaque(text) => {
                text.as_bytes()
            }
            Self::Raw(bytes) | Self::Media(bytes) => bytes,
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Raw(_))
    }

    fn is_json(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    fn is_empty_text(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }
}

impl From<&Part> for PartContent {
    fn from(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text.clone()),
            Part::Json(value) => Self::Json(value.to_string()),
            Part::Media { data, .. } => Self::Media(data.clone()),
            Part::Link { url, .. } => Self::Link(url.clone()),
            Part::Opaque(value) => Self::Opaque(value.to_string()),
        }
    }
}

fn seen(part: PartRef<'_>) -> PartContent {
    match part {
        PartRef::Text(text) => PartContent::Text(text.to_owned()),
        PartRef::Json(value) => PartContent::Json(value.to_string()),
        PartRef::Media {
            data: Data::Bytes(bytes),
            ..
        } => PartContent::Media(bytes.clone()),
        PartRef::Media {
            data: Data::Base64(text),
            ..
        } => PartContent::Media(
            STANDARD
                .decode(text)
                .map_or_else(|_| Bytes::copy_from_slice(text.as_bytes()), Bytes::from),
        ),
        PartRef::Link { url, .. } => PartContent::Link(url.to_owned()),
        PartRef::Opaque(value) => PartContent::Opaque(value.to_string()),
    }
}

/// The contents of a message that a pass may change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct View {
    pub(crate) slots: Vec<Vec<PartContent>>,
    /// Ids of the calls that the slots answer.
    pub(crate) answers: Vec<String>,
    pub(crate) arguments: Vec<String>,
    /// Ids of the calls.
    pub(crate) calls: Vec<String>,
    /// Texts of users.
    pub(crate) texts: Vec<PartContent>,
}

pub(crate) fn view<F: Wire>(wire: F, message: &F::Message) -> View {
    let (mut view, mut is_open, mut is_users) = (View::default(), false, false);
    wire.visit(message, &mut |piece| match piece {
        Piece::Role(role) => (is_open, is_users) = (false, role == Role::User),
        Piece::Result(head) => {
            view.answers.push(head.id.to_owned());
            view.slots.push(Vec::new());
            is_open = true;
        }
        Piece::Content(part) if is_open => view.slots.last_mut().unwrap().push(seen(part)),
        Piece::Content(part @ PartRef::Text(_)) if is_users => view.texts.push(seen(part)),
        Piece::Call(call) => {
            view.calls.push(call.id.to_owned());
            view.arguments.push(call.arguments.to_string());
        }
        _ => {}
    });
    view
}

/// The original content of a conversation.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    slots: BTreeMap<(usize, usize), Vec<PartContent>>,
    arguments: BTreeMap<(usize, usize), String>,
    texts: BTreeMap<(usize, usize), PartContent>,
    /// Every content that may be stored.
    said: HashSet<Vec<u8>>,
    ids: BTreeSet<String>,
    /// The stored content at the last check.
    stored: BTreeMap<String, Bytes>,
}

impl Shadow {
    /// Records a result before it goes through `truncate`.
    pub(crate) fn say(&mut self, id: &str, originals: &[PartContent]) {
        self.ids.insert(id.to_owned());
        self.said
            .extend(originals.iter().map(|part| part.bytes().to_vec()));
    }

    /// Records a message that was just appended, or that just got one more result at its end. The
    /// new result's originals are `originals`, or else the content of the message.
    pub(crate) fn append<F: Wire>(
        &mut self,
        wire: F,
        at: usize,
        message: &F::Message,
        mut originals: Option<Vec<PartContent>>,
    ) {
        let View {
            slots,
            answers,
            arguments,
            calls,
            texts,
        } = view(wire, message);
        self.ids.extend(answers.into_iter().chain(calls));
        let first_new = if originals.is_some() {
            slots.len().saturating_sub(1)
        } else {
            0
        };
        for (slot, parts) in slots.into_iter().enumerate().skip(first_new) {
            let parts = originals.take().unwrap_or(parts);
            self.said
                .extend(parts.iter().map(|part| part.bytes().to_vec()));
            self.slots.insert((at, slot), parts);
        }
        for (call, text) in arguments.into_iter().enumerate() {
            self.said.insert(text.clone().into_bytes());
            let parsed = serde_json::from_str(&text).unwrap_or_default();
            self.said
                .extend(strings_in(&parsed).map(|string| string.as_bytes().to_vec()));
            self.arguments.insert((at, call), text);
        }
        for (nth, text) in texts.into_iter().enumerate() {
            self.said.insert(text.bytes().to_vec());
            self.texts.insert((at, nth), text);
        }
    }

    /// Checks that every slot holds its original or hints that give it back. Returns the indexes of
    /// the messages that admit a loss.
    pub(crate) async fn check<F: Wire, S: Subject<F>>(
        &self,
        wire: F,
        subject: &S,
        messages: &[F::Message],
    ) -> Result<BTreeSet<usize>, Violation> {
        let mut lost = BTreeSet::new();
        for (at, message) in messages.iter().enumerate() {
            let View {
                slots,
                arguments,
                texts,
                ..
            } = view(wire, message);
            for (nth, now) in texts.into_iter().enumerate() {
                let original = std::slice::from_ref(&self.texts[&(at, nth)]);
                let is_lost = self.check_slot(subject, original, &[now]).await;
                let is_lost = is_lost.map_err(|why| {
                    Violation::new("L1", format!("message {at}, text {nth}: {why}"))
                })?;
                lost.extend(is_lost.then_some(at));
            }
            for (slot, now) in slots.iter().enumerate() {
                let Some(originals) = self.slots.get(&(at, slot)) else {
                    continue;
                };
                let is_lost = self.check_slot(subject, originals, now).await;
                let is_lost = is_lost.map_err(|why| {
                    Violation::new("L1", format!("message {at}, result {slot}: {why}"))
                })?;
                lost.extend(is_lost.then_some(at));
            }
            for (call, now) in arguments.iter().enumerate() {
                let original = &self.arguments[&(at, call)];
                if now != original {
                    let is_lost = self.check_arguments(subject, original, now).await;
                    let is_lost = is_lost.map_err(|why| {
                        Violation::new("L1", format!("message {at}, call {call}: {why}"))
                    })?;
                    lost.extend(is_lost.then_some(at));
                }
            }
        }
        Ok(lost)
    }

    /// Checks that `now` stands for `originals`. Returns `Ok(true)` if that holds except for losses
    /// that `now` admits.
    pub(crate) async fn check_slot<F: Wire, S: Subject<F>>(
        &self,
        subject: &S,
        originals: &[PartContent],
        now: &[PartContent],
    ) -> Result<bool, String> {
        // Leaving out an empty text loses nothing, and adding one says nothing.
        let now: Vec<PartContent> = now
            .iter()
            .filter(|part| !part.is_empty_text())
            .cloned()
            .collect();
        let mut contents = HashMap::new();
        for hint in now.iter().flat_map(hints_in) {
            if let Some(location) = hint.location {
                let content = subject.read(location.as_str()).await;
                contents.insert(location.as_str().to_owned(), content);
            }
        }
        let fit = |lossy| {
            Fit {
                originals,
                contents: &contents,
                lossy,
            }
            .parts(&now, 0, &None)
        };
        if fit(false) {
            return Ok(false);
        }
        if subject.may_lose() && fit(true) {
            return Ok(true);
        }
        let sizes: Vec<_> = originals.iter().map(|part| part.bytes().len()).collect();
        Err(format!(
            "originals of {sizes:?} bytes are not to be had from {}",
            shortened(&now)
        ))
    }

    async fn check_arguments<F: Wire, S: Subject<F>>(
        &self,
        subject: &S,
        original: &str,
        now: &str,
    ) -> Result<bool, String> {
        let parsed: Value = serde_json::from_str(now)
            .map_err(|error| format!("arguments are no JSON ({error}): {now}"))?;
        if let Ok(asked) = serde_json::from_str::<Value>(original)
            && asked.is_object()
            && parsed
                .as_object()
                .map(|fields| fields.keys().ne(["_cleared"]))
                == Some(true)
        {
            return self.check_strings(subject, &asked, &parsed).await;
        }
        let hint = parsed["_cleared"]
            .as_str()
            .and_then(Hint::parse)
            .ok_or_else(|| format!("no hint in {now}"))?;
        let Some(location) = hint.location else {
            return if subject.may_lose() {
                Ok(true)
            } else {
                Err(format!("arguments lost: {now}"))
            };
        };
        let stored = subject.read(location.as_str()).await;
        let is_there = stored.is_some_and(|stored| stored == original.as_bytes())
            && hint.bytes == original.len() as u64;
        if is_there {
            Ok(false)
        } else {
            Err(format!(
                "{} bytes of arguments are not at {location}",
                original.len()
            ))
        }
    }

    /// Checks that arguments are as they were, but for strings that became hints which give them back.
    async fn check_strings<F: Wire, S: Subject<F>>(
        &self,
        subject: &S,
        original: &Value,
        now: &Value,
    ) -> Result<bool, String> {
        let mut changed = Vec::new();
        if !differ_in_strings(original, now, &mut changed) {
            return Err(format!("other arguments than {original}: {now}"));
        }
        let mut is_lost = false;
        for (asked, shown) in changed {
            let hint = Hint::parse(shown).ok_or_else(|| format!("no hint: {shown}"))?;
            match hint.location {
                Some(location) => {
                    let stored = subject.read(location.as_str()).await;
                    if stored.is_none_or(|stored| stored != asked.as_bytes())
                        || hint.bytes != asked.len() as u64
                    {
                        return Err(format!(
                            "{} bytes of a string are not at {location}",
                            asked.len()
                        ));
                    }
                }
                None if subject.may_lose() => is_lost = true,
                None => return Err(format!("a string was lost: {shown}")),
            }
        }
        Ok(is_lost)
    }

    /// Checks that stored content never changes and that all of it was recorded.
    pub(crate) async fn check_store<F: Wire, S: Subject<F>>(
        &mut self,
        subject: &S,
    ) -> Result<(), Violation> {
        let stored = subject.stored().await;
        for (key, content) in &self.stored {
            require(stored.get(key) == Some(content), "L1", || {
                format!("what is stored at {key} has changed")
            })?;
        }
        for (key, content) in stored
            .iter()
            .filter(|(key, _)| !self.stored.contains_key(*key))
        {
            require(self.was_said(content), "L1", || {
                format!(
                    "{key} holds what nobody said: {:.200}",
                    String::from_utf8_lossy(content)
                )
            })?;
            super::names::check_key(key, &self.ids)?;
        }
        self.stored = stored;
        Ok(())
    }

    fn was_said(&self, content: &[u8]) -> bool {
        let is_said = |bytes: &[u8]| bytes.is_empty() || self.said.contains(bytes);
        // A result that could not be stored leaves a notice without a location, which later counts
        // as an ordinary text.
        is_said(content)
            || notice_of_loss(content).is_some()
            || split_manifest(content).is_some_and(|texts| texts.iter().all(|text| is_said(text)))
    }
}

/// Returns true if two values differ in nothing but strings, and collects these.
fn differ_in_strings<'v>(
    one: &'v Value,
    other: &'v Value,
    changed: &mut Vec<(&'v str, &'v str)>,
) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => {
            if one != other {
                changed.push((one, other));
            }
            true
        }
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| differ_in_strings(one, other, changed))
        }
        (Value::Object(one), Value::Object(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|((key, one), (other_key, other))| {
                    key == other_key && differ_in_strings(one, other, changed)
                })
        }
        (one, other) => one == other,
    }
}

/// The strings of a value. Keys are left out.
fn strings_in(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::String(text) => Box::new(std::iter::once(text.as_str())),
        Value::Array(items) => Box::new(items.iter().flat_map(strings_in)),
        Value::Object(fields) => Box::new(fields.values().flat_map(strings_in)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Box::new(std::iter::empty()),
    }
}

/// Parses a hint that says that its preview is all that is left of a result.
fn notice_of_loss(text: &[u8]) -> Option<Hint> {
    let hint = std::str::from_utf8(text).ok().and_then(Hint::parse)?;
    (hint.kind == Kind::Truncated && hint.location.is_none()).then_some(hint)
}

fn hints_in(part: &PartContent) -> Vec<Hint> {
    match part {
        PartContent::Text(text) => Hint::parse_all(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn shortened(parts: &[PartContent]) -> String {
    let show = |part: &PartContent| format!("{:.300}", String::from_utf8_lossy(part.bytes()));
    format!("{:?}", parts.iter().map(show).collect::<Vec<_>>())
}

/// Splits stored content that ends with a manifest `{"offcut_parts":[…]}` into its texts.
pub(crate) fn split_manifest(content: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut rest, manifest) = split_last_line(content)?;
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    let mut texts = Vec::new();
    for length in manifest.get("offcut_parts")?.as_array()? {
        let (text, tail) = rest.split_at_checked(usize::try_from(length.as_u64()?).ok()?)?;
        rest = tail.strip_prefix(b"\n")?;
        texts.push(text);
    }
    rest.is_empty().then_some(texts)
}

/// Splits content that ends with a line feed before its last line.
fn split_last_line(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let body = content.strip_suffix(b"\n")?;
    let feed = body.iter().rposition(|byte| *byte == b'\n')?;
    Some(content.split_at(feed + 1))
}

/// Matches the current parts with the original ones, in order.
struct Fit<'a> {
    originals: &'a [PartContent],
    contents: &'a HashMap<String, Option<Bytes>>,
    /// True if a hint may say that its original is lost.
    lossy: bool,
}

impl Fit<'_> {
    /// Index after everything joined with an earlier text: the other texts, and the documents
    /// stored with them.
    fn skip(&self, at: usize, joined: &Joined) -> usize {
        let Some(joined) = joined else { return at };
        let is_in = |part: &&PartContent| {
            part.is_text() || part.is_json() && joined.iter().any(|stored| stored == part.bytes())
        };
        at + self.originals[at..].iter().take_while(is_in).count()
    }

    fn parts(&self, now: &[PartContent], at: usize, joined: &Joined) -> bool {
        let at = self.skip(at, joined);
        if self.may_be_missing(at, joined) && self.parts(now, at + 1, joined) {
            return true;
        }
        let Some((part, rest)) = now.split_first() else {
            return at == self.originals.len();
        };
        let is_same = self
            .originals
            .get(at)
            .is_some_and(|original| original.bytes() == part.bytes());
        if is_same && self.parts(rest, at + 1, joined) {
            return true;
        }
        let hints = hints_in(part);
        if !hints.is_empty() && self.hints(&hints, rest, at, joined) {
            return true;
        }
        let behind: Vec<Hint> = hints.into_iter().map(|hint| self.behind(hint)).collect();
        self.lossy && !behind.is_empty() && self.hints(&behind, rest, at, joined)
    }

    fn hints(&self, hints: &[Hint], rest: &[PartContent], at: usize, joined: &Joined) -> bool {
        let at = self.skip(at, joined);
        let Some((hint, more)) = hints.split_first() else {
            return self.parts(rest, at, joined);
        };
        if self.may_be_missing(at, joined) && self.hints(hints, rest, at + 1, joined) {
            return true;
        }
        let Some(original) = self.originals.get(at) else {
            return false;
        };
        let may_join =
            hint.flags.joined && joined.is_none() && (original.is_text() || original.is_json());
        let now_joined = if may_join { self.joined_by(hint) } else { None };
        self.stands_for(hint, original) && self.hints(more, rest, at + 1, joined)
            || self
                .stand_for(hints, original)
                .is_some_and(|more| self.hints(more, rest, at + 1, joined))
            || now_joined.is_some() && self.hints(more, rest, at + 1, &now_joined)
    }

    /// An empty text may be missing. So may a document if joined texts are lost, because it may
    /// have been lost with them.
    fn may_be_missing(&self, at: usize, joined: &Joined) -> bool {
        let is_lost = |part: &PartContent| {
            part.is_json() && joined.as_ref().is_some_and(|stored| stored.is_empty())
        };
        self.originals
            .get(at)
            .is_some_and(|part| part.is_empty_text() || is_lost(part))
    }

    /// The notice of loss that `hint` leads to, or else `hint` itself. A result that could not be
    /// stored leaves a notice without a location, which later passes may clear like any other text.
    fn behind(&self, hint: Hint) -> Hint {
        self.content(&hint)
            .and_then(|content| notice_of_loss(content))
            .unwrap_or(hint)
    }

    fn content(&self, hint: &Hint) -> Option<&Bytes> {
        self.contents
            .get(hint.location.as_ref()?.as_str())?
            .as_ref()
    }

    fn stands_for(&self, hint: &Hint, original: &PartContent) -> bool {
        let is_itself = || matches!(original, PartContent::Text(text) if hint.render() == *text);
        let is_link = || matches!(original, PartContent::Link(url) if hint.location.as_ref().is_some_and(|at| at.as_str() == url));
        let is_lost = || self.lossy && hint.location.is_none();
        let is_there = || {
            self.content(hint).is_some_and(|content| {
                content == original.bytes() && hint.bytes == content.len() as u64
            })
        };
        is_itself() || is_link() || is_lost() || is_there() || self.is_one_hop(hint, original)
    }

    /// Matches an original of several hints, one for one. Returns the hints left over.
    fn stand_for<'h>(&self, hints: &'h [Hint], original: &PartContent) -> Option<&'h [Hint]> {
        let PartContent::Text(text) = original else {
            return None;
        };
        let shown = Hint::parse_all(text).filter(|shown| shown.len() > 1)?;
        let (now, more) = hints.split_at_checked(shown.len())?;
        let stands = |(hint, shown): (&Hint, &Hint)| hint == shown || self.leads_there(hint, shown);
        now.iter().zip(&shown).all(stands).then_some(more)
    }

    /// Tells whether the original is itself a hint at the stored content and says nothing that is
    /// not stored there.
    fn is_one_hop(&self, hint: &Hint, original: &PartContent) -> bool {
        let PartContent::Text(text) = original else {
            return false;
        };
        Hint::parse(text).is_some_and(|shown| self.leads_there(hint, &shown))
    }

    fn leads_there(&self, hint: &Hint, shown: &Hint) -> bool {
        let Some(content) = self.content(hint) else {
            return false;
        };
        shown.location == hint.location
            && hint.bytes == content.len() as u64
            && is_harmless(shown, hint, content)
    }

    /// The texts that a hint stands for, if they are all of the originals' texts. Documents may
    /// stand between them.
    fn joined_by(&self, hint: &Hint) -> Joined {
        if hint.location.is_none() {
            return self.lossy.then(Rc::default);
        }
        let stored: Vec<Vec<u8>> = split_manifest(self.content(hint)?)?
            .into_iter()
            .map(<[u8]>::to_vec)
            .collect();
        let is_in = |part: &&PartContent| {
            part.is_text() && !part.is_empty_text()
                || part.is_json() && stored.iter().any(|it| it == part.bytes())
        };
        let originals = self.originals.iter().filter(is_in).map(PartContent::bytes);
        let is_all = stored
            .iter()
            .filter(|text| !text.is_empty())
            .map(Vec::as_slice)
            .eq(originals);
        is_all.then(|| Rc::new(stored))
    }
}

/// The bytes of each joined text and document.
type Joined = Option<Rc<Vec<Vec<u8>>>>;

/// Length of the longest sentence in our hints, in bytes.
const MAX_PROSE: usize = 300;

/// Tells whether all that a hint shows can be read in `content`, and its prose is still said or no longer than a
/// sentence.
fn is_harmless(shown: &Hint, hint: &Hint, content: &[u8]) -> bool {
    let content = if shown.flags.joined {
        split_last_line(content).map_or(&[][..], |(texts, _)| texts)
    } else {
        content
    };
    let text = &*text_of(content);
    let preview = shown.preview.as_str();
    let shows = |text: &str| match shown.kind {
        Kind::Page { .. } => text.contains(preview),
        Kind::Matches => preview.lines().all(|row| {
            row.split_once(':')
                .is_some_and(|(_, line)| text.contains(line.trim_matches('…')))
        }),
        _ => text.contains(preview) || shows_pieces_alone(preview, text),
    };
    let is_said = ["fox", "abcdef", "很长", "seed", "offcut"]
        .iter()
        .any(|word| shown.prose.contains(word));
    (shows(text) || shows(&plain(text)))
        && (shown.prose == hint.prose || shown.prose.len() <= MAX_PROSE && !is_said)
}

/// The text as a person sees it: each line as it was last drawn, with a blank for NULs after more than a letter.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let end = line.trim_end_matches('\n').trim_end_matches('\r').len();
        let start = line[..end].rfind('\r').map_or(0, |at| at + 1);
        for word in line[start..].split_inclusive('\0') {
            let letters = word.trim_end_matches('\0');
            let is_separated = letters.len() > 1 && letters.len() < word.len();
            plain += letters;
            plain += if is_separated { " " } else { "" };
        }
    }
    plain
}

impl Shadow {
    /// Tells whether `stored` equals the stored content at the last check.
    pub(crate) fn is_stored(&self, stored: &BTreeMap<String, Bytes>) -> bool {
        self.stored == *stored
    }
}

/// Tells whether every piece of `preview` occurs in `text`, as far as that can be checked without
/// making the excerpt again: each line, without its number, in the line of that number or in any
/// line; each name in the line that it is listed under.
fn shows_pieces_alone(preview: &str, text: &str) -> bool {
    let Some((shown, _)) = preview.rsplit_once("\n[… ") else {
        return false;
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let stands = |row: &str| {
        let (place, body) = row.split_once('|').unwrap_or_default();
        let number = place
            .split('+')
            .next()
            .and_then(|number| number.parse::<usize>().ok());
        let numbered = number.and_then(|number| lines.get(number.checked_sub(1)?));
        numbered.is_some_and(|line| line.contains(body.trim_matches('…')))
            || lines
                .iter()
                .any(|line| line.contains(row.trim_end_matches('…')))
    };
    let named = |row: &str| {
        let mut line = "";
        row.strip_prefix("names: ").is_some_and(|list| {
            list.split(' ').all(|word| {
                if let Ok(number) = word.parse::<usize>() {
                    line = lines
                        .get(number.wrapping_sub(1))
                        .copied()
                        .unwrap_or_default();
                    return true;
                }
                line.contains(word)
            })
        })
    };
    shown.split('\n').all(|row| stands(row) || named(row))
}
