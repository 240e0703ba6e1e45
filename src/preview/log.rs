//! A log by its kinds of lines: the first of each, with the place of the last and their number, failures and rare ones before the others.
//!
//! ```text
//! [4021 lines of 4 kinds]
//! 1|2026-11-25T10:00:01 INFO listening on :8080
//! 2…4019 ×3980|2026-11-25T10:00:02 INFO GET /health 200 3 ms
//! 17…3900 ×39|2026-11-25T10:00:41 WARN slow query 120 ms
//! 2203|2026-11-25T11:03:17 ERROR payment 771 failed
//! 4021|2026-11-25T12:40:12 INFO GET /health 200 2 ms
//! [… more …]
//! ```

use std::borrow::Cow;
use std::hash::BuildHasher;
use std::sync::LazyLock;

use foldhash::{HashMap, HashMapExt};
use regex::Regex;

use crate::preview::failures::HASHER;
use crate::preview::pattern::pattern;
use crate::preview::plain::Plain;
use crate::preview::rows::{MORE, fitting};
use crate::preview::signs::is_failure;
use crate::preview::units::CUT;

/// A text with fewer lines is read as it is.
const MIN_LINES: usize = 20;
/// Minimum number of lines of a kind, on average.
const PER_KIND: usize = 3;
/// One part in so many of the first lines, of so many at least, begins as those of a log do.
const BEGIN: usize = 2;
const MIN_BEGINNING: usize = 3;
/// Maximum length in bytes of a line that is shown whole.
const MAX_LINE: usize = 300;
/// Number of the most frequent kinds of which the first line comes before that of rare ones.
const FREQUENT: usize = 3;
/// The signs between words of a line of JSON.
const JSON_SIGNS: [char; 7] = ['{', '}', '[', ']', '"', ',', ':'];

/// A time, or a level, near the beginning of a line.
static BEGINS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^.{0,60}?(?:\b|T)[0-9]{1,2}:[0-9]{2}:[0-9]{2}|^\W{0,3}(?i:trace|debug|info|notice|warn|warning|error|fatal|level=\w+)\b",
    )
});

/// Returns a preview of a log that has this beginning in at most `budget` bytes, if its lines are of a few kinds.
pub(crate) fn show(text: &str, beginning: &str, budget: usize) -> Option<String> {
    let plain = Plain::of(beginning).text;
    let first = plain.lines().filter(|line| !line.trim().is_empty());
    let logged = first.clone().filter(|line| BEGINS.is_match(line)).count();
    let all = first.count();
    if all < MIN_BEGINNING || logged * BEGIN < all {
        return None;
    }
    let plain = Plain::of(text).text;
    let lines: Vec<&str> = plain.lines().collect();
    let is_told = |at: &usize| !lines[*at].trim().is_empty();
    // The lines with the same words, but for numbers and names.
    let (mut kinds, mut places) = (Vec::<Vec<usize>>::new(), HashMap::new());
    for at in (0..lines.len()).filter(is_told) {
        let kind = *places.entry(kind(lines[at])).or_insert(kinds.len());
        if kind == kinds.len() {
            kinds.push(Vec::new());
        }
        kinds[kind].push(at);
    }
    if lines.len() < MIN_LINES || kinds.len() * PER_KIND > lines.len() {
        return None;
    }
    let head = format!("[{} lines of {} kinds]\n", lines.len(), kinds.len());
    let room = budget.checked_sub(head.len() + MORE.len())?;
    kinds.sort_by_key(|kind| (kind.len(), kind[0]));
    let rare = kinds.len().saturating_sub(FREQUENT);
    kinds.rotate_left(rare);
    kinds.sort_by_key(|kind| !is_failure(lines[kind[0]]));
    let alone = |at: usize| (at, &[][..]);
    let end = Some(lines.len() - 1).filter(is_told).map(alone);
    let first = kinds.iter().map(|kind| (kind[0], &kind[..]));
    let last = kinds
        .iter()
        .filter_map(|kind| kind.last().copied().map(alone));
    let shown = fitting(
        end.into_iter().chain(first).chain(last),
        room,
        |at, alike| {
            let alike = match alike {
                all @ [_, .., last] => format!("…{} ×{}", last + 1, all.len()),
                _ => String::new(),
            };
            format!("{}{alike}|{}\n", at + 1, without_middle(lines[at]))
        },
    );
    let shown: Vec<String> = shown.into_values().collect();
    (shown.len() >= MIN_BEGINNING).then(|| head + &shown.concat() + MORE)
}

/// A line, or the first and the last bytes of a long one.
fn without_middle(line: &str) -> Cow<'_, str> {
    if line.len() <= MAX_LINE + CUT.len() {
        return line.into();
    }
    let begins = &line[..line.floor_char_boundary(MAX_LINE / 2)];
    let ends = &line[line.ceil_char_boundary(line.len() - MAX_LINE / 2)..];
    format!("{begins}{CUT}{ends}").into()
}

