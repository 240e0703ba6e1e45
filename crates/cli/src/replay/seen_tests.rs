//! Needs compared with a naive count, and planted losses, each of which must be flagged.

use offcut::format::Message;
use offcut::{Settings, ToolCall, ToolReduction};

use super::agent::replay;
use super::naive_tests::{naive, real_transcripts};
use super::{Figures, Read, Ruler, Script};
use crate::evidence::Kind;
use crate::settings;

fn figures(messages: &[Message], toml: &str) -> Figures {
    let (read, ruler) = (Read::of(messages), Ruler::new().unwrap());
    let script = Script::new(messages, &read, &ruler);
    let reduction = build(toml);
    let runtime = settings::runtime().unwrap();
    runtime
        .block_on(replay(&script, Some(&reduction)))
        .unwrap()
        .figures
}

fn build(toml: &str) -> ToolReduction {
    let mut settings = Settings::from_toml(toml).unwrap();
    settings::forget_stores(&mut settings);
    settings::build(&settings, "a test").unwrap()
}

/// Cuts each result of over 600 bytes to its first 150 and last 150 bytes, and arguments when old.
const CUT: &str = "max_length_for_trunc = 900\npreview_length = 300\nmax_tokens_for_clear = 1_000\nclear_tool_inputs = true\nclear_tool_inputs_above = 100";

fn assert_agrees(messages: &[Message], toml: &str, at: &str) -> u64 {
    let found = figures(messages, toml).seen;
    let runtime = settings::runtime().unwrap();
    let expected = runtime.block_on(naive(messages, &build(toml)));
    let mut all = 0;
    for (name, kind) in [("numbers", Kind::Number), ("flags", Kind::Flag)] {
        let count = found.count(kind);
        let expected = expected.get(name).copied().unwrap_or_default();
        assert_eq!([count.needed, count.seen], expected, "{name} of {at}");
        all += count.needed;
    }
    all
}

fn look(id: &str, arguments: &str, text: &str) -> [Message; 2] {
    let call = ToolCall::new(id, "shell", arguments);
    let result = Message::tool(&call, vec![text.into()], false);
    [Message::calls(vec![call]), result]
}

#[test]
fn a_naive_count_of_values_agrees() {
    let mut messages = vec![Message::user("go, with --known and 1000")];
    for round in 0..12_u64 {
        let text = format!(
            "head {round}\n{}\ntakes --option-{} and {} bytes, 9{round}1.5 in all\nthe quick brown fox number {} jumps over our lazy dogs today\n{}\ntail {}",
            "filler words here\n".repeat(20),
            ["a", "bb", "cc"][round as usize % 3],
            4_000 + round,
            ["one", "two", "three"][round as usize % 3],
            "more of it\n".repeat(30),
            7_000 + round,
        );
        messages.extend(look(&format!("c{round}"), "{\"command\":\"x\"}", &text));
        messages.push(Message::assistant(format!(
            "I saw {} and {}, --known, --option-bb: jumps over our lazy dogs today.",
            4_000 + round,
            7_000 + round / 2,
        )));
        messages.push(Message::user("go on"));
    }
    assert!(assert_agrees(&messages, CUT, "our own session") >= 15);
}

#[test]
fn a_naive_count_of_values_agrees_on_real_transcripts() {
    let Some(mut chosen) = real_transcripts("a_naive_count_of_values_agrees_on_real_transcripts")
    else {
        return;
    };
    // Looking everything up again at each call is slow: some short ones will do.
    chosen.sort_by_key(crate::transcript::Source::size);
    let mut all = 0;
    for source in chosen.iter().step_by(3).take(13) {
        for messages in source.read().unwrap() {
            all += assert_agrees(&messages, CUT, &source.name());
        }
    }
    assert!(all > 30, "{all} values");
}

// ---- Planted losses ----

/// Lines in which nothing is odd.
pub(super) fn filler(lines: u8) -> String {
    let line = |n| {
        format!(
            "nothing {} of note\n",
            char::from(b'A' + n).to_string().repeat(8)
        )
    };
    (0..lines).map(line).collect()
}

/// A session that learns `text`, surrounded by much else, and then says `use_of_it`.
fn planted(command: &str, text: &str, use_of_it: Message) -> Vec<Message> {
    let filler = filler(40);
    let arguments = serde_json::json!({ "command": command }).to_string();
    let mut messages = vec![Message::user("go")];
    messages.extend(look(
        "c1",
        &arguments,
        &format!("{filler}{text}\n{filler}the end"),
    ));
    messages.push(use_of_it);
    messages
}

fn lost(messages: &[Message], kind: Kind) -> (u64, u64) {
    let count = figures(messages, CUT).seen.count(kind);
    (count.needed, count.seen)
}

