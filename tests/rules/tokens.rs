//! Counts, compared with those of the plain encoders: equal where nothing is cut or at a space, and within the bound
//! otherwise.
#![cfg(feature = "tiktoken")]

use std::collections::HashSet;

use offcut::backend::Memory;
use offcut::format::{Messages, OpenAiChat};
use offcut::{TokenCounter, ToolReduction};
use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::test_runner::Config;
use serde_json::Value;
use tiktoken_rs::{CoreBPE, cl100k_base_singleton, o200k_base_singleton};

/// Length in bytes above which texts are cut.
const MAX_RUN: usize = 4 * 1024;

fn encodings() -> [(TokenCounter, &'static CoreBPE); 2] {
    [
        (TokenCounter::O200kBase, o200k_base_singleton()),
        (TokenCounter::Cl100kBase, cl100k_base_singleton()),
    ]
}

fn count(encoder: &CoreBPE, text: &str) -> u64 {
    encoder.count(text, &HashSet::new()).unwrap() as u64
}

fn assert_exact(text: &str) {
    for (ours, other) in encodings() {
        assert_eq!(
            ours.build().unwrap().count(text),
            count(other, text),
            "{ours:?} of {text:.300?}"
        );
    }
}

/// Upper bound on the change of the count by a cut, in either direction. A run of one character is
/// a few long tokens and a remainder; a cut may make two remainders.
const MAX_ERROR: u64 = 8;

/// Checks the count with at most one cut for every [`MAX_RUN`] bytes.
fn assert_bounded(text: &str) {
    for (ours, other) in encodings() {
        let (counted, exact) = (ours.build().unwrap().count(text), count(other, text));
        let error = (text.len() / MAX_RUN) as u64 * MAX_ERROR;
        assert!(
            counted.abs_diff(exact) <= error,
            "{ours:?}: {counted}, not {exact} ± {error}: {text:.60}"
        );
        assert!(counted <= text.len() as u64);
    }
}

/// Generates pieces that encoders are known to treat specially.
fn pieces() -> impl Strategy<Value = String> {
    let odd = [
        " ",
        "  ",
        "\n",
        "\r\n",
        "\t",
        "\n\n\n",
        " \n",
        "'s",
        "'LL",
        "don't",
        "1",
        "12345",
        "١٢٣",
        "½",
        "=",
        "==/",
        "//\n",
        "é",
        "e\u{301}",
        "字",
        "，",
        "語",
        "ǅ",
        "ʰ",
        "👩‍👩‍👧",
        "\u{200d}",
        "\u{a0}",
        "\u{3000}",
        "\u{85}",
        "<|endoftext|>",
        "<|im_start|>",
        "aBcDe",
        "HTTPServer",
        "_x",
        "\u{0}",
        "\u{feff}",
    ];
    prop_oneof![
        3 => proptest::sample::select(odd.to_vec()).prop_map(str::to_owned),
        2 => "[a-zA-Z]{1,12}",
        1 => "[ -~]{1,20}",
        1 => any::<char>().prop_map(String::from),
        1 => vec(any::<char>(), 1..20).prop_map(|chars| chars.into_iter().collect()),
    ]
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, max_shrink_iters: 200, ..Config::with_cases(32) })]

    #[test]
    fn l7_any_text_is_counted_exactly(pieces in vec(pieces(), 0..40)) {
        assert_exact(&pieces.concat());
    }

    #[test]
    fn l7_any_run_is_counted_within_the_bound(
        unit in prop_oneof![pieces(), vec(pieces(), 2..6).prop_map(|pieces| pieces.concat())],
        before in pieces(),
        length in 1_usize..30_000,
        behind in pieces(),
    ) {
        assert_bounded(&format!("{before}{}{behind}", unit.repeat(length / unit.len() + 1)));
    }

    #[test]
    fn l7_letters_without_a_space_are_counted_within_the_bound(
        text in prop_oneof![Just("[a-z]"), Just("[A-Z]"), Just("[a-zA-Z]"), Just("[-=/*+#.]")]
            .prop_flat_map(|letters| proptest::string::string_regex(&format!("{letters}{{1,30000}}")).unwrap()),
    ) {
        assert_bounded(&text);
    }
}

#[test]
fn l7_long_runs_of_anything_are_counted_within_the_bound() {
    for unit in [
        " ",
        "\n",
        "a",
        "A",
        "=",
        "字",
        "\u{3000}",
        "e\u{301}",
        "👩‍👩‍👧",
        "ab",
        "aB",
        " \n",
        "=\n",
        "iVBORw0KGgo",
    ] {
        assert_bounded(&unit.repeat(100_000 / unit.len()));
    }
    // The plain encoders fail on this many spaces.
    let spaces = " ".repeat(1_200_000);
    for (ours, _) in encodings() {
        assert!(ours.build().unwrap().count(&spaces) <= 1_200_000 / 64);
    }
}

/// Reads the transcripts in the folder `OFFCUT_TRACES`, see `tests/traces.rs`.
fn transcripts() -> Vec<Value> {
    let files = std::env::var_os("OFFCUT_TRACES").and_then(|folder| std::fs::read_dir(folder).ok());
    let files = files.into_iter().flatten().map(|file| file.unwrap().path());
    let files = files.filter(|file| file.extension().is_some_and(|ending| ending == "json"));
    files
        .map(|file| serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
        .collect()
}

/// A message as models see it, without the two marks around it: its role and text, and calls with their
/// names and arguments.
fn rendered(message: &Value) -> String {
    let mut text = format!("{}\n", message["role"].as_str().unwrap());
    text.push_str(message["content"].as_str().unwrap_or_default());
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        let (name, arguments) = (
            function["name"].as_str().unwrap(),
            function["arguments"].as_str().unwrap(),
        );
        text.push_str(&format!("functions.{name}\n{arguments}"));
    }
    text
}

#[test]
fn c1_transcripts_cost_as_much_as_the_rendered_request() {
    let (ours, other) = encodings()[0];
    let reduction = ToolReduction::recommended(Memory::new()).build().unwrap();
    let (mut sum, mut sum_rendered) = (0, 0);
    for mut transcript in transcripts() {
        let messages = transcript["messages"].as_array_mut().unwrap();
        let mut whole = 0;
        for message in &*messages {
            let text = rendered(message);
            let (counted, exact) = (ours.build().unwrap().count(&text), count(other, &text));
            let error = (text.len() / MAX_RUN) as u64 * MAX_ERROR;
            assert!(
                counted.abs_diff(exact) <= error,
                "{counted}, not {exact}: {text:.60}"
            );
            whole += 2 + exact;
        }
        let counted = reduction.count_tokens(&Messages::new(OpenAiChat, messages), &[]);
        assert!(
            counted.abs_diff(whole) * 50 <= whole,
            "{counted}, not {whole}, is more than 2 % off"
        );
        sum += counted;
        sum_rendered += whole;
    }
    if sum > 0 {
        println!("{sum} tokens counted, {sum_rendered} rendered");
        assert!(
            sum.abs_diff(sum_rendered) * 100 <= sum_rendered,
            "{sum}, not {sum_rendered}: more than 1 % off"
        );
    }
}