/// Hash of the words of a line, without numbers, names and paths, but with how a server answered: 404 and 500 are
/// different kinds. Numbers before a unit, as `500 ms`, say something else.
fn kind(line: &str) -> u64 {
    let is_json = line.starts_with('{');
    let is_between = |c: char| c.is_ascii_whitespace() || is_json && JSON_SIGNS.contains(&c);
    let words = line.split(is_between).filter(|word| !word.is_empty());
    let mut words = words.peekable();
    let mut hash = 0;
    while let Some(word) = words.next() {
        let is_letter = |byte: u8| byte.is_ascii_alphabetic();
        let is_unit = |next: &&str| next.len() <= 2 && next.bytes().all(is_letter);
        let is_of_name = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'/' | b'_' | b'=');
        let is_number = word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit());
        let is_answer = is_number && word.starts_with(['4', '5']);
        let told = if is_answer && !words.peek().is_some_and(is_unit) {
            Some(&word[..1])
        } else {
            Some(word).filter(|word| !word.bytes().any(is_of_name))
        };
        hash = HASHER.hash_one((hash, told));
    }
    hash
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use crate::preview::shapes::show;
    use crate::preview::{Preview, holds_only};

    fn log(lines: usize, odd: &[(usize, &str)]) -> String {
        let line = |n: usize| {
            let says = odd
                .iter()
                .find(|(at, _)| *at == n)
                .map(|(_, says)| (*says).to_owned());
            let says = says.unwrap_or_else(|| match n % 40 {
                7 => format!("WARN slow query {} ms", n % 13 * 50),
                n if n % 3 == 0 => format!("INFO job job_{n} done"),
                _ => format!("INFO GET /items/{n} 200 {} ms", n % 9),
            });
            format!(
                "2026-11-25T{:02}:{:02}:{:02}Z {says}\n",
                n / 3600,
                n / 60 % 60,
                n % 60
            )
        };
        (1..=lines).map(line).collect()
    }

    #[test]
    fn a_log_is_shown_by_its_kinds_of_lines() {
        let odd = [
            (1, "INFO listening on :8080"),
            (1_203, "payment of 12 EUR declined by the bank"),
            (1_400, "ERROR payment 771 failed"),
        ];
        let text = log(2_000, &odd);
        insta::assert_snapshot!(Preview::Mixed.show(&text, 900), @"
        [2000 lines of 6 kinds]
        1|2026-11-25T00:00:01Z INFO listening on :8080
        2…1998 ×1249|2026-11-25T00:00:02Z INFO GET /items/2 200 2 ms
        3…2000 ×698|2026-11-25T00:00:03Z INFO job job_3 done
        7…1967 ×50|2026-11-25T00:00:07Z WARN slow query 350 ms
        1203|2026-11-25T00:20:03Z payment of 12 EUR declined by the bank
        1400|2026-11-25T00:23:20Z ERROR payment 771 failed
        1967|2026-11-25T00:32:47Z WARN slow query 200 ms
        1998|2026-11-25T00:33:18Z INFO GET /items/1998 200 0 ms
        2000|2026-11-25T00:33:20Z INFO job job_0 done
        [… more …]
        ");
        insta::assert_snapshot!(Preview::Mixed.show(&text, 200), @"
        [2000 lines of 6 kinds]
        7…1967 ×50|2026-11-25T00:00:07Z WARN slow query 350 ms
        1400|2026-11-25T00:23:20Z ERROR payment 771 failed
        2000|2026-11-25T00:33:20Z INFO job job_0 done
        [… more …]
        ");
        let answers = [200, 200, 503, 200, 404, 200];
        let requests: String = (0..60)
            .map(|n| format!("10:00:{n:02} GET /items/{n} {}\n", answers[n % 6]))
            .collect();
        insta::assert_snapshot!(Preview::Mixed.show(&requests, 200), @"
        [60 lines of 3 kinds]
        1…60 ×40|10:00:00 GET /items/0 200
        3…57 ×10|10:00:02 GET /items/2 503
        5…59 ×10|10:00:04 GET /items/4 404
        60|10:00:59 GET /items/59 200
        [… more …]
        ");
        let json: String = (0..60)
            .map(|n| {
                let says = if n == 7 { "feed lost" } else { "pushed" };
                format!("{{\"time\":\"10:00:{n:02}\",\"item\":{{\"id\":{n},\"text\":\"{}\"}},\"msg\":\"{says}\"}}\n", "word ".repeat(90))
            })
            .collect();
        let shown = Preview::Mixed.show(&json, 1_200);
        assert!(
            shown.starts_with("[60 lines of 2 kinds]") && shown.contains("\"feed lost\"}"),
            "{shown}"
        );
        // Neither a text with a time in it nor lines that are all different.
        assert_eq!(
            show(
                &"at 10:00:00 it rained\n\nand not at\n\nany other time\n".repeat(9),
                300
            ),
            None
        );
        let varied: String = (0..90)
            .map(|n| format!("10:00:{:02} {}\n", n % 60, "word ".repeat(n)))
            .collect();
        assert_eq!(show(&varied, 300), None);
    }

    proptest! {
        #[test]
        fn budgets_are_kept_and_logs_known_again(
            lines in 1usize..200, odd in proptest::collection::vec((1usize..200, "[a-zA-Z0-9 =/\u{1b}\r:]{0,30}"), 0..9), budget in 0usize..1_500,
        ) {
            let odd: Vec<(usize, &str)> = odd.iter().map(|(at, text)| (*at, text.as_str())).collect();
            let text = log(lines, &odd);
            let preview = Preview::Mixed.show(&text, budget);
            prop_assert!(preview.len() <= budget || preview == text);
            prop_assert!(holds_only(&preview, &text), "{preview}");
            if let Some(shown) = show(&text, budget) {
                prop_assert!(shown.len() <= budget);
                prop_assert_eq!(show(&text, shown.len()), Some(shown));
            }
        }
    }
}
