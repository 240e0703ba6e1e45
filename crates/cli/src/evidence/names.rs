//! Distinctive strings of a text: what a person would search for to find the place again. Ordinary
//! words are not distinctive.
//!
//! - **ASCII:** matches of `[A-Za-z0-9_][A-Za-z0-9_./:@#-]{4,}[A-Za-z0-9_]` and of
//!   `[A-Za-z0-9_]{6,}` that hold a digit, `_`, `/`, `.` or a capital after the first character,
//!   but are not all capitals.
//! - **Letters of other scripts that put spaces between words** (Cyrillic, Greek, Arabic, Korean,
//!   …): the same shape over these letters too, if at least one character is not ASCII.
//! - **Scripts without spaces between words:** every stretch of 6 characters of Han or kana, or of
//!   12 of Thai, Lao, Khmer or Burmese. Where a text *uses* such strings, they are taken from left
//!   to right and never overlap, so that a long quotation does not count once for each character.
//!
//! On purpose not what a preview takes for a name: a measure must not follow what it measures.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::pattern;

/// Maximum number of occurrences of one string that are recorded.
const MAX_PLACES: usize = 64;
/// Number of characters that make a string in scripts without spaces.
const HAN: usize = 6;
const THAI: usize = 12;

/// The distinctive strings of a text, with the byte offset of each occurrence.
pub(crate) type NamePlaces<'t> = HashMap<&'t str, Vec<usize>>;

static ASCII: LazyLock<[Regex; 2]> = LazyLock::new(|| {
    [
        pattern("[A-Za-z0-9_][A-Za-z0-9_./:@#-]{4,}[A-Za-z0-9_]"),
        pattern("[A-Za-z0-9_]{6,}"),
    ]
});
static SPACED: LazyLock<Regex> = LazyLock::new(|| {
    let letter =
        r"\p{L}\p{M}\p{N}_&&[^\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]";
    pattern(&format!("[{letter}][[{letter}]./:@#-]{{4,}}[{letter}]"))
});
static UNSPACED: LazyLock<[(Regex, usize); 2]> = LazyLock::new(|| {
    [
        (pattern(r"[\p{Han}\p{Hiragana}\p{Katakana}ー]{6,}"), HAN),
        (pattern(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]{12,}"), THAI),
    ]
});

/// Finds all distinctive strings of `text`, including overlapping ones.
pub(crate) fn names(text: &str) -> NamePlaces<'_> {
    let mut found = words(text);
    each_stretch(text, |start, stretch, bounds, size| {
        for window in bounds.windows(size + 1) {
            let (from, to) = (window[0], window[size]);
            add(&mut found, &stretch[from..to], start + from);
        }
    });
    found
}

/// Finds the distinctive strings of `text` that `is_known` accepts. Strings of scripts without
/// spaces do not overlap.
pub(crate) fn used<'t>(text: &'t str, is_known: impl Fn(&'t str) -> bool) -> Vec<&'t str> {
    let mut found: Vec<&str> = words(text).into_keys().collect();
    found.retain(|name| is_known(name));
    each_stretch(text, |_, stretch, bounds, size| {
        let mut at = 0;
        while at + size < bounds.len() {
            let name = &stretch[bounds[at]..bounds[at + size]];
            let is_used = is_known(name);
            if is_used {
                found.push(name);
            }
            at += if is_used { size } else { 1 };
        }
    });
    found.sort_unstable();
    found.dedup();
    found
}

fn words(text: &str) -> NamePlaces<'_> {
    let mut found = NamePlaces::new();
    let ascii = ASCII.iter().flat_map(|pattern| pattern.find_iter(text));
    // Without other letters, there is nothing more to find.
    let other = (!text.is_ascii()).then(|| SPACED.find_iter(text));
    let other = other
        .into_iter()
        .flatten()
        .filter(|name| !name.as_str().is_ascii());
    for name in ascii
        .chain(other)
        .filter(|name| is_distinctive(name.as_str()))
    {
        add(&mut found, name.as_str(), name.start());
    }
    found
}

/// Calls `see` with each stretch of a script without spaces: its start, its text, the offsets of
/// its characters and of its end, and the number of characters that make a string.
fn each_stretch<'t>(text: &'t str, mut see: impl FnMut(usize, &'t str, &[usize], usize)) {
    if text.is_ascii() {
        return;
    }
    for (pattern, size) in &*UNSPACED {
        for found in pattern.find_iter(text) {
            let stretch = found.as_str();
            let bounds = stretch.char_indices().map(|(at, _)| at);
            let bounds: Vec<usize> = bounds.chain([stretch.len()]).collect();
            see(found.start(), stretch, &bounds, *size);
        }
    }
}

fn add<'t>(found: &mut NamePlaces<'t>, name: &'t str, at: usize) {
    let places = found.entry(name).or_default();
    if places.len() < MAX_PLACES {
        places.push(at);
    }
}

fn is_distinctive(name: &str) -> bool {
    let is_mark = |c: char| c.is_numeric() || matches!(c, '_' | '/' | '.');
    let is_all_capitals =
        || name.chars().any(char::is_uppercase) && !name.chars().any(char::is_lowercase);
    name.chars().any(is_mark) || name.chars().skip(1).any(char::is_uppercase) && !is_all_capitals()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(text: &str) -> Vec<&str> {
        let mut found: Vec<&str> = names(text).into_keys().collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn identifiers_paths_and_numbers_are_distinctive_and_words_are_not() {
        assert_eq!(
            sorted(
                "The function parse_header in src/http/header.rs:42 returns HTTP_OK or NotFound; README WARNING 1234567"
            ),
            [
                "1234567",
                "HTTP_OK",
                "NotFound",
                "parse_header",
                "src/http/header.rs:42"
            ]
        );
        assert_eq!(
            sorted("ordinary words, Capitalised and ALLCAPS, a-b-c-d"),
            [""; 0]
        );
    }

    #[test]
    fn parts_of_a_path_count_as_strings() {
        assert_eq!(
            sorted("see lib/make_index.rs"),
            ["lib/make_index.rs", "make_index"]
        );
    }

    #[test]
    fn scripts_with_spaces_follow_the_same_rule() {
        assert_eq!(sorted("обычное слово"), [""; 0]);
        assert_eq!(sorted("файл данные/отчёт.csv"), ["данные/отчёт.csv"]);
        assert_eq!(sorted("заказ №А1234567Б"), ["1234567", "А1234567Б"]);
    }

    #[test]
    fn scripts_without_spaces_yield_overlapping_runs() {
        assert_eq!(sorted("配送费用为五元。"), ["送费用为五元", "配送费用为五"]);
        assert_eq!(sorted("短い文。"), [""; 0]);
        assert_eq!(
            sorted("ราคาค่าส่งสินค้า").len(),
            "ราคาค่าส่งสินค้า".chars().count() - 11
        );
    }

    #[test]
    fn a_long_quotation_counts_by_its_length_once() {
        let text = "一二三四五六七八九十甲乙丙";
        let known = names(text);
        assert_eq!(
            used(text, |name| known.contains_key(name)),
            ["一二三四五六", "七八九十甲乙"]
        );
        // The known string starts later, and is found there.
        assert_eq!(used(text, |name| name == "三四五六七八"), ["三四五六七八"]);
    }

    #[test]
    fn the_places_recorded_for_a_string_are_bounded() {
        let text = "file_name ".repeat(100);
        assert_eq!(names(&text)["file_name"].len(), MAX_PLACES);
    }
}
