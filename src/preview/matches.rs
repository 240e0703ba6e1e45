//! The matches of a search by file: each path once, with the number of its matches.
//!
//! ```text
//! [208 matches in 31 files]
//! src/util/wait.rs (2)
//! 12:    let timeout = Duration::ZERO;
//! 90:    wait(timeout)
//! src/pool.rs (38)
//! 7:use crate::util::timeout;
//! src/lib.rs:3:pub mod timeout;
//! [… more …]
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::LazyLock;

use foldhash::{HashMap, HashMapExt};
use regex::Regex;

use crate::preview::cost::about_tokens;
use crate::preview::failures::failure_worth;
use crate::preview::found::{Found, pop_best};
use crate::preview::outcomes::{ending, without_header};
use crate::preview::pattern::pattern;
use crate::preview::plain::Plain;
use crate::preview::rows::{MORE, cut, fitting};
use crate::preview::units::Unit;

/// Minimum number of matches in a file, on average.
const PER_FILE: usize = 2;
/// One line in so many may be anything else.
const OTHERS: usize = 10;
/// Number of lines at the beginning that tell whether a text may be the output of a search.
const MIN_BEGINNING: usize = 3;
/// Maximum number of files that are shown. Their paths come before all lines.
const MAX_PATHS: usize = 50;
/// Maximum length in bytes of a path before a line around a match.
const MAX_PATH: usize = 300;
/// Ends the first line if all is shown.
const WHOLE: &str = ", whole]\n";
/// Maximum length in bytes of a line that is shown whole.
const MAX_LINE: usize = 200;
/// Extra worth of an exit code or a count.
const TOLD: f32 = 4.0;
/// Estimated tokens of the end of a line and its number.
const PER_LINE: f32 = 3.0;

/// A path, the number of a line, and its text, as `grep -n` and its like write them.
static MATCH: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^((?:[A-Za-z]:)?[^:\s][^:]*[./\\][^:]*):[0-9]+:"));

/// The number of a line around a match.
static AROUND: LazyLock<Regex> = LazyLock::new(|| pattern(r"-[0-9]+-"));

/// The lines that were found in one file.
struct FoundIn<'t> {
    path: &'t str,
    lines: Vec<FoundLine<'t>>,
}

/// A line that matches, or one around it.
struct FoundLine<'t> {
    /// Its number and its text, without the path.
    text: &'t str,
    is_match: bool,
}

impl FoundIn<'_> {
    fn matches(&self) -> usize {
        self.lines.iter().filter(|line| line.is_match).count()
    }

    /// The line above a file's lines, if they are several.
    fn head(&self) -> String {
        match self.lines.len() {
            1 => String::new(),
            _ => format!("{} ({})\n", self.path, self.matches()),
        }
    }

    fn line(&self, at: usize, most: usize) -> String {
        let text = cut(self.lines[at].text.into(), most);
        match self.lines.len() {
            1 => format!("{}:{text}\n", self.path),
            _ => format!("{text}\n"),
        }
    }
}

/// Returns a preview of the output of a search with this beginning in at most `budget` bytes, if its matches are in few
/// files.
pub(crate) fn show(text: &str, beginning: &str, budget: usize) -> Option<String> {
    let beginning = Plain::of(beginning).text;
    let found = beginning.lines().filter(|line| MATCH.is_match(line));
    if found.count() < MIN_BEGINNING {
        return None;
    }
    let plain = Plain::of(text).text;
    let (files, others) = by_file(&plain);
    let matches: usize = files.iter().map(FoundIn::matches).sum();
    if matches < PER_FILE * files.len() || others.len() * OTHERS > matches {
        return None;
    }
    let places = if files.len() == 1 { "file" } else { "files" };
    let head = format!("[{matches} matches in {} {places}", files.len());
    let others: String = without_header(&others)
        .iter()
        .map(|unit| format!("{}|{}\n", unit.place.line, unit.text))
        .collect();
    // Of each file its head, then its lines.
    let item = |(file, line): (usize, Option<usize>), most: usize| match line {
        Some(line) => files[file].line(line, most),
        None => files[file].head(),
    };
    let of_file = |file: usize| (0..files[file].lines.len()).map(move |line| (file, Some(line)));
    let all = (0..files.len()).flat_map(|file| std::iter::once((file, None)).chain(of_file(file)));
    let all: String = all.map(|place| item(place, usize::MAX)).collect();
    let whole = format!("{head}{WHOLE}{others}{all}");
    if whole.len() <= budget {
        return Some(whole);
    }
    let mut room = budget.checked_sub(head.len() + "]\n".len() + others.len() + MORE.len())?;
    let item = |place: (usize, Option<usize>), ()| item(place, MAX_LINE);
    let heads = (0..files.len().min(MAX_PATHS)).map(|file| ((file, None), ()));
    let mut shown = fitting(heads, room, item);
    room -= shown.values().map(String::len).sum::<usize>();
    let lines = order(&files).into_iter();
    let lines = lines.filter(|(file, _)| shown.contains_key(&(*file, None)));
    let lines = lines.map(|(file, line)| ((file, Some(line)), ()));
    let lines = fitting(lines, room, item);
    shown.extend(lines);
    let shown: String = shown.into_values().collect();
    (!shown.is_empty()).then(|| format!("{head}]\n{others}{shown}{MORE}"))
}

