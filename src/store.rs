//! Where in a backend a result goes: names from ids, prefixes, what to do when a name is taken.

mod swept;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::backend::{Backend, BackendError, ErrorKind, Key, Location, Page, Put, Writer, digest, is_safe_segment};

pub(crate) use swept::{By, Other, is_reserved, is_same, name, put, read, swept, unswept};

/// The longest call id, in bytes, that is used as a name.
const MAX_ID: usize = 64;
/// The longest ending that is put behind a name: `-9999`, `-args`, `.jpeg`.
const MAX_SUFFIX: usize = 16;
/// Content up to so many bytes is read whole where a text has to be compared with it.
pub(crate) const MAX_WHOLE: u64 = 64 << 20;
/// How many bytes are asked of a backend at once.
pub(crate) const BLOCK: u64 = 1 << 20;

/// As long as any digest in a name.
pub(crate) const DIGEST_EXAMPLE: &str = "0123456789abcdef";

/// The longest id, in bytes, that a callback or a handler gives.
const MAX_GIVEN: usize = 200;

/// Shorter call ids, in bytes, are names already that cost no more than a short one.
const MIN_TO_SHORTEN: usize = 13;
/// What the digits of a short name count up to: six of them cost two tokens.
const SHORT_NAMES: u64 = 1_000_000;

/// What a result is stored under: the id of its call, or one that a user's code gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    text: String,
    is_given: bool,
}

impl Id {
    /// A model wrote it.
    pub(crate) fn of_call(id: &str) -> Self {
        Self { text: id.to_owned(), is_given: false }
    }

    /// The same, with six digits of its digest in place of a long id. Two ids may get the same, as one id may come twice: what
    /// comes second is named with the digest of its content.
    pub(crate) fn short_of_call(id: &str) -> Self {
        if id.len() < MIN_TO_SHORTEN {
            return Self::of_call(id);
        }
        let digest = Sha256::digest(id.as_bytes());
        let number = digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self { text: format!("{:06}", number % SHORT_NAMES), is_given: false }
    }

    /// The id that user's code gave, or the call's where it is no safe name; then with what is wrong.
    pub(crate) fn given_or(given: &str, call: impl FnOnce() -> Self) -> (Self, Option<String>) {
        if given.len() <= MAX_GIVEN && is_safe_segment(given) {
            return (Self { text: given.to_owned(), is_given: true }, None);
        }
        let problem = format!(
            "{} is no id: use one segment of up to {MAX_GIVEN} ASCII letters, digits, '.', '_' and '-'; the call's was used",
            serde_json::Value::from(given.get(..given.floor_char_boundary(MAX_ID)).unwrap_or_default())
        );
        (call(), Some(problem))
    }

    /// Whether user's code gave it.
    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }

    /// The name that it gives to any content, if it is a safe one.
    pub(crate) fn name(&self) -> Option<Name> {
        let most = if self.is_given { MAX_GIVEN } else { MAX_ID };
        let is_safe = self.text.len() <= most && is_safe_segment(&self.text);
        is_safe.then(|| Name { stem: self.text.clone(), ending: "", is_digest: false })
    }

    /// The name of `content`: a digest of it where the id is no safe name.
    pub(crate) fn name_of(&self, content: &[u8]) -> Name {
        self.name().unwrap_or_else(|| Name::of_digest(digest(content)))
    }
}

/// Why content is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It was too long: `<root>/trunc/<id>`.
    Truncate,
    /// It was too old: `<root>/clear/<id>`.
    Clear,
}

impl Phase {
    const fn folder(self) -> &'static str {
        match self {
            Self::Truncate => "trunc",
            Self::Clear => "clear",
        }
    }
}

/// The folders of stored content, one for each phase.
pub(crate) const FOLDERS: [&str; 2] = [Phase::Truncate.folder(), Phase::Clear.folder()];

/// The prefix under which one session stores, in whichever backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roots {
    /// Empty, or safe segments, each with a slash behind it.
    prefix: String,
}

