//! Lines and cells of previews of shapes, and the choice of lines.
//!
//! A line is shown if there is room for it after those before it: a preview made again in as many bytes as it has is the
//! same, which is how it is known again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use crate::json::{Node, View};
use crate::preview::pattern::pattern;
use crate::preview::units::CUT;

/// A string of JSON, or blanks outside of strings.
static BLANKS: LazyLock<Regex> = LazyLock::new(|| pattern(r#"("(?:[^"\\]|\\.)*")|[ \t\n\r]+"#));

/// The end of a preview that does not show all.
pub(super) const MORE: &str = "[… more …]";

/// Number of lines without room after which no more are tried.
const MAX_TOO_LONG: usize = 256;

/// The lines that fit `room` bytes, those of the first items first, in the order of the items' places. Of a place, the
/// first item counts.
pub(super) fn fitting<P: Ord + Copy, T>(
    items: impl IntoIterator<Item = (P, T)>,
    mut room: usize,
    line: impl Fn(P, T) -> String,
) -> BTreeMap<P, String> {
    let (mut lines, mut too_long) = (BTreeMap::new(), 0);
    for (place, item) in items {
        if lines.contains_key(&place) {
            continue;
        }
        let line = line(place, item);
        if line.len() <= room {
            room -= line.len();
            lines.insert(place, line);
        } else if too_long < MAX_TOO_LONG {
            too_long += 1;
        } else {
            break;
        }
    }
    lines
}

/// A value as it is written in a cell.
pub(super) fn cell(value: Node<'_>) -> Cow<'_, str> {
    match value.as_str() {
        // One with escapes keeps them.
        Some(text) if text.len() + 2 == value.spelling().len() => cell_of_text(text),
        Some(_) => value.spelling().into(),
        None => compact(value.spelling()),
    }
}

/// A text as it is written in a cell: quoted if it could be read as something else.
pub(super) fn cell_of_text(text: &str) -> Cow<'_, str> {
    let is_other = text.is_empty()
        || text.trim() != text
        || text.starts_with(['"', '{', '['])
        || text.contains(['|', '\n', '\r'])
        || ["null", "true", "false"].contains(&text)
        || text.parse::<f64>().is_ok();
    if is_other {
        serde_json::Value::from(text).to_string().into()
    } else {
        text.into()
    }
}

/// JSON, or a part of it that begins outside of strings, without blanks between its values.
pub(super) fn compact(json: &str) -> Cow<'_, str> {
    BLANKS.replace_all(json, "$1")
}

/// A cell, or its first `most` bytes.
pub(super) fn cut(cell: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if cell.len() <= most.saturating_add(CUT.len()) {
        return cell;
    }
    format!("{}{CUT}", &cell[..cell.floor_char_boundary(most)]).into()
}
