//! Names for stored content, made from the ids of calls, sessions and users: safe ids unchanged,
//! digests for the others.

use sha2::{Digest, Sha256};

use crate::backend::Key;
use crate::backend::key::is_safe_segment;
use crate::backend::layout::{MAX_ID, is_reserved};

/// Maximum length of the endings added to a name: `-9999`, `-args`, `.jpeg`.
const MAX_SUFFIX: usize = 16;
/// A digest with the most bytes and tokens that one can have: each digit between letters is a
/// token.
pub(crate) const DIGEST_EXAMPLE: &str = "0a1b2c3d4e5f6a7b";

/// Maximum length, in bytes, of an id from a callback or a handler.
const MAX_GIVEN: usize = 200;

/// Shorter call ids, in bytes, cost no more than a short name does.
const MIN_TO_SHORTEN: usize = 13;
/// Upper bound of a short name's number: six digits cost two tokens.
const SHORT_NAMES: u64 = 1_000_000;

/// An id under which a result is stored: its call's, or one that a user's code gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    text: String,
    is_given: bool,
}

impl Id {
    /// The id of a call, as a model wrote it.
    pub(crate) fn of_call(id: &str) -> Self {
        Self {
            text: id.to_owned(),
            is_given: false,
        }
    }

    /// Like [`of_call`](Self::of_call), with six digits of its digest instead of a long id. Two ids
    /// may get the same digits, just as an id may repeat: the second content gets its digest in its
    /// name.
    pub(crate) fn short_of_call(id: &str) -> Self {
        if id.len() < MIN_TO_SHORTEN {
            return Self::of_call(id);
        }
        let digest = Sha256::digest(id.as_bytes());
        let number = digest
            .iter()
            .take(8)
            .fold(0, |number, byte| number << 8 | u64::from(*byte));
        Self::of_call(&format!("{:06}", number % SHORT_NAMES))
    }

    /// The id that a user's code gave. If it is not a safe name, returns the call's id and the
    /// problem.
    pub(crate) fn given_or(given: &str, call: impl FnOnce() -> Self) -> (Self, Option<String>) {
        if given.len() <= MAX_GIVEN && is_free(given) {
            let text = given.to_owned();
            let is_given = true;
            return (Self { text, is_given }, None);
        }
        let problem = format!(
            "{:?} can't be used as an id: use 1 to {MAX_GIVEN} ASCII letters, digits, '.', '_' or '-', but not `trunc`, \
             `clear` or `meta`; the call's id was used instead",
            given
                .get(..given.floor_char_boundary(MAX_ID))
                .unwrap_or_default()
        );
        (call(), Some(problem))
    }

    /// Returns true if a user's code gave it.
    pub(crate) fn is_given(&self) -> bool {
        self.is_given
    }

    /// The name that it gives to any content, if it is a safe one.
    pub(crate) fn name(&self) -> Option<Name> {
        let most = if self.is_given { MAX_GIVEN } else { MAX_ID };
        let is_safe = self.text.len() <= most && is_free(&self.text);
        is_safe.then(|| Name::new(self.text.clone(), false))
    }

    /// The name of content with this `digest`, which it is if the id is not a safe name.
    pub(crate) fn name_of(&self, digest: &str) -> Name {
        self.name()
            .unwrap_or_else(|| Name::of_digest(digest.to_owned()))
    }
}

/// Returns true if `name` can name stored content or a session: a safe segment that the store does
/// not use itself.
fn is_free(name: &str) -> bool {
    is_safe_segment(name) && !is_reserved(name)
}

/// A name for stored content: an id if that is safe, else a digest of the content.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Name {
    stem: String,
    ending: &'static str,
    /// True if the name holds a digest of its content.
    is_digest: bool,
}

impl Name {
    /// The name of content that has this digest, and no id to be named by.
    pub(crate) fn of_digest(digest: String) -> Self {
        Self::new(digest, true)
    }

    fn new(stem: String, is_digest: bool) -> Self {
        Self {
            stem,
            ending: "",
            is_digest,
        }
    }

    /// A name as long as any without a digest.
    pub(crate) fn longest(has_given_ids: bool) -> Self {
        let stem = "x".repeat(if has_given_ids { MAX_GIVEN } else { MAX_ID } + MAX_SUFFIX);
        Self::new(stem, false)
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

    /// The name with a file ending that fits `mime`.
    pub(crate) fn with_ending(mut self, mime: &str) -> Self {
        self.ending = ENDINGS
            .iter()
            .find_map(|(known, ending)| (*known == mime).then_some(*ending))
            .unwrap_or(".bin");
        self
    }

    /// Its file ending, or nothing.
    pub(crate) fn ending(&self) -> &'static str {
        self.ending
    }

    /// Returns true if no other content can have the same name.
    pub(crate) fn is_digest(&self) -> bool {
        self.is_digest
    }

    /// The name that is free even if this one is taken.
    pub(crate) fn with_digest(&self, digest: &str) -> Self {
        Self {
            stem: format!("{}-{digest}", self.stem),
            ending: self.ending,
            is_digest: true,
        }
    }

    /// The file name.
    pub(crate) fn file(&self) -> String {
        format!("{}{}", self.stem, self.ending)
    }
}

/// File endings by media type, so that people and programs recognize stored files.
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

/// The media type of the content stored under `key`, if its ending tells.
pub(crate) fn media_type(key: &Key) -> Option<&'static str> {
    let is_media = |mime: &str| {
        ["image/", "audio/", "video/", "application/pdf"]
            .iter()
            .any(|kind| mime.starts_with(kind))
    };
    ENDINGS.iter().find_map(|(mime, ending)| {
        (is_media(mime) && key.as_str().ends_with(ending)).then_some(*mime)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::key::digest;

    fn id_name(id: &str) -> Name {
        Id::of_call(id).name_of(&digest(b""))
    }

    #[test]
    fn l6_hostile_ids_become_digests() {
        let long = "x".repeat(2_000);
        let ids = "|../../../etc/cron.d/x|a\0b|.|..|呼叫|a/b|C:\\x|con|trunc|Meta";
        for id in ids.split('|').chain([long.as_str()]) {
            assert_eq!(
                Id::of_call(id).name_of(&digest(b"content")).file(),
                digest(b"content"),
                "{id:?}"
            );
        }
        assert_eq!(id_name("call_1").file(), "call_1");
        assert_eq!(
            id_name("call_1").part(2).with_ending("image/png").file(),
            "call_1-2.png"
        );
        assert_eq!(
            id_name("call_1")
                .arguments()
                .with_digest(&digest(b""))
                .file(),
            "call_1-args-e3b0c44298fc1c14"
        );
    }

    #[test]
    fn only_long_ids_get_short_names() {
        let short = |id: &str| Id::short_of_call(id).name_of(&digest(b"content")).file();
        assert_eq!(
            (short("call_12").as_str(), short("toolu_012345").as_str()),
            ("call_12", "toolu_012345")
        );
        let name = short("toolu_01A09q90qw90lq917835lq9");
        assert_eq!((name.as_str(), name.len()), ("317589", 6));
        assert_eq!(
            short("../../../etc/cron.d/x").len(),
            6,
            "an id that is no safe name makes digits that are one"
        );
        assert_eq!(short("../x"), digest(b"content"));
    }
}
