//! Results of other readers that return our stored content.

use bytes::Bytes;
use serde_json::Value;

use super::page::room;
use super::starts::{WINDOW, starts};
use super::stretch::{Found, MAX_READER_TEXT, Stretch};
use super::{overhead, page_hint};
use crate::backend::{BackendError, Key, Location};
use crate::content::{Part, ToolCall};
use crate::session::{Place, Session};
use offcut_store::content::Stored;

/// Minimum room, in bytes, for a page's content beside what its reader says.
const MIN_ROOM: usize = 16;
/// Maximum number of words in a call's arguments that are checked for a location.
const MAX_WORDS: usize = 64;
/// The separators of segments in paths of any system.
const SEPARATORS: [char; 2] = ['/', '\\'];
/// The longest arguments of a call that are looked at.
const MAX_ARGUMENTS: usize = 64 * 1024;

/// A result over its limit that another reader may have read from the store: one of the call's
/// arguments names the location of stored content. The result is compared as it arrives, and little
/// of it is held.
///
/// Without this, if a model reads stored content with a tool other than our reader, the result
/// would be stored again, the model would read that, and so on. A page only ever replaces one
/// unbroken stretch of the stored content, so nothing is lost.
pub(crate) struct OtherReader {
    stored: Stored,
    /// Bytes of the result that have not been compared.
    waiting: Bytes,
    /// The first bytes of the result, as many as a header may have.
    first: Vec<u8>,
    stretches: Option<Vec<Stretch>>,
    length: u64,
}

impl OtherReader {
    /// Starts with the `first` bytes of a result, more than its limit. `stored` is the content that the
    /// call [names](named_in).
    pub(crate) fn new(stored: Stored, first: Bytes) -> Self {
        let length = first.len() as u64;
        let kept = first[..MAX_READER_TEXT.min(first.len())].to_vec();
        Self {
            stored,
            waiting: first,
            first: kept,
            stretches: None,
            length,
        }
    }

    /// Adds the next `bytes` of the result. Those before must have been [compared](Self::compare).
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.length += bytes.len() as u64;
        self.waiting = bytes;
    }

    /// Compares the bytes added last. Returns false if this is a result like any other.
    pub(crate) async fn compare(&mut self) -> bool {
        // Content that can't be read can't be compared.
        self.try_compare().await.unwrap_or(false)
    }

    async fn try_compare(&mut self) -> Result<bool, BackendError> {
        let bytes = std::mem::take(&mut self.waiting);
        let (stretches, is_first) = match self.stretches.take() {
            Some(stretches) => (stretches, false),
            None => {
                let starts = starts(&self.stored, &bytes).await?;
                (starts.into_iter().map(Stretch::new).collect(), true)
            }
        };
        let window = WINDOW / stretches.len().max(1) as u64;
        let mut left = Vec::with_capacity(stretches.len());
        for mut stretch in stretches {
            let header = if is_first { stretch.start.header } else { 0 };
            if stretch.push(&self.stored, &bytes[header..], window).await? {
                left.push(stretch);
            }
        }
        Ok(!self.stretches.insert(left).is_empty())
    }

    /// Ends the result, after `length` bytes, and returns its replacement: the page of stored
    /// content that begins with this stretch. If the reader said something else, that comes before it
    /// in a separate text. `limit` is the room for all of it, in bytes.
    pub(crate) async fn finish(
        mut self,
        session: &Session,
        tool: &str,
        length: u64,
        limit: usize,
    ) -> Option<(Location, Vec<Part>)> {
        if length != self.length || !self.compare().await {
            return None;
        }
        let mut best: Option<Found> = None;
        for stretch in self.stretches.take()? {
            let found = stretch.finish(&self.stored, WINDOW).await.ok()?;
            let says = |found: &Found| found.start.header + found.footer.len();
            if let Some(found) =
                found.filter(|found| best.as_ref().is_none_or(|best| says(found) < says(best)))
            {
                best = Some(found);
            }
        }
        let parts = self
            .show(session, room(session, tool), limit, &best?)
            .await?;
        Some((self.stored.location, parts))
    }

    async fn show(
        &self,
        session: &Session,
        room: usize,
        limit: usize,
        found: &Found,
    ) -> Option<Vec<Part>> {
        let (prose, overhead) = (
            session.prose(),
            overhead(&self.stored.location, session.prose()),
        );
        let start = Place {
            position: found.start.position,
            at: found.start.at,
        };
        let header = self.first.get(..found.start.header)?;
        let mut beside = String::from_utf8_lossy(header).into_owned();
        beside.push_str(&String::from_utf8_lossy(&found.footer));
        let room = room
            .min(limit.checked_sub(beside.len())?)
            .checked_sub(overhead)?;
        if room < MIN_ROOM {
            return None;
        }
        let from = found.start.position;
        let (page, _) = page_hint(&self.stored, from, start, None, room, prose)
            .await
            .ok()?;
        let beside = (!beside.is_empty()).then_some(Part::Text(beside));
        Some(
            beside
                .into_iter()
                .chain([Part::Text(page.render())])
                .collect(),
        )
    }
}

/// Stored content of this session that the call's arguments name, as a value or as a word of a
/// command: the first location, or else the first path that ends as a location does. Relative paths,
/// links and home directories have many spellings, but the folder and the name at the end stay; the name
/// alone counts if the folder stands elsewhere, as after `cd`. The result is compared with the content, so a
/// wrong guess does no harm.
pub(crate) async fn named_in(session: &Session, call: &ToolCall) -> Option<Stored> {
    if call.arguments.len() > MAX_ARGUMENTS {
        return None;
    }
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let words = words_of(&arguments);
    if let Some(stored) = words.iter().find_map(|word| session.resolve(word)) {
        return Some(stored);
    }
    let is_folder = |segment: &&str| Key::FOLDERS.contains(segment);
    let elsewhere = words.iter().map(|word| split(word).0).find(is_folder);
    for word in &words {
        let (name, folder) = split(word);
        let folder = match folder {
            None | Some(".") => elsewhere,
            Some(_) => folder.filter(is_folder),
        };
        for stored in folder.map_or_else(Vec::new, |folder| session.named(folder, name)) {
            if stored.read(0..0).await.is_ok() {
                return Some(stored);
            }
        }
    }
    None
}

/// Returns true if the call's arguments name stored content, or any place in one of the stores.
pub(crate) async fn names_a_store(session: &Session, call: &ToolCall) -> bool {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let stores = session.stores();
    let mut words = words_of(&arguments).into_iter();
    words.any(|word| stores.iter().any(|store| store.resolve(word).is_some()))
        || named_in(session, call).await.is_some()
}

/// The last segment of a path, and the one before it.
fn split(path: &str) -> (&str, Option<&str>) {
    let mut segments = path.trim_end_matches(SEPARATORS).rsplit(SEPARATORS);
    (segments.next().unwrap_or_default(), segments.next())
}

/// The strings in a call's arguments in order, each word by word and then whole.
fn words_of(arguments: &Value) -> Vec<&str> {
    let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
    let (mut values, mut words, mut left) = (vec![arguments], Vec::new(), MAX_WORDS);
    while let Some(value) = values.pop() {
        match value {
            Value::String(text) => {
                let parts = text.split(is_between).filter(|word| !word.is_empty());
                let before = words.len();
                words.extend(parts.take(left));
                left -= words.len() - before;
                words.push(text);
            }
            Value::Array(all) => values.extend(all.iter().rev()),
            Value::Object(fields) => values.extend(fields.values().rev()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    words
}
