//! Finds the places in a path where names of stored content may end.

use std::collections::VecDeque;

use crate::backend::Key;

/// Maximum number of segments before a name.
const MAX_BEFORE: usize = Key::MAX_SEGMENTS - 1;

/// Hands to `found` each part of a path that may name content, in lower case, with as many segments
/// before the name as a key can have.
pub(super) fn names_in(path: &[u8], named: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
    // Starts of the last segments that a name may follow, newest last.
    let mut before = VecDeque::with_capacity(MAX_BEFORE);
    let (mut is_after_phase, mut begin) = (false, 0);
    for segment in path.split(|byte| *byte == b'/') {
        let name = stem(segment);
        let is_name = !name.is_empty() && name.len() <= Key::MAX_SEGMENT;
        if let Some(from) = before.front().filter(|_| is_after_phase && is_name) {
            named.clear();
            named.extend_from_slice(&path[*from..begin + name.len()]);
            named.make_ascii_lowercase();
            found(named);
        }
        if segment.is_empty() || segment.len() > Key::MAX_SEGMENT {
            before.clear();
        } else {
            if before.len() == MAX_BEFORE {
                before.pop_front();
            }
            before.push_back(begin);
        }
        is_after_phase = is_phase(segment);
        begin += segment.len() + 1;
    }
}

/// Strips trailing punctuation, which may belong to a sentence, a rule or emphasis. Keys that
/// differ only in that are all kept if one of them is named. Of a name that is all punctuation, the
/// first character stays.
pub(super) fn stem(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| !matches!(byte, b'.' | b'_' | b'-'));
    &name[..end.map_or(name.len().min(1), |end| end + 1)]
}

fn is_phase(segment: &[u8]) -> bool {
    Key::FOLDERS
        .iter()
        .any(|folder| segment.eq_ignore_ascii_case(folder.as_bytes()))
}