impl Roots {
    pub(crate) fn below(&self, segment: &str) -> Self {
        Self { prefix: format!("{}{segment}/", self.prefix) }
    }

    /// What the keys of the session, and of sessions made from it, begin with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether `key` is the name of something that this session stored: exactly `<prefix><phase>/<name>`.
    pub(crate) fn own(&self, key: &Key) -> bool {
        let name = key
            .as_str()
            .strip_prefix(&self.prefix)
            .and_then(|rest| FOLDERS.iter().find_map(|folder| rest.strip_prefix(folder)?.strip_prefix('/')));
        name.is_some_and(|name| !name.contains('/'))
    }
}

/// A name for stored content: the call id where that is safe, else a digest of the content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    stem: String,
    ending: &'static str,
    /// Whether it says what the content is, rather than who asked for it.
    is_digest: bool,
}

impl Name {
    /// The name of content that has this digest, and no name of its own.
    pub(crate) fn of_digest(digest: String) -> Self {
        Self { stem: digest, ending: "", is_digest: true }
    }

    /// The name of the `n`-th part of a result, counted from 1: `<id>`, `<id>-2`, …
    pub(crate) fn part(mut self, n: usize) -> Self {
        if n > 1 {
            self.stem = format!("{}-{n}", self.stem);
        }
        self
    }

    /// The name of a call's arguments.
    pub(crate) fn arguments(mut self) -> Self {
        self.stem.push_str("-args");
        self
    }

    /// The name of all of a round.
    pub(crate) fn round(mut self) -> Self {
        self.stem.push_str("-round");
        self
    }

    /// With a file ending that fits `mime`.
    pub(crate) fn with_ending(mut self, mime: &str) -> Self {
        self.ending = ENDINGS.iter().find_map(|(known, ending)| (*known == mime).then_some(*ending)).unwrap_or(".bin");
        self
    }

    /// Whether other content can't have the same name.
    pub(crate) fn is_digest(&self) -> bool {
        self.is_digest
    }

    /// The name that is free even where this one is taken.
    pub(crate) fn with_digest(&self, digest: &str) -> Self {
        Self { stem: format!("{}-{digest}", self.stem), ending: self.ending, is_digest: true }
    }

    /// The file's name.
    pub(crate) fn file(&self) -> String {
        format!("{}{}", self.stem, self.ending)
    }
}

/// Media types that are stored under a file ending, so that people and programs know what it is.
const ENDINGS: [(&str, &str); 12] = [
    ("image/png", ".png"),
    ("image/jpeg", ".jpg"),
    ("image/gif", ".gif"),
    ("image/webp", ".webp"),
    ("image/svg+xml", ".svg"),
    ("application/pdf", ".pdf"),
    ("application/json", ".json"),
    ("audio/mpeg", ".mp3"),
    ("audio/wav", ".wav"),
    ("video/mp4", ".mp4"),
    ("text/html", ".html"),
    ("text/csv", ".csv"),
];

/// The media type of what is stored under `key`, if its ending tells.
pub(crate) fn media_type(key: &Key) -> Option<&'static str> {
    let is_media =
        |mime: &str| ["image/", "audio/", "video/", "application/pdf"].iter().any(|kind| mime.starts_with(kind));
    ENDINGS.iter().find_map(|(mime, ending)| (is_media(mime) && key.as_str().ends_with(ending)).then_some(*mime))
}

/// As long as a session's segment gets.
pub(crate) fn longest_session() -> String {
    "x".repeat(MAX_ID)
}

/// As long as a key gets below `roots`.
pub(crate) fn longest_key(roots: &Roots, has_given_ids: bool) -> Key {
    let stem = "x".repeat(if has_given_ids { MAX_GIVEN } else { MAX_ID } + MAX_SUFFIX);
    key(roots, Phase::Truncate, &Name { stem, ending: "", is_digest: false }.with_digest(DIGEST_EXAMPLE))
}

