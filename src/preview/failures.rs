//! Lines that report failures. In a log or a test run they matter most, whatever names they
//! contain.
//!
//! They are told by their words (`signs.rs`), by the place in a file that they begin with, or because they are odd:
//! in a text of many lines of a few templates, those of a template of their own.

use std::collections::hash_map::Entry;
use std::hash::{BuildHasher, Hasher};

use foldhash::{HashMap, HashSet, HashSetExt, fast::FixedState};

use crate::preview::signs::{FAILURE, PLACE, is_failure, signs, without_digits};
use crate::preview::units::{Place, Unit, is_excerpt_of_file, own_text};

/// Extra worth of a line that reports a failure in words, for the first [`MAX_FAILURES`] of a text.
const WORTH: f32 = 20.0;
/// Maximum number of lines that report failures and come before others. Those that differ in digits
/// alone count once.
const MAX_FAILURES: usize = 16;
/// The last ones among them: the end of a log often says what came of it.
const LAST: usize = 4;
/// Lines that begin with a place are reports if they are at most one in so many. Of a search, all
/// lines do.
const PLACES: usize = 5;

/// Returns the signs in the lines of a unit.
pub(crate) fn signs_of(unit: &Unit<'_>) -> u8 {
    unit.lines().fold(0, |all, line| all | signs(line))
}

/// Extra worth of each unit for the failure that it reports. Code that could fail reports nothing, nor
/// does a further piece of a long line, which is data.
pub(crate) fn failure_worth<'t>(units: &[Unit<'t>]) -> Vec<f32> {
    if is_excerpt_of_file(units) {
        return vec![0.0; units.len()];
    }
    let mut distinct = HashSet::new();
    let worth = |unit: &Unit<'t>| {
        let counts = distinct.len() < MAX_FAILURES
            && unit.lines().any(is_failure)
            && distinct.insert(own_text(unit).trim());
        if counts { WORTH } else { 0.0 }
    };
    units.iter().map(worth).collect()
}

/// Indexes of the lines that report failures and come before others, the surest first. Of a line in
/// pieces, it is the first one.
pub(crate) fn failing(units: &[Unit<'_>], templates: &Templates<'_>) -> Vec<usize> {
    if is_excerpt_of_file(units) {
        return Vec::new();
    }
    let found: Vec<u8> = units.iter().map(signs_of).collect();
    let places = found.iter().filter(|signs| **signs & PLACE != 0).count();
    let are_reports = places as u64 * PLACES as u64 <= templates.lines;
    let odd: HashSet<Place> = templates.odd().map(|unit| unit.place).collect();
    // The ways in which a line is known to report a failure, the surest first.
    const TOLD: usize = 2;
    let sign = |at: usize| match found[at] {
        signs if signs & FAILURE != 0 => Some((0, at)),
        signs if are_reports && signs & PLACE != 0 => Some((1, at)),
        _ => odd.contains(&units[at].place).then_some((TOLD, at)),
    };
    let mut failing: Vec<(usize, usize)> = (0..units.len()).filter_map(sign).collect();
    failing.sort_unstable();
    let mut distinct = HashSet::new();
    failing.retain(|(_, at)| distinct.insert(without_digits(units[*at].text)));
    let told = failing.partition_point(|(sign, _)| *sign < TOLD);
    if told > MAX_FAILURES {
        failing.drain(MAX_FAILURES - LAST..told - LAST);
    }
    failing.truncate(MAX_FAILURES);
    failing.into_iter().map(|(_, at)| at).collect()
}

/// Maximum number of templates of a text in which lines can be odd.
const MAX_TEMPLATES: usize = 256;
/// Number of lines from which on a template is common, and up to which it is odd.
const COMMON: u64 = 10;
const ODD: usize = 2;
/// Minimum length in bytes of an odd line with a colon at its end: `failures:` tells less than what stands below it.
const MIN_ODD: usize = 12;
/// A text is repetitive if it has this many lines, and all but one in [`OTHERS`] are of common templates.
const MIN_LINES: u64 = 40;
const OTHERS: u64 = 20;
/// Words before a status.
const STATUS: [&str; 6] = ["status", "code", "exit", "exited", "rc", "returned"];

/// The templates of a text's lines: what is left of them without digits.
#[derive(Debug, Default)]
pub(crate) struct Templates<'t> {
    /// The number of lines of each of the first [`MAX_TEMPLATES`], and the first [`ODD`] of them.
    counts: HashMap<u64, (u64, Vec<Unit<'t>>)>,
    lines: u64,
}

impl<'t> Templates<'t> {
    /// Counts the lines of a unit, which must not be a ruler.
    pub(crate) fn add(&mut self, unit: Unit<'t>) {
        let mut lines = unit.lines();
        // The beginning of a line of JSON stands before the string that has the lines.
        if unit.place.byte == 0 && !unit.place.ends_line && lines.clone().nth(1).is_some() {
            lines.next();
        }
        for line in lines {
            self.lines += 1;
            let is_full = self.counts.len() >= MAX_TEMPLATES;
            let (count, few) = match self.counts.entry(template(line)) {
                Entry::Vacant(_) if is_full => continue,
                known => known.or_default(),
            };
            *count += 1;
            if few.len() < ODD {
                few.push(unit);
            }
        }
    }

    /// Returns true if almost all lines are of common templates.
    pub(crate) fn is_repetitive(&self) -> bool {
        let counts = self.counts.values().map(|(count, _)| *count);
        let common: u64 = counts.filter(|count| *count >= COMMON).sum();
        self.lines >= MIN_LINES && (self.lines - common) * OTHERS <= self.lines
    }

    /// The lines of odd templates in a text that is repetitive.
    pub(crate) fn odd(&self) -> impl Iterator<Item = Unit<'t>> {
        let most = if self.is_repetitive() { ODD } else { 0 };
        let odd = self.counts.values();
        let odd = odd.filter(move |(count, _)| *count <= most as u64);
        let odd = odd.flat_map(|(_, few)| few).copied();
        odd.filter(|unit| {
            let line = unit.text.trim();
            line.len() >= MIN_ODD || !line.ends_with(':')
        })
    }
}