/// The files and the places in them of all lines, in the order in which they are taken: those that match before those
/// around them, and those that are worth most before others, of each file in turn.
fn order(files: &[FoundIn<'_>]) -> Vec<(usize, usize)> {
    let places = files.iter().enumerate();
    let places = places.flat_map(|(at, file)| (0..file.lines.len()).map(move |nth| (at, nth)));
    let places: Vec<(usize, usize)> = places.collect();
    let lines = places.iter().map(|(at, nth)| &files[*at].lines[*nth]);
    let lines: Vec<&FoundLine<'_>> = lines.collect();
    let units = lines.iter().map(|line| Unit::line(line.text, 0));
    let units: Vec<Unit<'_>> = units.collect();
    let mut extra = failure_worth(&units);
    ending(&units).into_iter().for_each(|at| extra[at] += TOLD);
    let mut found = Found::new(&units);
    let entry = |found: &Found<'_>, at: usize| {
        let (line, (_, nth)) = (lines[at], places[at]);
        let worth = (extra[at] + found.gain_of_unit(at)) / (about_tokens(line.text) + PER_LINE);
        (line.is_match, worth.to_bits(), Reverse((nth, at)))
    };
    let mut open: BinaryHeap<_> = (0..lines.len()).map(|at| entry(&found, at)).collect();
    let mut sorted = Vec::new();
    while let Some((.., Reverse((_, at)))) =
        pop_best(&mut open, |(.., Reverse((_, at)))| entry(&found, *at))
    {
        found.show(at);
        sorted.push(places[at]);
    }
    sorted
}