#[test]
fn each_planted_loss_is_flagged_by_its_kind() {
    let says = |text: &str| Message::assistant(text);
    for (kind, text, said) in [
        (Kind::Number, "distance: 5768 m", "It is 5768 away."),
        (Kind::Flag, "  --dry-run  try it", "Use --dry-run."),
        (Kind::Noun, "by Ada Lovelace", "Ada Lovelace wrote it."),
        (Kind::Date, "until 2026-03-04", "Until 2026-03-04."),
    ] {
        let messages = planted("x", text, says(said));
        assert_eq!(lost(&messages, kind), (1, 0), "{text}");
        let done = figures(&messages, CUT);
        assert_eq!(done.pages, u64::from(kind.is_read_back()), "{text}");
        assert_eq!(done.seen.count(kind).readable, 1, "{text}");
    }
    // The end is shown, so nothing is lost there.
    let kept = planted("x", "-", says("This is the end."));
    assert_eq!(figures(&kept, CUT).pages, 0);
}

#[test]
fn a_hidden_verdict_and_a_hidden_failure_are_flagged() {
    // Of so long a line, the beginning and the end are shown.
    let failure = format!("FAIL a.test.ts: {}", "adds, ".repeat(99));
    let hidden = planted(
        "npm test",
        &format!("12 pass\n1 fail\n{failure}"),
        Message::assistant("So."),
    );
    assert_eq!(lost(&hidden, Kind::Verdict), (1, 0));
    assert_eq!(lost(&hidden, Kind::Failing), (1, 0));
    assert_eq!(
        lost(
            &planted("cat test", "1 fail", Message::assistant("So.")),
            Kind::Verdict
        ),
        (0, 0)
    );
    let mut shown = planted("npm test", "-", Message::assistant("So."));
    if let Message::Tool { content, .. } = &mut shown[2] {
        *content = vec![format!("{}\n12 pass\n0 fail", "x of y\n".repeat(300)).into()];
    }
    assert_eq!(lost(&shown, Kind::Verdict), (1, 1));
}

#[test]
fn old_text_that_an_edit_repeats_is_flagged() {
    let edit = r#"{"path": "src/zone_file.rs", "old_string": "let zone = 1;\n    let area = 2;", "new_string": "-"}"#;
    let edits = planted(
        "x",
        "src/zone_file.rs\n12→let zone = 1;\n13→    let area = 2;",
        Message::calls(vec![ToolCall::new("c2", "edit", edit)]),
    );
    assert_eq!(lost(&edits, Kind::Edit), (1, 0));
    let whole = "skip_truncation = true\nskip_clear = true";
    let count = figures(&edits, whole).seen.count(Kind::Edit);
    assert_eq!((count.needed, count.seen), (1, 1));
}

#[test]
fn own_words_in_cleared_arguments_are_flagged_and_read_back() {
    let long = format!(
        r#"{{"text": "const only_here = 7; {}"}}"#,
        "and so on ".repeat(40)
    );
    let mut messages = vec![Message::user("go")];
    messages.extend(look("c1", &long, "written"));
    for round in 0..3 {
        messages.extend(look(
            &format!("d{round}"),
            "{}",
            &"some words\n".repeat(250),
        ));
    }
    messages.push(Message::assistant("It has only_here in it."));
    let done = figures(&messages, &format!("{CUT}\nskip_truncation = true"));
    let own = done.seen.count(Kind::Own);
    assert_eq!((own.needed, own.seen, own.readable), (1, 0, 1));
    assert_eq!(done.pages, 1);
    assert_eq!(done.reads, 0, "no result held it");
}

#[test]
fn a_page_that_was_read_stays_and_is_paid_for() {
    let mut messages = planted(
        "x",
        "distance: 5768 m\nheight: 9123 m",
        Message::assistant("5768"),
    );
    messages.push(Message::user("and?"));
    messages.push(Message::assistant("9123"));
    let done = figures(&messages, CUT);
    // Both numbers are on one page, and the second turn still has it.
    assert_eq!((done.pages, done.seen.count(Kind::Number).seen), (1, 0));
    let more = done.bill_with_pages(&super::Prices::weights(0.1, 1.0))
        - done.bill(&super::Prices::weights(0.1, 1.0));
    let (cached, fresh) = (done.pages_cached as f64, done.pages_fresh as f64);
    assert!((more - 0.1 * cached - fresh).abs() < 1e-9);
    // The page is sent once fresh, and once from the cache, beside the context of the call that
    // read it.
    let read_context = done.pages_cached - done.pages_fresh;
    assert!(read_context > 0 && read_context < done.tokens, "{done:?}");
}
