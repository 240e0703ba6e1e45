//! The methods of previewing texts, which may arrive in chunks.

use crate::preview::choice::{self, Preview};
use crate::preview::middle::{MAX_LENGTH, Middle};
use crate::preview::plain::Plain;
use crate::preview::text::lines::{Length, Position};
use crate::preview::{excerpt, shapes};

/// Maximum length in bytes of a text that is looked at whole. Of a longer one, half as much of each end is, and the lines
/// between them that report failures.
const MAX_TEXT: usize = 4 * 1024 * 1024;
/// Number of bytes that are held besides, so that they are not moved for each chunk, and that no line in them that may be
/// kept is forgotten in part.
const SLACK: usize = 512 * 1024;
const _: () = assert!(SLACK > MAX_LENGTH);

impl Preview {
    /// Returns a preview of `text` in at most `budget` bytes, marks included. A text that fits is
    /// shown whole. If the budget is too small to be useful, the preview is empty.
    ///
    /// ```
    /// use offcut::preview::Preview;
    /// let text: String = (1..=1000).map(|n| format!("line {n}\n")).collect();
    /// let shown = Preview::HeadTail.show(&text, 100);
    /// assert!(shown.starts_with("1|line 1\nline 2\n") && shown.contains("line 999\nline 1000\n[… "), "{shown}");
    /// ```
    #[must_use]
    pub fn show(self, text: &str, budget: usize) -> String {
        show(self, text, Length::of(""), &Middle::default(), budget)
    }

    /// The same for the text of `stored` bytes that may not be UTF-8.
    pub(crate) fn show_decoded(self, text: &str, stored: usize, budget: usize) -> String {
        excerpt::in_stored_bytes(self.show(text, budget), text.len() as u64, stored as u64)
    }
}

/// Returns true if `preview` looks like a method's preview of `text` and has no other content.
///
/// A text that imitates a hint must not be reduced to the hint: its content that is not stored
/// would be lost.
#[must_use]
pub fn holds_only(preview: &str, text: &str) -> bool {
    // As it is shown, part by part.
    let plain = Plain {
        text: parts(text).map(|part| Plain::of(part).text).concat().into(),
        hidden: Vec::new(),
        is_cut: false,
    };
    preview.is_empty()
        || preview == text
        || preview == plain.text
        || shapes::show(text, preview.len()).is_some_and(|shown| shown == preview)
        || excerpt::holds_only(preview, &plain, text.len() as u64)
}

/// The part of a text needed to preview it, collected as it arrives. Its size is bounded for texts
/// of any length.
#[derive(Clone, Debug)]
pub(crate) struct Sketch {
    wanted: Preview,
    /// The text, or more of its ends than is looked at.
    held: String,
    /// The length of what is forgotten between them, and of all.
    forgotten: Length,
    middle: Middle,
    length: Length,
}

impl Sketch {
    pub(crate) fn new(wanted: Preview) -> Self {
        Self {
            wanted,
            held: String::new(),
            forgotten: Length::of(""),
            middle: Middle::default(),
            length: Length::of(""),
        }
    }

    /// Appends `text`.
    pub(crate) fn push(&mut self, text: &str) {
        self.length = self.length.join(Length::of(text));
        self.held.push_str(text);
        if self.held.len() > MAX_TEXT + 2 * SLACK {
            let [from, to] = [MAX_TEXT / 2, self.held.len() - MAX_TEXT / 2 - SLACK];
            let [from, to] = [from, to].map(|at| self.held.floor_char_boundary(at));
            // Whole lines, unless there is but a part of a very long one.
            let feed = self.held[from..to].rfind('\n');
            let to = feed.map_or(to, |feed| from + feed + 1);
            let (head, more) = (&self.held[..from], &self.held[from..to]);
            let start = Length::of(head).join(self.forgotten).end;
            self.middle.look_at(more, start);
            self.forgotten = self.forgotten.join(Length::of(more));
            self.held.drain(from..to);
        }
    }

