//! Previews: within their budget, and true to the text.

use offcut::preview::Preview;

/// Takes one byte for the strategy, two for the budget, and the text.
pub(crate) fn preview(data: &[u8]) {
    let [strategy, low, high, text @ ..] = data else {
        return;
    };
    let budget = usize::from(u16::from_le_bytes([*low, *high])) % 2_000;
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    let strategy = [
        Preview::HeadTail,
        Preview::Lines,
        Preview::Index,
        Preview::Mixed,
    ][usize::from(strategy % 4)];
    let shown = strategy.show(text, budget);
    assert_eq!(shown, strategy.show(text, budget));
    assert!(shown.len() <= budget, "{} bytes for {budget}", shown.len());
    // Redrawn lines are for the library's own properties.
    let (plain, is_redrawn) = (
        text.replace('\0', ""),
        text.contains(['\u{1b}', '\u{8}', '\r']),
    );
    assert!(
        text.len() > budget || is_redrawn || shown == plain,
        "it fits, and is not shown whole"
    );
    let is_true = |text: &str| {
        shown.is_empty()
            || shown == text
            || is_head_and_tail(&shown, text)
            || is_excerpt(&shown, text)
    };
    let is_true = is_redrawn || is_true(text) || is_true(&plain);
    assert!(is_true, "{shown:?} is not all from {text:?}");
}

/// Returns true if `shown` is the beginning of `text`, a mark with the number of bytes left out,
/// and the end.
fn is_head_and_tail(shown: &str, text: &str) -> bool {
    shown.match_indices("[… ").any(|(at, _)| {
        let Some((mark, _)) = shown[at + "[… ".len()..].split_once(" …]") else {
            return false;
        };
        let Some(left_out) = mark
            .split(' ')
            .next()
            .and_then(|bytes| bytes.trim_end_matches('B').parse().ok())
        else {
            return false;
        };
        let head = &shown[..at];
        let tail = &shown[at + "[… ".len() + mark.len() + " …]".len()..];
        // A mark between whole lines has a line of its own.
        [head, head.strip_suffix('\n').unwrap_or(head)]
            .iter()
            .any(|head| {
                [tail, tail.strip_prefix('\n').unwrap_or(tail)]
                    .iter()
                    .any(|tail| {
                        text.starts_with(head)
                            && text.ends_with(tail)
                            && text.len().checked_sub(head.len() + tail.len()) == Some(left_out)
                    })
            })
    })
}

/// Returns true if each line of `shown` is in `text`, under its number if it has one, and each name
/// too.
fn is_excerpt(shown: &str, text: &str) -> bool {
    let Some((shown, rest)) = shown.rsplit_once('\n') else {
        return false;
    };
    let lines: Vec<&str> = text.split('\n').collect();
    let is_there = |line: &str| {
        is_numbered(line, &lines) || uncut(line).iter().any(|line| text.contains(line))
    };
    let are_names = |line: &str| {
        line.strip_prefix("names:")
            .is_some_and(|names| are_names(names, &lines))
    };
    rest.starts_with("[… ")
        && rest.ends_with(" B …]")
        && shown
            .split('\n')
            .all(|line| is_there(line) || are_names(line))
}

fn is_numbered(shown: &str, lines: &[&str]) -> bool {
    let Some((place, shown)) = shown.split_once('|') else {
        return false;
    };
    let (number, byte) = place.split_once('+').unwrap_or((place, "0"));
    let (Ok(number), Ok(byte)) = (number.parse::<usize>(), byte.parse::<usize>()) else {
        return false;
    };
    let line = number
        .checked_sub(1)
        .and_then(|at| lines.get(at)?.get(byte..));
    line.is_some_and(|line| uncut(shown).iter().any(|shown| line.starts_with(shown)))
}

/// Returns true if each name is in the line whose number precedes it.
fn are_names(names: &str, lines: &[&str]) -> bool {
    let mut line = None;
    names.split_whitespace().all(|word| {
        let number = word
            .parse::<usize>()
            .ok()
            .and_then(|number| lines.get(number.checked_sub(1)?));
        let is_name = line.is_some_and(|line: &&str| line.contains(word));
        line = number.or(line);
        is_name || number.is_some()
    })
}

/// Returns a line with and without the marks for a cut beginning or end, since such marks may be
/// part of the line.
fn uncut(line: &str) -> [&str; 4] {
    let begun = line.strip_prefix('…').unwrap_or(line);
    [
        line,
        begun,
        line.strip_suffix('…').unwrap_or(line),
        begun.strip_suffix('…').unwrap_or(begun),
    ]
}