#[expect(clippy::expect_used, reason = "prefix, phase and name are all made of safe segments of bounded length")]
pub(crate) fn key(roots: &Roots, phase: Phase, name: &Name) -> Key {
    Key::new(format!("{}{}/{}", roots.prefix, phase.folder(), name.file())).expect("safe segments")
}

/// The two names that content may get: its own, and one that is free even where the first is taken.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    first: Key,
    second: Key,
}

impl Target {
    pub(crate) fn new(roots: &Roots, phase: Phase, name: &Name, content: &[u8]) -> Self {
        Self::with_digest(roots, phase, name, &digest(content))
    }

    /// For content of which only the digest is at hand.
    pub(crate) fn with_digest(roots: &Roots, phase: Phase, name: &Name, digest: &str) -> Self {
        let second = key(roots, phase, &name.with_digest(digest));
        Self { first: key(roots, phase, name), second }
    }

    /// Content whose own name is known to be taken.
    pub(crate) fn taken(roots: &Roots, phase: Phase, name: &Name, content: &[u8]) -> Self {
        Self::new(roots, phase, name, content).second_only()
    }

    /// The same without the first name, which is known to be taken.
    pub(crate) fn second_only(self) -> Self {
        Self { first: self.second.clone(), second: self.second }
    }

    /// The locations that the content may get.
    pub(crate) fn locations(&self, backend: &dyn Backend) -> [Location; 2] {
        [backend.locate(&self.first), backend.locate(&self.second)]
    }

    /// The keys to try, in this order.
    pub(crate) fn keys(&self) -> [&Key; 2] {
        [&self.first, &self.second]
    }

    /// Stores `content` and says where. What was stored before is never overwritten.
    pub(crate) async fn save(&self, backend: &dyn Backend, content: Bytes) -> Result<Location, BackendError> {
        for key in self.keys() {
            match put(backend, key, content.clone()).await? {
                Put::Stored | Put::AlreadyThere => return Ok(backend.locate(key)),
                Put::Taken => {}
            }
        }
        Err(self.both_taken())
    }

    /// Names what `writer` was given, and says where it is.
    pub(crate) async fn finish(
        &self,
        backend: &dyn Backend,
        writer: &mut dyn Writer,
    ) -> Result<Location, BackendError> {
        self.name(backend, writer, By::Finish).await
    }

    /// Keeps what `writer` was given, and its store could not take, in that store's spool, and says where it is.
    pub(crate) async fn keep(&self, spool: &dyn Backend, writer: &mut dyn Writer) -> Result<Location, BackendError> {
        self.name(spool, writer, By::Keep).await
    }

    async fn name(&self, store: &dyn Backend, writer: &mut dyn Writer, by: By) -> Result<Location, BackendError> {
        for key in self.keys() {
            match name(store, writer, key, by).await? {
                Put::Stored | Put::AlreadyThere => return Ok(store.locate(key)),
                Put::Taken => {}
            }
        }
        Err(self.both_taken())
    }

    fn both_taken(&self) -> BackendError {
        let message = format!("`{}` and `{}` hold other content: nothing was overwritten", self.first, self.second);
        BackendError::new(ErrorKind::Other, message)
    }
}

/// Stored content and where it is.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) key: Key,
    pub(crate) location: Location,
}

impl Stored {
    /// The bytes of `range`. Each block is asked for by itself: between two of them the content may be swept.
    pub(crate) async fn read(&self, range: Range<u64>) -> Result<Page, BackendError> {
        read(&*self.backend, &self.key, range).await
    }

    /// Gives `see` the content block by block until it has seen enough, and says how long the content is.
    pub(crate) async fn scan(&self, mut see: impl FnMut(&[u8], u64) -> bool + Send) -> Result<u64, BackendError> {
        let mut at = 0;
        loop {
            let page = self.read(at..at + BLOCK).await?;
            let wants_more = see(&page.bytes, page.total);
            at += page.bytes.len() as u64;
            if page.bytes.is_empty() && at < page.total {
                let message =
                    format!("`{}` ended after {at} of {} bytes: the store is broken", self.location, page.total);
                return Err(BackendError::new(ErrorKind::Other, message));
            }
            if at >= page.total || !wants_more {
                return Ok(page.total);
            }
        }
    }

