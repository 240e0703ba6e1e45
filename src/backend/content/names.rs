//! Names for stored content, made from the ids of calls, sessions and users: safe ids unchanged,
//! digests for the others.

use crate::backend::Key;
use crate::backend::key::{digest, is_safe_segment};
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
    /// `None` if it can't be a name: content is then named by its digest.
    pub(crate) text: Option<String>,
    /// True if a user's code gave it.
    pub(crate) is_given: bool,
}

impl Id {
    /// The id of a call, as a model wrote it.
    pub(crate) fn of_call(id: &str) -> Self {
        let is_safe = id.len() <= MAX_ID && is_free(id);
        Self {
            text: is_safe.then(|| id.to_owned()),
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
        // All 16 hexadecimal digits fit.
        let number = u64::from_str_radix(&digest(id.as_bytes()), 16).unwrap_or_default();
        Self::of_call(&format!("{:06}", number % SHORT_NAMES))
    }

    /// The id that a user's code gave. If it is not a safe name, returns the call's id and the
    /// problem.
    pub(crate) fn given_or(given: &str, call: impl FnOnce() -> Self) -> (Self, Option<String>) {
        if given.len() <= MAX_GIVEN && is_free(given) {
            let text = Some(given.to_owned());
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
}

/// Returns true if `name` can name stored content or a session: a safe segment that the store does
/// not use itself.
fn is_free(name: &str) -> bool {
    is_safe_segment(name) && !is_reserved(name)
}

/// A name as long as any of stored content.
pub(crate) fn longest_name(has_given_ids: bool) -> String {
    let id = if has_given_ids { MAX_GIVEN } else { MAX_ID };
    format!("{}-{DIGEST_EXAMPLE}", "x".repeat(id + MAX_SUFFIX))
}

/// The ending of the name of the `number`-th of several contents, counted from 1: nothing, `-2`, …
pub(crate) fn suffix(number: usize) -> String {
    match number {
        0 | 1 => String::new(),
        number => format!("-{number}"),
    }
}

/// The file ending that fits `mime`.
pub(crate) fn ending(mime: &str) -> &'static str {
    let known = ENDINGS.iter().find(|(known, _)| *known == mime);
    known.map_or(".bin", |(_, ending)| *ending)
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

    #[test]
    fn l6_hostile_ids_are_no_names() {
        let long = "x".repeat(2_000);
        let ids = "|../../../etc/cron.d/x|a\0b|.|..|呼叫|a/b|C:\\x|con|trunc|Meta";
        for id in ids.split('|').chain([long.as_str()]) {
            assert_eq!(Id::of_call(id).text, None, "{id:?}");
        }
        assert_eq!(Id::of_call("call_1").text.as_deref(), Some("call_1"));
    }

    #[test]
    fn only_long_ids_get_short_names() {
        let short = |id: &str| Id::short_of_call(id).text;
        for id in ["call_12", "toolu_012345"] {
            assert_eq!(short(id).as_deref(), Some(id));
        }
        let long = short("toolu_01A09q90qw90lq917835lq9");
        assert_eq!(long.as_deref(), Some("317589"));
        assert_eq!(
            short("../../../etc/cron.d/x").unwrap().len(),
            6,
            "an id that is no safe name makes digits that are one"
        );
        assert_eq!(short("../x"), None);
    }
}