/// The lines of a search by file, and all others.
fn by_file(plain: &str) -> (Vec<FoundIn<'_>>, Vec<Unit<'_>>) {
    let mut files = Vec::<FoundIn<'_>>::new();
    let mut places = HashMap::new();
    let lines = plain.lines().zip(1..);
    let lines = lines.filter(|(line, _)| !line.trim().is_empty() && *line != "--");
    let of_match = |line: &str| MATCH.captures(line).map(|found| found[1].len());
    let lines: Vec<_> = lines
        .map(|(line, number)| (line, number, of_match(line)))
        .collect();
    for (line, _, end) in &lines {
        let Some(path) = end.map(|end| &line[..end]) else {
            continue;
        };
        let next = files.len();
        if *places.entry(path).or_insert(next) == next {
            let lines = Vec::new();
            files.push(FoundIn { path, lines });
        }
    }
    let around = |line: &str| {
        let begin = &line[..line.floor_char_boundary(MAX_PATH)];
        let mut ends = AROUND.find_iter(begin).map(|sign| sign.start());
        ends.find(|end| places.contains_key(&line[..*end]))
    };
    let mut others = Vec::new();
    for (line, number, of_match) in lines {
        let Some(end) = of_match.or_else(|| around(line)) else {
            others.push(Unit::line(line, number));
            continue;
        };
        files[places[&line[..end]]].lines.push(FoundLine {
            text: &line[end + 1..],
            is_match: of_match.is_some(),
        });
    }
    (files, others)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use proptest::prelude::{Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};

    use crate::preview::shapes::show;
    use crate::preview::{Preview, holds_only};

    /// Matches in a few files of a shop, as `grep -n` writes them.
    fn search() -> String {
        let mut found = String::from("Found these\n");
        for (file, lines) in [
            ("src/cart/price.rs", 30),
            ("src/lib.rs", 1),
            ("tests/cart.rs", 9),
        ] {
            for n in 1..=lines {
                let name = if n == 7 { "round_half_up" } else { "price" };
                let _ = writeln!(found, "{file}:{}:    let total = {name}(order);", n * 12);
            }
        }
        found
    }

    #[test]
    fn a_search_is_shown_by_file() {
        insta::assert_snapshot!(Preview::Mixed.show(&search(), 400), @"
        [40 matches in 3 files]
        1|Found these
        src/cart/price.rs (30)
        12:    let total = price(order);
        24:    let total = price(order);
        36:    let total = price(order);
        84:    let total = round_half_up(order);
        src/lib.rs:12:    let total = price(order);
        tests/cart.rs (9)
        12:    let total = price(order);
        24:    let total = price(order);
        36:    let total = price(order);
        [… more …]
        ");
        // Neither one match in each file nor prose with places in it.
        let files: String = (0..99)
            .map(|n| format!("src/{n}.rs:{n}:fn f()\n"))
            .collect();
        assert_eq!(show(&files, 900), None);
        let prose = "As said in src/lib.rs:12:\n\nIt is so, and not so.\n".repeat(99);
        assert_eq!(show(&prose, 900), None);
    }

    #[test]
    fn lines_around_matches_come_after_them() {
        let file = |name: &str| -> String {
            let found = [10, 20, 30]
                .map(|n| format!("{name}-{}-// before\n{name}:{n}:needle_{n}()\n--\n", n - 1));
            found.concat()
        };
        let text = file("docs/2026-11-29-plan.md") + &file("src/a-b.rs");
        insta::assert_snapshot!(Preview::Mixed.show(&text, 180), @"
        [6 matches in 2 files]
        docs/2026-11-29-plan.md (3)
        10:needle_10()
        20:needle_20()
        30:needle_30()
        src/a-b.rs (3)
        10:needle_10()
        20:needle_20()
        30:needle_30()
        [… more …]
        ");
        insta::assert_snapshot!(Preview::Mixed.show(&text, 300), @"
        [6 matches in 2 files, whole]
        docs/2026-11-29-plan.md (3)
        9-// before
        10:needle_10()
        19-// before
        20:needle_20()
        29-// before
        30:needle_30()
        src/a-b.rs (3)
        9-// before
        10:needle_10()
        19-// before
        20:needle_20()
        29-// before
        30:needle_30()
        ");
    }

    fn lines() -> impl Strategy<Value = Vec<String>> {
        let path = "(src|a b|C:.x)[/.][a-c]{1,2}(-1-)?";
        let line = prop_oneof![
            9 => (path, "[:-]", 0u32..2_000, "[a-z_A-Z0-9:.…\u{1b} -]{0,60}").prop_map(|(path, sign, n, text)| format!("{path}{sign}{n}{sign}{text}")),
            1 => "(--|[ -~]{0,40})",
        ];
        proptest::collection::vec(line, 3..120)
    }

    proptest! {
        #[test]
        fn what_is_shown_was_found(lines in lines(), budget in 0usize..3_000) {
            let text = lines.join("\n");
            let preview = Preview::Mixed.show(&text, budget);
            prop_assert!(preview.len() <= budget || preview == text);
            prop_assert!(holds_only(&preview, &text), "{preview}");
            if let Some(shown) = super::show(&text, &text, budget) {
                prop_assert!(shown.len() <= budget);
                prop_assert_eq!(super::show(&text, &text, shown.len()), Some(shown.clone()));
                let (head, rows) = shown.split_once('\n').unwrap_or_default();
                let plain = crate::preview::plain::Plain::of(&text).text;
                let all: Vec<&str> = plain.lines().collect();
                let (mut path, mut found, mut others) = ("", 0, 0);
                for row in rows.lines().filter(|row| *row != super::MORE) {
                    let sign = row.find(|c: char| !c.is_ascii_digit()).filter(|at| *at > 0);
                    let sign = sign.and_then(|at| row[at..].chars().next());
                    if let Some(sign) = sign.filter(|sign| [':', '-'].contains(sign)) {
                        let line = format!("{path}{sign}{row}");
                        let begin = line.strip_suffix('…').unwrap_or(&line);
                        prop_assert!(all.contains(&&*line) || all.iter().any(|all| all.starts_with(begin)), "{line}");
                        found += 1;
                    } else if sign == Some('|') {
                        others += 1;
                    } else if let Some((head, _)) = row.strip_suffix(')').and_then(|row| row.rsplit_once(" (")) {
                        path = head;
                    } else {
                        prop_assert!(all.iter().any(|all| all.starts_with(row.trim_end_matches('…'))), "{row}");
                        found += 1;
                    }
                }
                if head.ends_with(", whole]") {
                    let lines = all.iter().filter(|line| !line.trim().is_empty() && **line != "--");
                    prop_assert_eq!(found + others, lines.count());
                }
            }
        }
    }
}
