//! Long strings of an object, which leave one by one: what is short stays.

use std::cmp::Reverse;
use std::ops::Range;

use serde_json::Value;

use crate::json::text::{JsonText, Node};
use crate::json::view::{Kind, View};

/// Maximum number of strings that leave one by one, and of hints that are believed. An object
/// with more of them leaves whole.
const MAX_STRINGS: usize = 16;
/// Maximum number of bytes around hints in an object that is nothing but hints.
const ENVELOPE: usize = 32;
/// Minimum length in bytes of a string that leaves. Its hint takes about half of that.
const MIN_STRING: usize = 256;

/// Content that leaves an object so that it gets short.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// Its long strings in text order, or the whole text.
    pub contents: Vec<String>,
    /// The text around the strings; `None` if all of it leaves.
    pub frame: Option<Frame>,
}

/// JSON text with places for strings.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    text: String,
    /// In text order.
    places: Vec<Range<usize>>,
}

impl Frame {
    /// The text with `strings` in its places.
    #[must_use]
    pub(crate) fn filled<'s>(&self, strings: impl IntoIterator<Item = &'s str>) -> String {
        let mut filled = String::with_capacity(self.text.len());
        let mut from = 0;
        for (place, string) in self.places.iter().zip(strings) {
            filled.push_str(&self.text[from..place.start]);
            filled.push_str(&Value::from(string).to_string());
            from = place.end;
        }
        filled.push_str(&self.text[from..]);
        filled
    }
}

/// Decides what leaves the object `text`; `None` if it is short, hints aside.
///
/// Its longest strings leave, until at most `above` bytes are left besides strings that are hints. All
/// of it leaves if that is not enough, or if the text is not a JSON object.
#[must_use]
pub(crate) fn leaving(text: &str, above: usize, is_hint: impl Fn(&str) -> bool) -> Option<Leaving> {
    let whole = || {
        Some(Leaving {
            contents: vec![text.to_owned()],
            frame: None,
        })
    };
    let json = JsonText::parse(text).ok();
    let Some(json) = json.filter(|json| Node::root(json).is_object()) else {
        return whole();
    };
    // Bytes besides hints, the number of hints, and the strings that may leave.
    let (mut left, mut hints, mut strings) = (text.len(), 0, Vec::new());
    let mut open = vec![Node::root(&json)];
    while let Some(node) = open.pop() {
        match node.kind() {
            Kind::Object => open.extend(node.fields().map(|(_, value)| value)),
            Kind::Array => open.extend(node.items()),
            Kind::String => {
                let Some(string) = node.as_str() else {
                    continue;
                };
                let length = node.range().len();
                if string.is_empty() {
                    // Stands for a string that is gone, or costs nothing.
                    left -= length;
                } else if length <= 2 * string.len() && is_hint(string) {
                    left -= length;
                    hints += 1;
                } else if string.len() >= MIN_STRING {
                    strings.push((node.range(), string));
                }
            }
            Kind::Null | Kind::Bool | Kind::Number => {}
        }
    }
    if hints > MAX_STRINGS {
        return whole();
    }
    if left <= above || hints > 0 && left <= ENVELOPE {
        return None;
    }
    strings.sort_unstable_by_key(|(place, _)| (Reverse(place.len()), place.start));
    let mut taken = 0;
    for (place, _) in strings.iter().take(MAX_STRINGS - hints) {
        if left <= above {
            break;
        }
        left -= place.len();
        taken += 1;
    }
    if left > above {
        return whole();
    }
    strings.truncate(taken);
    strings.sort_unstable_by_key(|(place, _)| place.start);
    let contents = strings.iter().map(|(_, text)| (*text).to_owned()).collect();
    let places = strings.into_iter().map(|(place, _)| place).collect();
    let frame = Frame {
        text: text.to_owned(),
        places,
    };
    Some(Leaving {
        contents,
        frame: Some(frame),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn left(arguments: &str, above: usize) -> String {
        let is_hint = |text: &str| text.starts_with("[hint");
        let Some(Leaving { contents, frame }) = leaving(arguments, above, is_hint) else {
            return "stays".to_owned();
        };
        let Some(frame) = frame else {
            assert_eq!(contents, [arguments]);
            return "leaves".to_owned();
        };
        let hints = contents
            .iter()
            .map(|content| format!("[hint {}]", content.len()));
        let hints: Vec<String> = hints.collect();
        frame.filled(hints.iter().map(String::as_str))
    }

    #[test]
    fn long_strings_leave_and_all_else_is_spelled_as_it_was() {
        let (old, new) = ("old\\n".repeat(90), "n\\u0065w".repeat(200));
        let edit = format!(
            r#"{{ "path": "/a/b.rs", "new": "{new}", "n": 1.00, "n": [{{"old": "{old}"}}] }}"#
        );
        assert_eq!(
            left(&edit, 600),
            format!(
                r#"{{ "path": "/a/b.rs", "new": "[hint 600]", "n": 1.00, "n": [{{"old": "{old}"}}] }}"#
            ),
            "the longest first, until little enough is left"
        );
        let both = r#"{ "path": "/a/b.rs", "new": "[hint 600]", "n": 1.00, "n": [{"old": "[hint 360]"}] }"#;
        assert_eq!(left(&edit, 300), both);
        assert_eq!(left(both, 100), "stays");
        assert_eq!(left(r#"{ "_cleared": "[hint 9]" }"#, 0), "stays");
        assert_eq!(left(both, 10), "leaves", "nothing else is long");
    }

    #[test]
    fn other_texts_leave_whole() {
        let long = "x".repeat(999);
        for arguments in [
            format!("*** Begin Patch {long}"),
            format!("\"{long}\""),
            json!({ &long: 1 }).to_string(),
            json!({ "all": vec!["short"; 99] }).to_string(),
            json!({ "all": vec![&long; MAX_STRINGS + 1] }).to_string(),
            json!({ "all": vec!["[hint 1]"; 999] }).to_string(),
            format!(r#"{{"half": "\ud83d{long}"}}"#),
        ] {
            assert_eq!(left(&arguments, 300), "leaves", "{arguments:.60}");
        }
        let all = json!({ "all": vec![&long; MAX_STRINGS] }).to_string();
        assert!(left(&all, 300).starts_with(r#"{"all":["[hint 999]","#));
    }
}