    /// Length of the text so far in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> u64 {
        self.length.bytes
    }

    /// Number of lines so far, including a last one without a line feed.
    #[must_use]
    pub(crate) fn lines(&self) -> u64 {
        self.length.end.lines()
    }

    /// Returns a preview of at most `budget` bytes of the text so far, which is of `stored` bytes. If they are too few
    /// to be useful, it is empty.
    #[must_use]
    pub(crate) fn show(&self, budget: usize, stored: u64) -> String {
        let (held, forgotten) = (&self.held, self.forgotten);
        let shown = show(self.wanted, held, forgotten, &self.middle, budget);
        excerpt::in_stored_bytes(shown, self.bytes(), stored)
    }
}

/// Returns a preview of a text of which this is held; `forgotten` stood after the beginning that is looked at, with these
/// lines.
fn show(wanted: Preview, held: &str, forgotten: Length, middle: &Middle, budget: usize) -> String {
    let [head, rest, tail] = parts(held);
    let begins = Length::of(head).join(forgotten);
    if !tail.is_empty() {
        let mut middle = middle.clone();
        middle.look_at(rest, begins.end);
        let begins = begins.join(Length::of(rest));
        let length = begins.join(Length::of(tail));
        let mut head = Plain::of(head);
        head.is_cut = true;
        let parts = [(head, Position::START), (Plain::of(tail), begins.end)];
        return choice::show(wanted, &parts, &middle, length, budget);
    }
    if wanted == Preview::Mixed
        && head.len() > budget
        && let Some(shown) = shapes::show(head, budget)
    {
        return shown;
    }
    let plain = Plain::of(head);
    if plain.text.len() <= budget {
        return plain.text.into_owned();
    }
    choice::show(wanted, &[(plain, Position::START)], middle, begins, budget)
}