    /// All of it, or `None` if it is more than [`MAX_WHOLE`].
    pub(crate) async fn whole(&self) -> Result<Option<Bytes>, BackendError> {
        let mut content = Vec::new();
        let total = self
            .scan(|bytes, total| {
                if total <= MAX_WHOLE {
                    content.extend_from_slice(bytes);
                }
                total <= MAX_WHOLE
            })
            .await?;
        Ok((content.len() as u64 == total).then(|| content.into()))
    }
}

/// A segment for the session `id`: the id where that is safe, else its digest. An id that looks like a digest is not safe: it may
/// be that of another session's id, whose content would be read.
pub(crate) fn session_segment(id: &str) -> String {
    let is_like_a_digest = id.len() == DIGEST_EXAMPLE.len() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_like_a_digest || is_reserved(id) {
        return digest(id.as_bytes());
    }
    Id::of_call(id).name_of(id.as_bytes()).file()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_name(id: &str) -> Name {
        Id::of_call(id).name_of(b"")
    }

    #[test]
    fn l6_hostile_ids_become_digests() {
        let long = "x".repeat(2_000);
        for id in ["", "../../../etc/cron.d/x", "a\0b", ".", "..", "呼叫", "a/b", "C:\\x", "con", &long] {
            assert_eq!(Id::of_call(id).name_of(b"content").file(), digest(b"content"), "{id:?}");
        }
        assert_eq!(id_name("call_1").file(), "call_1");
        assert_eq!(id_name("call_1").part(2).with_ending("image/png").file(), "call_1-2.png");
        assert_eq!(id_name("call_1").arguments().with_digest(&digest(b"")).file(), "call_1-args-e3b0c44298fc1c14");
    }

    #[test]
    fn short_names_are_of_long_ids() {
        let short = |id: &str| Id::short_of_call(id).name_of(b"content").file();
        assert_eq!((short("call_12").as_str(), short("toolu_012345").as_str()), ("call_12", "toolu_012345"));
        let name = short("toolu_01A09q90qw90lq917835lq9");
        assert_eq!((name.as_str(), name.len()), ("317589", 6));
        assert_eq!(short("../../../etc/cron.d/x").len(), 6, "an id that is no safe name makes digits that are one");
        assert_eq!(short("../x"), digest(b"content"));
    }

    #[test]
    fn a_session_owns_exactly_its_own() {
        let root = Roots::default().below("agent");
        let session = root.below("s1");
        let own = |roots: &Roots, key: &str| roots.own(&Key::new(key).unwrap());
        assert!(own(&root, "agent/trunc/call_1") && own(&root, "agent/clear/call_1-args"));
        assert!(own(&session, "agent/s1/trunc/call_1"));
        for foreign in [
            "agent/s1/trunc/call_1",
            "trunc/call_1",
            "agent/swept/trunc/call_1",
            "agent/swept/call_1",
            "agent/trunc",
            "other/trunc/call_1",
        ] {
            assert!(!own(&root, foreign), "{foreign}");
        }
        assert!(!own(&session, "agent/trunc/call_1"));
        assert!(!own(&root.below(&session_segment("swept")), "agent/swept/trunc/call_1"));
        assert!(!own(&Roots::default(), "agent/trunc/call_1"));
    }

    #[test]
    fn the_longest_name_fits_a_key() {
        let roots = Roots::default().below(&"x".repeat(200)).below(&"x".repeat(199)).below(&longest_session());
        assert!(longest_key(&roots, false).as_str().len() > 400 + 2 * MAX_ID);
        assert!(longest_key(&roots, true).as_str().len() > 400 + MAX_ID + MAX_GIVEN);
        assert!(swept(&longest_key(&roots, true)).is_some(), "it can be swept");
    }
}
