//! Finds the places in a path where names of stored content may end.

use crate::backend::Key;

/// A path with very many names is handed on in pieces of this many, so that a path which repeats
/// itself is kept once.
const NAMES_IN_PIECE: usize = 64;
/// Maximum number of segments before a name.
const MAX_BEFORE: usize = Key::MAX_SEGMENTS - 1;

/// Hands to `found` the parts of a path that hold names, each with as many segments before it as a
/// key can have.
pub(super) fn pieces(run: &[u8], piece: &mut Vec<u8>, found: &mut impl FnMut(&[u8])) {
    let mut hand_on = |from: usize, to: usize| {
        piece.clear();
        piece.extend_from_slice(&run[from..to]);
        piece.make_ascii_lowercase();
        found(piece);
    };
    // Starts of the last segments that a name may follow, newest last.
    let mut before = [0; MAX_BEFORE];
    let (mut count, mut is_after_phase, mut begin) = (0, false, 0);
    let mut pending: Option<(usize, usize)> = None;
    let mut names = 0;
    for segment in run.split(|byte| *byte == b'/') {
        let name = stem(segment);
        if is_after_phase && is_name(name) {
            let (from, to) = (before[0], begin + name.len());
            names += 1;
            pending = Some(match pending {
                // The two names share segments.
                Some((first, end)) if from <= end && names <= NAMES_IN_PIECE => (first, to),
                Some((first, end)) => {
                    hand_on(first, end);
                    names = 1;
                    (from, to)
                }
                None => (from, to),
            });
        }
        if segment.is_empty() || segment.len() > Key::MAX_SEGMENT {
            count = 0;
        } else {
            if count == MAX_BEFORE {
                before.rotate_left(1);
                count -= 1;
            }
            before[count] = begin;
            count += 1;
        }
        is_after_phase = count > 0 && is_phase(segment);
        begin += segment.len() + 1;
    }
    if let Some((from, to)) = pending {
        hand_on(from, to);
    }
}

/// Hands to `name` each name that a piece may mean, as its segments from last to first.
pub(super) fn each_name<'p>(
    piece: &'p [u8],
    mut name: impl FnMut(&mut dyn Iterator<Item = &'p [u8]>),
) {
    let segments: Vec<&'p [u8]> = piece.split(|byte| *byte == b'/').collect();
    for (at, pair) in segments.windows(2).enumerate() {
        let [phase, last] = *pair else { continue };
        let last = stem(last);
        if !is_phase(phase) || !is_name(last) {
            continue;
        }
        let begin = at.saturating_sub(MAX_BEFORE - 1);
        let usable = |segment: &&&'p [u8]| !segment.is_empty() && segment.len() <= Key::MAX_SEGMENT;
        let before = segments[begin..at].iter().rev().take_while(usable).copied();
        name(&mut [last, phase].into_iter().chain(before));
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

fn is_name(stem: &[u8]) -> bool {
    !stem.is_empty() && stem.len() <= Key::MAX_SEGMENT
}

fn is_phase(segment: &[u8]) -> bool {
    Key::FOLDERS
        .iter()
        .any(|folder| segment.eq_ignore_ascii_case(folder.as_bytes()))
}