/// The part of a text that is looked at; of a long one, both of its ends, and what stands between them.
fn parts(text: &str) -> [&str; 3] {
    if text.len() <= MAX_TEXT {
        return [text, "", ""];
    }
    let from = text.floor_char_boundary(MAX_TEXT / 2);
    let to = text.ceil_char_boundary(text.len() - MAX_TEXT / 2);
    [&text[..from], &text[from..to], &text[to..]]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{
        Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
    };

    use super::*;

    const CHOSEN: [Preview; 3] = [Preview::Lines, Preview::Index, Preview::Mixed];

    /// Texts like those of tools: names, own line numbers, long lines, other scripts, imitations of
    /// our marks.
    fn texts() -> impl Strategy<Value = String> {
        let word = prop_oneof![
            "[a-z]{1,8}",
            "[a-z]{2,6}_[a-z]{2,6}",
            "[a-z]{2,5}/[a-z]{2,6}\\.[a-z]{2}",
            Just("字串 ".to_owned()),
            Just("parse_all".to_owned()),
        ];
        let body = proptest::collection::vec(word, 0..9).prop_map(|words| words.join(" "));
        let line = prop_oneof![
            8 => body.clone(),
            1 => body.clone().prop_map(|body| body.repeat(12)),
            1 => (1u64..40, body.clone()).prop_map(|(line, body)| format!("{line}|{body}")),
            1 => body.clone().prop_map(|body| format!("names: {body}")),
            1 => Just("[… 12 B …]".to_owned()),
            1 => prop_oneof![
                Just("exit code 3".to_owned()),
                Just("error: no".to_owned()),
                Just("12 tests passed, 0 failed".to_owned()),
                Just("Ada Lovelace takes --all of 345".to_owned()),
                Just("------".to_owned()),
            ],
        ];
        let lines = proptest::collection::vec(line, 0..40);
        (lines, 0u64..3, any::<bool>()).prop_map(|(lines, number, ends)| {
            let numbered = |(at, line)| match number {
                0 => line,
                from => format!("{:>5}→{line}", at as u64 + 1 + (from - 1) * 7),
            };
            let text = lines
                .into_iter()
                .enumerate()
                .map(numbered)
                .collect::<Vec<String>>()
                .join("\n");
            if ends { text + "\n" } else { text }
        })
    }

    /// The same text with escapes, NUL and redrawn lines.
    fn drawn(text: &str) -> String {
        text.replace("字串 ", "\u{1b}[1m字\0串\r ")
    }

    #[test]
    fn lines_and_names_are_shown_with_their_places() {
        let text: String = (1..=300)
            .map(|n| match n {
                17 => "fn read_back(store: &Store) -> Page {\n".to_owned(),
                18 => "    store.read_range(from..to)\n".to_owned(),
                203 => "see tests/read_back.rs for settings_file and the rest of it all, which is long\n".to_owned(),
                n if n % 3 == 0 => "is as plain as a line with the word MAX_LINE gets\n".to_owned(),
                _ => "nothing to be told apart by\n".to_owned(),
            })
            .collect();
        insta::assert_snapshot!(Preview::Lines.show(&text, 120), @"
        17|fn read_back(store: &Store) -> Page {
            store.read_range(from..to)
        [… 10573 B …]
        ");
        insta::assert_snapshot!(Preview::Index.show(&text, 120), @"
        names: 3 MAX_LINE 18 from..to store.read_range 203 settings_file tests/read_back.rs
        [… 10642 B …]
        ");
        insta::assert_snapshot!(Preview::Mixed.show(&text, 140), @"
        17|fn read_back(store: &Store) -> Page {
            store.read_range(from..to)
        names: 3 MAX_LINE 203 settings_file
        [… 10573 B …]
        ");
        insta::assert_snapshot!(Preview::Mixed.show(&"{\"user_name\":\"jane_doe\",\"plain\":\"words\"},".repeat(90), 160), @r#"
        names: 1 jane_doe user_name
        [… 3690 B …]
        "#);
        let numbered: String = (1..=200)
            .map(|n| format!("{n:>6}→let value_{} = next();\n", n / 7))
            .collect();
        insta::assert_snapshot!(Preview::Mixed.show(&numbered, 160), @"
            70→let value_10 = next();
            77→let value_11 = next();
            84→let value_12 = next();
        names: 91 value_13 98 value_14
        [… 6235 B …]
        ");
    }

    #[test]
    fn a_run_that_passed_looks_passed() {
        let noise: String = (1..=150)
            .map(|n| format!("src/part_{n}.test.ts > rejects item_{n} with status_{n}\n"))
            .collect();
        let run = format!(
            "Process exited with code 0\n{noise}\n 150 pass\n 0 fail\n-----\nRan 150 tests across 9 files.\n-----\nbye\n"
        );
        insta::assert_snapshot!(Preview::Mixed.show(&run, 700), @"
        1|Process exited with code 0
        src/part_1.test.ts > rejects item_1 with status_1
        src/part_2.test.ts > rejects item_2 with status_2
        src/part_3.test.ts > rejects item_3 with status_3
        src/part_4.test.ts > rejects item_4 with status_4
        src/part_5.test.ts > rejects item_5 with status_5
        src/part_6.test.ts > rejects item_6 with status_6
        src/part_7.test.ts > rejects item_7 with status_7
        src/part_8.test.ts > rejects item_8 with status_8
        src/part_9.test.ts > rejects item_9 with status_9
        src/part_10.test.ts > rejects item_10 with status_10
        153| 150 pass
         0 fail
        156|Ran 150 tests across 9 files.
        158|bye
        names: 101 src/part_100.test.ts
        [… 7586 B …]
        ");
        insta::assert_snapshot!(Preview::Lines.show(&format!("{noise}\nall is well\n====\n"), 200), @"
        100|src/part_100.test.ts > rejects item_100 with status_100
        src/part_101.test.ts > rejects item_101 with status_101
        152|all is well
        [… 7970 B …]
        ");
        let cut = format!("{noise}exit code 0\n{noise}bye\n");
        assert!(Preview::Mixed.show(&cut, 300).contains("exit code 0\n"));
        // An index has no lines, and a line without room is left out.
        assert!(!Preview::Index.show(&run, 500).contains("150 pass"));
        let long = format!("{noise}{} 3 tests failed\n", "x ".repeat(90));
        assert!(!Preview::Mixed.show(&long, 300).contains("3 tests failed"));
    }

    #[test]
    fn lines_of_a_numbered_file_keep_their_indentation() {
        let text: String = (1..=200)
            .map(|n| format!("{n:>6}→    let value_{n} = next();\n"))
            .collect();
        let shown = Preview::Mixed.show(&text, 200);
        insta::assert_snapshot!(shown, @"
           100→    let value_100 = next();
            let value_101 = next();
            let value_102 = next();
            let value_103 = next();
        names: 104 value_104
        [… 7144 B …]
        ");
        assert!(!holds_only(&shown.replace("\n    let", "\n   let"), &text));
    }

    #[test]
    fn ids_that_count_up_stay_in_their_lines() {
        for (indent, sign) in [
            ("", ": "),
            ("", "|"),
            ("", "\t"),
            ("", "→"),
            ("  ", ": "),
            ("  ", "|"),
            ("\t", "\t"),
        ] {
            for first in [1, 8, 1_000] {
                let id = |at: usize| format!("{indent}{}{sign}", first + at);
                let text: String = (0..200)
                    .map(|at| format!("{}Ada of part_{at}\n", id(at)))
                    .collect();
                for preview in [Preview::Lines, Preview::Mixed, Preview::Index] {
                    let shown = preview.show(&text, 400);
                    assert!(holds_only(&shown, &text), "{shown}");
                    for line in shown.lines().filter(|line| line.contains(" of ")) {
                        let (_, at) = line.rsplit_once('_').unwrap();
                        assert!(line.contains(&id(at.parse().unwrap())), "{shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn an_excerpt_of_a_file_has_no_ending_and_no_failure() {
        let noise: String = (1..=90)
            .map(|n| format!("{n:>4}→    keep(part_{n}, FAIL_{n});\n"))
            .collect();
        let text = format!(
            "{noise}  91→    panic!(\"error: none\"); // FAIL\n<note>\n3 tests failed, says the reader of files.\n</note>\n"
        );
        let shown = Preview::Mixed.show(&text, 300);
        assert!(
            !shown.contains("panic") && !shown.contains("note"),
            "{shown}"
        );
        let unnumbered = text.replacen("   1→", "", 1);
        let shown = Preview::Mixed.show(&unnumbered, 300);
        assert!(
            shown.contains("panic") && shown.contains("3 tests failed"),
            "{shown}"
        );
    }

    #[test]
    fn outcomes_and_failures_of_a_very_long_text_are_kept() {
        let lines = |from: usize| (from..from + 20_000).map(|n| format!("line {n} of item_{n}\n"));
        let text: String = lines(0)
            .chain(["exit code 7\n".to_owned(), "FAIL all of it\n".to_owned()])
            .chain(lines(20_000))
            .collect();
        assert!(text.len() > 512 * 1024);
        let shown = Preview::Mixed.show(&text, 1_000);
        assert!(
            shown.contains("20001|exit code 7\nFAIL all of it\n"),
            "{shown}"
        );
    }

    #[test]
    fn t2_failures_in_the_middle_of_8_mib_are_shown_whatever_the_chunks() {
        let line = |n: usize| match n {
            150_000 => "\u{1b}[31mFAILED\u{1b}[0m tests/pay.rs::refund\r\n".to_owned(),
            // In a long line, and in one that is too long to be looked at.
            200_000 => format!(
                "{}\\nERROR: no tax\\n{}\n",
                "字 ".repeat(900),
                "b ".repeat(900)
            ),
            210_000 => format!("{}\nERROR: no rate\n", "x ".repeat(600_000)),
            n => format!("compiling part_{n} of the shop\n"),
        };
        let text: String = (1..=300_000).map(line).collect();
        assert!(text.len() > 8 << 20);
        for preview in CHOSEN.into_iter().chain([Preview::HeadTail]) {
            let shown = preview.show(&text, 2_000);
            if preview != Preview::Index {
                let failing = "\n150000|FAILED tests/pay.rs::refund\r\n";
                assert!(shown.contains(failing), "{preview:?}: {shown}");
                assert!(shown.contains("\n210001|ERROR: no rate\n"), "{shown}");
                // Head and tail have no room for a long piece too.
                let has_room = preview != Preview::HeadTail;
                assert!(!has_room || shown.contains("\\nERROR: no tax"), "{shown}");
            }
            assert!(holds_only(&shown, &text), "{preview:?}: {shown}");
            for size in [7_001, 99_991, 3 << 20] {
                let (mut sketch, mut rest) = (Sketch::new(preview), &*text);
                while !rest.is_empty() {
                    let (chunk, after) = rest.split_at(rest.ceil_char_boundary(size));
                    sketch.push(chunk);
                    rest = after;
                }
                assert_eq!(
                    sketch.show(2_000, sketch.bytes()),
                    shown,
                    "{preview:?}, {size}"
                );
                assert_eq!(sketch.lines(), 300_001);
                assert!(sketch.held.len() <= MAX_TEXT + 2 * SLACK + size);
            }
        }
        // Many failures take little memory, those that differ in digits alone one place.
        let kind = |n: usize| {
            char::from(b'a' + (n % 26) as u8)
                .to_string()
                .repeat(1 + n / 26)
        };
        let many: String = (0..300_000)
            .map(|n| format!("ERROR {n} {}\n", kind(n % 99)))
            .collect();
        let mut middle = Middle::default();
        middle.look_at(&many, Position::START);
        assert_eq!(middle.units().count(), 64);
    }

    #[test]
    fn the_failing_line_of_an_output_in_json_is_shown() {
        let lines = |name: &str| -> String {
            let one = |n| format!("compiling {name}_{n}.c with flags -O2 -Wall\n");
            (0..100).map(one).collect()
        };
        for failing in [
            "\u{1b}[31mFAILED\u{1b}[0m tests/t.py::refund",
            "tax.c:88:5: error: 'rate' undeclared (first use in this function)",
            "pay.go:12:5: undefined: refund",
            "disk is full",
        ] {
            let output = format!("{}{failing}\n{}", lines("unit"), lines("part"));
            let text = serde_json::json!({"output": output, "metadata": {"exit_code": 2}});
            for preview in [Preview::Mixed, Preview::Lines, Preview::HeadTail] {
                let shown = preview.show(&text.to_string(), 2_000);
                // Head and tail have room for what is told by words or a place.
                let is_odd = preview == Preview::HeadTail && failing == "disk is full";
                let plain = Plain::of(failing).text;
                assert!(is_odd || shown.contains(&*plain), "{preview:?}: {shown}");
                assert!(holds_only(&shown, &text.to_string()));
            }
        }
    }

    #[test]
    fn a_line_between_blank_ones_is_all_that_is_shown() {
        let blank = "\n".repeat(2_000);
        let text = format!("{blank}the bank said no\n{blank}");
        insta::assert_snapshot!(Preview::Mixed.show(&text, 900), @"
        2001|the bank said no
        [… 4000 B …]
        ");
    }

    #[test]
    fn failures_between_head_and_tail_keep_every_budget() {
        let long = "a long line ".repeat(50) + "\n";
        let text = format!("{}{long}error: no\n{long}", "short\n".repeat(10));
        for budget in 0..text.len() {
            let shown = Preview::HeadTail.show(&text, budget);
            assert!(shown.len() <= budget, "{budget}: {shown}");
        }
    }

    #[test]
    fn failures_in_lines_that_end_with_a_return_are_known_again() {
        let text = "nothing to see\r\n".repeat(100) + "killed\r\n" + &"no\r\n".repeat(300);
        let shown = Preview::HeadTail.show(&text, 400);
        assert!(shown.contains("\n101|killed\r\n"), "{shown}");
        assert!(holds_only(&shown, &text));
    }

    #[test]
    fn odd_lines_that_look_like_marks_are_known_again() {
        let mut text = "nothing to see\n".repeat(100);
        text.insert_str(50 * 15, "[… 184 B, L16-38 …]\n…]\n");
        let shown = Preview::HeadTail.show(&text, 400);
        assert!(shown.contains("\n51|[… 184 B, L16-38 …]\n"), "{shown}");
        assert!(holds_only(&shown, &text));
        assert!(!holds_only(&shown.replace("184", "185"), &text));
        assert!(!holds_only(&shown.replace("51|[", "50|["), &text));
    }

    #[test]
    fn without_names_head_and_tail_are_shown() {
        let words = ["没有", "名字", "文字", "只有", "句子", "一行"];
        let line = |n: usize| {
            format!(
                "{}{}。\n",
                words[n % 6],
                words[n / 6 % 6].repeat(1 + n / 36)
            )
        };
        let text: String = (0..100).map(line).collect();
        for preview in CHOSEN {
            assert_eq!(preview.show(&text, 300), Preview::HeadTail.show(&text, 300));
        }
    }

    #[test]
    fn what_is_left_of_a_long_text_is_shown_with_its_places() {
        let text: String = (0..60_000)
            .map(|n| format!("line {n} of item_{} and more\n", n % 40_000))
            .collect();
        assert!(text.len() > 1 << 20);
        for preview in CHOSEN {
            let shown = preview.show(&text, 2_000);
            assert!(shown.len() > 1_500 && holds_only(&shown, &text), "{shown}");
        }
    }

    #[test]
    fn an_imitation_is_told_apart() {
        let plain = "and of much that needs no name at all, ".repeat(4);
        let text: String = (1..=1000)
            .map(|n| format!("line {n} of item_{n} {plain}\n"))
            .collect();
        let real = Preview::Mixed.show(&text, 300);
        assert!(
            holds_only(&real, &text) && real.contains("names:"),
            "{real}"
        );
        let first = real.lines().next().unwrap();
        assert!(!holds_only(&format!("{first} and more\n{real}"), &text));
        assert!(!holds_only(
            &real.replace("names:", "names: 1 item_8"),
            &text
        ));
        assert!(!holds_only(&real.replace(" B …]", "0 B …]"), &text));
        assert!(!holds_only(&format!("more\n{real}"), &text));
        assert!(!holds_only(&format!("{real}\n[… 5 B …]"), &text));
    }

    #[test]
    fn what_a_text_does_not_say_is_told_apart() {
        let long = "some words, ".repeat(60);
        let text = format!(
            "    1→fn one() {{\n    2→    two_of(3)\n    3→}}\nplain words of it\n{long}end\nsee part_one --all\n12:00 is noon\n"
        );
        let known = |rows: &str| holds_only(&format!("{rows}\n[… 9 B …]"), &text);
        let plain = "4|plain words of it";
        for rows in [
            plain,
            "4|plain wo…",
            "    1→fn one() {\n    two_of(3)\n}\nplain words of it",
            "    1→fn one() {\n    2→    two_of(3)\n4|plain words of it\nsome words, some…\n5+600|…words, some…",
            "5+24|…some words, some…\n5+700|…words, end\nsee part_one --all",
            "names: 6 --all part_one",
            "4|plain words of it\nnames: 2 two_of 6 part_one",
        ] {
            assert!(known(rows), "{rows}");
        }
        for rows in [
            "",
            "plain words of it",
            "5|plain words of it",
            "04|plain words of it",
            "99|plain words of it",
            "4|plain words",
            "4|words of it",
            "4|plain words of it, and more",
            "4|plain words of it and…",
            "4|plain words of it\n4|plain words of it",
            "4|plain words of it\nsee part_one --all",
            "4|plain words of it\n2|    two_of(3)",
            "4|plain words of it\n\n",
            "    1→fn one() {\n   two_of(3)",
            "    2→fn one() {",
            "5+24|some words, some…",
            "5+24|…some other words…",
            "5+123456789|…some words, some…",
            "5+24|…end\n5+30|…some words…",
            "12:00 is noon",
            "names: part_one",
            "names: 5 part_one",
            "names: 6 part_one part_two",
            "names: 6 part_one part_one",
            "names: 5 6 part_one",
            "names: 06 part_one",
            "names: 6 part_one 7",
            "names: 6 part_one\n4|plain words of it",
            "a secret\nnames: 6 part_one",
        ] {
            assert!(!known(rows), "{rows}");
        }
        for count in ["", "-1", "09", "9 ", "9999", "9 B …]\n[… 9"] {
            assert!(
                !holds_only(&format!("{plain}\n[… {count} B …]"), &text),
                "{count}"
            );
        }
        for other in [
            plain.to_owned(),
            format!("{plain}\n[… 9 B …]\nmore"),
            format!("{plain}\n[… 9 B, L1 …]"),
            format!("[… 9 B …]\n{plain}"),
        ] {
            assert!(!holds_only(&other, &text), "{other}");
        }
    }

    #[test]
    fn a_line_longer_than_the_budget_is_shown_cut() {
        insta::assert_snapshot!(Preview::HeadTail.show(&"字abcdefgh".repeat(100), 60), @"
        1|字abcdefgh字abcdefgh字abcdefgh字ab…
        [… 1062 B …]
        ");
        for budget in 0..400 {
            let shown = Preview::HeadTail.show(&"字".repeat(900), budget);
            assert!(shown.len() <= budget && holds_only(&shown, &"字".repeat(900)));
        }
    }

    proptest! {
        #[test]
        fn budgets_are_kept_and_previews_known_again(text in texts(), budget in 0usize..600) {
            let text = drawn(&text);
            for preview in CHOSEN.into_iter().chain([Preview::HeadTail]) {
                let shown = preview.show(&text, budget);
                prop_assert!(shown.len() <= budget, "{shown:?}");
                prop_assert!(holds_only(&shown, &text), "{preview:?} {shown:?}");
            }
        }

        #[test]
        fn every_line_stands_in_the_text_under_its_number(text in texts(), budget in 40usize..600) {
            // Then every apparent line number in the preview is ours.
            let text = text.replace('|', " ");
            let lines: Vec<&str> = text.split('\n').collect();
            let shown = Preview::Mixed.show(&text, budget);
            for line in shown.lines() {
                let Some((place, body)) = line.split_once('|') else { continue };
                let (number, byte) = place.split_once('+').unwrap_or((place, "0"));
                let (number, byte): (usize, usize) = (number.parse().unwrap(), byte.parse().unwrap());
                let body = body.trim_matches('…');
                prop_assert!(lines[number - 1][byte..].starts_with(body), "{shown}");
            }
        }

        #[test]
        fn t2_what_is_shown_does_not_depend_on_the_chunks(
            text in texts(), budget in 0usize..600, cuts in proptest::collection::vec(0usize..2_000, 0..20),
        ) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| text.floor_char_boundary(cut)).collect();
            cuts.sort_unstable();
            for preview in CHOSEN.into_iter().chain([Preview::HeadTail]) {
                let (mut sketch, mut from) = (Sketch::new(preview), 0);
                for cut in cuts.iter().copied().chain([text.len()]) {
                    sketch.push(&text[from..cut]);
                    from = cut;
                    prop_assert_eq!(sketch.show(budget, sketch.bytes()), preview.show(&text[..from], budget));
                }
            }
        }
    }
}