/// The same in every run, so that a preview is.
pub(crate) const HASHER: FixedState = FixedState::with_seed(0);

/// Hash of the template of a line, without its digits, but for the first of a status: `exited 1` is not `exited 0`.
pub(crate) fn template(line: &str) -> u64 {
    let mut letters = HASHER.build_hasher();
    let (mut start, mut last) = (0, "");
    for (at, byte) in line.bytes().enumerate() {
        let begins = at == start;
        if matches!(byte, b' ' | b'\t' | b'=' | b':' | b'"' | b',') {
            let word = &line[std::mem::replace(&mut start, at + 1)..at];
            if word.is_empty() {
                continue;
            }
            last = word;
        }
        let is_status =
            || STATUS.iter().any(|word| last.ends_with(word)) || last.starts_with("HTTP/");
        if !byte.is_ascii_digit() || begins && is_status() {
            letters.write_u8(byte);
        }
    }
    letters.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(text: &str) -> Vec<Unit<'_>> {
        let lines = text.lines().zip(1..);
        lines.map(|(text, line)| Unit::line(text, line)).collect()
    }

    fn found(text: &str) -> Vec<&str> {
        let units = units(text);
        let mut templates = Templates::default();
        for unit in &units {
            templates.add(*unit);
        }
        let failing = failing(&units, &templates);
        failing.into_iter().map(|at| units[at].text).collect()
    }

    #[test]
    fn failures_are_told_from_what_is_about_them() {
        for line in [
            "test a ... FAILED",
            "error[E0308]: mismatched types",
            "ValueError: no",
            "src/a.c:3: error: no",
            "src/a.ts(1,2): error TS2304: no",
            "  ✗ adds",
            "not ok 3 - adds",
            "npm ERR! code ERESOLVE",
            "  7:3  error  'a' is not defined  no-undef",
            "Exception in thread main java.lang.NullPointerException",
            "2026-11-25 [error] lost",
            "level=error msg=lost",
            r#"{"time":1,"level":"ERROR","msg":"lost"}"#,
            "E1125 10:20:34 lost",
            "npm error code ERESOLVE",
            "error An unexpected error occurred",
            "make: *** No rule to make target 'all'.  Stop.",
            "Error from server (NotFound): pods \"pay\" not found",
            "E: Unable to locate package libpay",
            "curl: (6) Could not resolve host: pay",
            " ! [remote rejected] main -> main",
            "app.rb:3:in `pay': undefined method (NoMethodError)",
            "** (KeyError) key :rate not found",
            "ORA-00942: table or view does not exist",
            "Out of memory: Killed process 812 (pay)",
            "pay-7d9 0/1 CrashLoopBackOff 5 3m",
            "SEVERE: Servlet failed",
            "[10:20:34 ERR] lost",
            "ERRO[0012] lost",
            "[Sat Nov 28 10:20:34 2026] [proxy:error] [pid 1] lost",
            "::error file=tax.c,line=88::no",
            "Failed to start pay.service - Payments.",
            "ld: symbol(s) not found for architecture arm64",
            "panic: runtime error",
            "make: *** [Makefile:2: all] Fehler 2",
            "Segmentation fault (core dumped)",
            "erreur : non déclaré",
            "错误：没有这个文件",
            "psql: FEHLER:  Relation existiert nicht",
            "bash: make: Kommando nicht gefunden.",
            "cp: write error: No space left on device",
            " ! [rejected]        main -> main (fetch first)",
            "Failed to load the payment module",
            "Unhandled exception. System.NullReferenceException",
            "Timed out waiting for the lock",
            "ELIFECYCLE  Command failed with exit code 1.",
            "pay exited with code 1",
            "exit status 2",
            "Access denied for user 'pay'",
            "rm: Operation not permitted",
            "Failed to compile.",
            "pay: pay.c:3: Assertion `rate' failed.",
            "Test failed: rounds half up",
            "1 test failed",
            "3 errors generated.",
            "pay: undefined symbol: rate",
            "libpay.so: cannot open shared object file",
            "unresolved external symbol rate",
            "Segfault at 0",
            "BUG: kernel NULL pointer dereference",
            "connect ETIMEDOUT 10.0.0.1:443",
            "Network is unreachable",
            "401 Unauthorized",
            "HTTP/1.1 502 Bad Gateway",
        ] {
            assert!(is_failure(line), "{line}");
        }
        for line in [
            "fn error(&self) -> Error {",
            "throw new Error(\"no\")",
            "0 errors",
            "it failed to matter",
            "const MAX_FAILURES: usize = 8;",
            "    raise Retry('Failed to load')",
            "no tests failed",
            "0 errors generated",
            "error handling",
            "it exited with code 0",
            "if (error.code === 'ETIMEDOUT') {",
            "\"GET /pay HTTP/1.1\" 502",
            "2 × 3",
        ] {
            assert!(!is_failure(line), "{line}");
        }
    }

    #[test]
    fn reports_about_places_are_told_from_matches_of_a_search() {
        let build = "compiling\nlinking\ndone\nall of it\n";
        for line in [
            "src/tax.c:88:21: chyba: »rate«",
            "./pay.go:12:5: undefined: refund",
            "Tax.java:88: chyba: rate",
            "src/Tax.cs(88,21): chyba CS0103: rate",
            "tax.c(88): chyba C2065: rate",
        ] {
            assert_eq!(found(&format!("{build}{line}\nend\n")), [line]);
        }
        for line in ["src/tax.c:88:    int rate;", "at 10:20:34: done"] {
            assert_eq!(found(&format!("{build}{line}\nend\n")), [""; 0], "{line}");
        }
        let search: String = (1..9).map(|n| format!("a.yml:{n}:1: key: {n}\n")).collect();
        assert_eq!(found(&search), [""; 0]);
    }

    #[test]
    fn odd_lines_are_those_of_no_common_template() {
        let log: String = (1..100)
            .map(|n| match n {
                40 => "disk is full\n".to_owned(),
                50 => "ERROR at last\n".to_owned(),
                _ => format!("step {n} of a/{n}.c\nwrote out.{n}\n"),
            })
            .collect();
        assert_eq!(found(&log), ["ERROR at last", "disk is full"]);
        let harmless: String = (0..5)
            .map(|n| format!("ls: {}: Permission denied\n", ["a", "b", "c", "d", "e"][n]))
            .collect();
        assert!(found(&(log.clone() + &harmless)).contains(&"disk is full"));
        assert_eq!(
            found(&log.replace("ERROR at", "errors at")),
            ["disk is full", "errors at last"]
        );
        let among = |line: &str, odd: &[&str]| -> String {
            let line = |n: usize| match odd.get(n / 20).filter(|_| n % 20 == 7) {
                Some(odd) => format!("{odd}\n"),
                None => line.replace('N', &n.to_string()) + "\n",
            };
            (0..700).map(line).collect()
        };
        let declined = ["7: declined", "8: declined"];
        for (line, odd) in [
            ("step N done in N", &declined[..]),
            ("id=N status=ok ms=N", &["id=7 status=failed ms=3"]),
            ("GET /pay/N HTTP/1.1 200 N", &["GET /pay/7 HTTP/1.1 502 3"]),
            ("task_N_done", &["task_7_failed"]),
            ("N,done,N", &["7,failed,3"]),
            ("cmd N exited 0", &["cmd 7 exited 1"]),
            ("ok", &["killed"]),
            ("第N步 完成", &["失败"]),
        ] {
            assert_eq!(found(&among(line, odd)), odd[..1], "{line}");
        }
        let names = |n: usize| char::from(b'a' + (n % 26) as u8);
        let varied: String = (0..700)
            .map(|n| format!("{}{}/{n} is read\n", names(n), names(n / 26)))
            .collect();
        assert_eq!(found(&(varied + "failures:\n")), [""; 0]);
        let varied: String = (1..100)
            .map(|n| format!("{} said\n", char::from(b'A' + n % 60)))
            .collect();
        assert_eq!(found(&(varied + "once\n")), [""; 0]);
    }

    #[test]
    fn a_repeated_failure_counts_once() {
        let few = units("FAIL a\nok\nFAIL a\n  FAIL a\nFAIL b");
        assert_eq!(failure_worth(&few), [WORTH, 0.0, 0.0, 0.0, WORTH]);
        let many: String = (0..99).map(|n| format!("FAIL {n}\n")).collect();
        let worth: f32 = failure_worth(&units(&many)).into_iter().sum();
        assert!((worth - WORTH * MAX_FAILURES as f32).abs() < 0.01);
        assert_eq!(found(&many), ["FAIL 0"]);
    }
}
