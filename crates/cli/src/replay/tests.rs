//! Replays compared with figures worked out by hand, and with a loop that examines everything again
//! at each call.

use std::io::Write as _;

use offcut::backend::{Backend as _, Key, Memory};
use offcut::format::{Message, Messages, Plain};
use offcut::{Settings, ToolCall, ToolReduction, Turn};

use super::agent::replay;
use super::naive_tests::{arrive, real_transcripts};
use super::seen_tests::filler;
use super::{Figures, Prices, Read, Replay, Ruler, Script};
use crate::evidence::Kind;
use crate::settings;
use crate::transcript::Source;

fn settings(toml: &str) -> Settings {
    Settings::from_toml(toml).unwrap()
}

fn build(settings: &Settings) -> ToolReduction {
    let mut settings = settings.clone();
    settings::forget_stores(&mut settings);
    settings::build(&settings, "a test").unwrap()
}

fn run(messages: &[Message], reduction: Option<&ToolReduction>) -> Replay {
    let (read, ruler) = (Read::of(messages), Ruler::new().unwrap());
    let script = Script::new(messages, &read, &ruler);
    settings::runtime()
        .unwrap()
        .block_on(replay(&script, reduction))
        .unwrap()
}

/// An agent that looks twice, and then says what it saw first.
fn by_hand() -> Vec<Message> {
    let call = |id: &str| ToolCall::new(id, "look", "{}");
    let result = |id: &str, text: String| Message::tool(&call(id), vec![text.into()], false);
    vec![
        Message::user("go"),                                                // 4 and 1
        Message::calls(vec![call("c1")]),                                   // 4, `look` 1, `{}` 1
        result("c1", format!("size_of_pool is 7.{}", " word".repeat(400))), // 4, 7 and 400
        Message::calls(vec![call("c2")]),                                   // like the first
        result("c2", " word".repeat(200)),                                  // 4 and 200
        Message::assistant("Its size_of_pool."),                            // never sent
    ]
}

const USER: u64 = 5;
const ASKS: u64 = 6;
const FIRST: u64 = 411;
const SECOND: u64 = 204;

/// Tokens of the first result's replacement: the hint is written out with its location.
fn first_as(hint: &str, key: &str) -> u64 {
    let location = Memory::new().locate(&Key::new(key).unwrap());
    let counter = offcut::TokenCounter::O200kBase.build().unwrap();
    4 + counter.count(&hint.replace("LOCATION", location.as_str()))
}

/// The names that turns take from results, those that are shown, and those that are at least reachable.
fn names(figures: &Figures) -> [u64; 3] {
    let names = figures.seen.count(Kind::Name);
    [names.needed, names.seen, names.readable]
}

/// Checks the bills with both cards, and the number of reads.
fn assert_bills(figures: &Figures, cached: u64, fresh: u64, reads: u64) {
    let bill = |price: f64| 0.1 * cached as f64 + price * fresh as f64;
    assert_eq!(figures.bill(&Prices::weights(0.1, 1.0)), bill(1.0));
    assert_eq!(figures.bill(&Prices::weights(0.1, 1.25)), bill(1.25));
    assert_eq!(figures.reads, reads);
}

#[test]
fn doing_nothing_is_worked_out_by_hand() {
    let done = run(&by_hand(), None);
    // Each call sends everything before it; what the previous call sent is cached.
    let (first, second, third) = (
        USER,
        USER + ASKS + FIRST,
        USER + ASKS + FIRST + ASKS + SECOND,
    );
    assert_eq!(done.contexts, [first, second, third]);
    assert_eq!(done.contexts, [5, 422, 632]);
    assert_eq!(
        (done.figures.tokens, done.figures.peak, done.figures.breaks),
        (5 + 422 + 632, 632, 0)
    );
    assert_bills(&done.figures, 5 + 422, 5 + 417 + 210, 0);
    assert_eq!((names(&done.figures), done.figures.shown), ([1, 1, 1], 1));
}

#[test]
fn truncation_is_worked_out_by_hand() {
    let policy = settings("max_length_for_trunc = 1_500\npreview_length = 0\nskip_clear = true");
    let done = run(&by_hand(), Some(&build(&policy)));
    // The first result, 2 018 bytes, is shown as a hint from the start, so nothing that was sent
    // ever changes.
    let hint = first_as(
        "[offcut/1 truncated 2018B/1L 39 \"LOCATION\"] Stored in full. Read it with read_file.",
        "trunc/c1",
    );
    let (first, second, third) = (USER, USER + ASKS + hint, USER + ASKS + hint + ASKS + SECOND);
    assert_eq!(done.contexts, [first, second, third]);
    assert_eq!(done.figures.breaks, 0);
    assert_bills(
        &done.figures,
        first + second,
        first + (ASKS + hint) + (ASKS + SECOND),
        1,
    );
    let figures = done.figures;
    assert_eq!(names(&figures), [1, 0, 1], "only the hint leads to it");
    assert_eq!((figures.stored_objects, figures.stored_bytes), (1, 2_018));
}

#[test]
fn clearing_is_worked_out_by_hand() {
    let policy = settings("skip_truncation = true\nmax_tokens_for_clear = 600");
    let done = run(&by_hand(), Some(&build(&policy)));
    // Before the third call there are 632 tokens, so the first result goes. The request is
    // unchanged up to it: user and call.
    let hint = first_as(
        "[offcut/1 cleared 2018B/1L 43 \"LOCATION\"] Old result of look. Read it with read_file.",
        "clear/c1",
    );
    let (first, second, third) = (
        USER,
        USER + ASKS + FIRST,
        USER + ASKS + hint + ASKS + SECOND,
    );
    assert_eq!(done.contexts, [first, second, third]);
    assert_eq!(done.figures.breaks, 1);
    assert_bills(
        &done.figures,
        first + (USER + ASKS),
        first + (ASKS + FIRST) + (hint + ASKS + SECOND),
        1,
    );
    assert_eq!(names(&done.figures), [1, 0, 1]);
    assert_eq!(done.changes.len(), 1);
    assert_eq!(
        (
            done.changes[0].call,
            done.changes[0].before,
            done.changes[0].after
        ),
        (2, FIRST, hint)
    );
}

#[test]
fn visibility_equals_the_figures_by_hand() {
    let filler = filler(60).repeat(2);
    let quote = "let answer = compute(middle_one);";
    let results = [
        format!("first_line = 1\n{filler}middle_one, middle_two\n{quote}\n{filler}"),
        format!("{filler}middle_one again\n{filler}"),
        // One long line, which is cut at most 40 characters after the name.
        format!("{}near_the_cut {}", "w ".repeat(125), "w ".repeat(1_080)),
    ];
    let mut messages = vec![Message::user("go")];
    for (index, text) in results.into_iter().enumerate() {
        let call = ToolCall::new(format!("c{index}"), "look", "{}");
        messages.push(Message::calls(vec![call.clone()]));
        messages.push(Message::tool(&call, vec![text.into()], false));
    }
    messages.push(Message::assistant(format!(
        "first_line, middle_one, middle_two, near_the_cut:\n{quote}"
    )));
    let policy = settings("max_length_for_trunc = 1_500\npreview_length = 300\nskip_clear = true");
    let seen = run(&messages, Some(&build(&policy))).figures;
    // The beginning of the first result is shown. The third is cut right after its name, so the
    // name is shown without its surroundings.
    assert_eq!((names(&seen), seen.shown), ([4, 2, 4], 1));
    let lines = seen.seen.count(Kind::Quote);
    assert_eq!((lines.needed, lines.seen), (1, 0));
    // `middle_one` is read from the newest result with it, the second; `middle_two` and the line
    // from the first, in one read.
    assert_eq!(seen.reads, 2);
    let nothing = run(&messages, None).figures;
    assert_eq!((names(&nothing), nothing.shown), ([4, 4, 4], 4));
    let lines = nothing.seen.count(Kind::Quote);
    assert_eq!((lines.needed, lines.seen), (1, 1));
}

#[test]
fn content_that_was_not_stored_is_not_reachable() {
    let policy = settings("skip_truncation = true\nmax_tokens_for_clear = 600");
    let reduction = settings::build(&policy, "a test").unwrap();
    let done = run(&by_hand(), Some(&reduction));
    assert_eq!(names(&done.figures), [1, 0, 0]);
    assert_eq!(done.figures.stored_objects, 0);
}

/// A loop that trusts no report: it compares and counts everything at each call.
async fn naive(messages: &[Message], reduction: &ToolReduction) -> (Figures, u64) {
    let ruler = Ruler::new().unwrap();
    let count = |messages: &mut [Message]| {
        messages
            .iter_mut()
            .map(|message| ruler.tokens(message))
            .sum::<u64>()
    };
    let (mut now, mut sent, mut open) = (Vec::new(), Vec::<Message>::new(), Vec::new());
    let mut figures = Figures::default();
    for message in messages {
        let mut message = message.clone();
        match &mut message {
            Message::Assistant { calls, .. } => {
                let mut before: Vec<Message> = now.clone();
                let mut conversation = Messages::new(Plain, &mut now);
                let report = reduction
                    .clear_turn(&mut Turn::new(&mut conversation))
                    .await
                    .unwrap();
                assert_eq!(
                    count(&mut before) - count(&mut now),
                    report.cleared_input_tokens(),
                    "the report's sum"
                );
                let same = now
                    .iter()
                    .zip(&sent)
                    .take_while(|(now, sent)| now == sent)
                    .count();
                let (total, cached) = (count(&mut now), count(&mut now.clone()[..same]));
                figures.model_calls += 1;
                figures.tokens += total;
                figures.fresh += total - cached;
                figures.peak = figures.peak.max(total);
                figures.breaks += u64::from(same < sent.len());
                sent.clone_from(&now);
                open.clone_from(calls);
            }
            other => arrive(reduction, &mut open, other).await,
        }
        now.push(message);
    }
    (figures, count(&mut now))
}

/// Checks that the figures, which a replay takes from reports, equal those of a naive loop, and
/// that the changes add up to the difference between the conversations.
fn assert_agrees_with_a_naive_loop(messages: &[Message], policy: &Settings, at: &str) {
    let (read, ruler) = (Read::of(messages), Ruler::new().unwrap());
    let script = Script::new(messages, &read, &ruler);
    let runtime = settings::runtime().unwrap();
    let done = runtime
        .block_on(replay(&script, Some(&build(policy))))
        .unwrap();
    let (expected, left) = runtime.block_on(naive(messages, &build(policy)));
    let books = |figures: Figures| {
        (
            figures.model_calls,
            figures.tokens,
            figures.fresh,
            figures.peak,
            figures.breaks,
        )
    };
    assert_eq!(books(done.figures), books(expected), "{at}");
    let saved: u64 = done
        .changes
        .iter()
        .map(|change| change.before - change.after)
        .sum();
    assert_eq!(
        script.tokens.iter().sum::<u64>() - left,
        saved,
        "{at}: the sum of all changes"
    );
    let nothing = runtime.block_on(replay(&script, None)).unwrap();
    assert_eq!(nothing.contexts.len(), done.contexts.len());
    assert!(
        done.contexts
            .iter()
            .zip(&nothing.contexts)
            .all(|(one, other)| one <= other),
        "{at}: never longer"
    );
}

fn tight() -> [Settings; 3] {
    [
        "max_length_for_trunc = 1_000\npreview_length = 200\nmax_tokens_for_clear = 2_000\nstub_length = 60",
        "skip_truncation = true\nmax_tokens_for_clear = 1_500\nclear_retention_suffix_limit = 2\nclear_tool_inputs = true",
        "max_length_for_trunc = 900\npreview_length = 300\nmax_tokens_for_clear = 3_000\ntoken_counter = \"o200k_base\"",
    ]
    .map(settings)
}

#[test]
fn a_naive_loop_gives_the_same_figures() {
    let mut messages = vec![Message::user("go")];
    for round in 0..40_usize {
        // Repeating ids, several calls in a round, results of all lengths.
        let calls: Vec<ToolCall> = (0..=round % 3)
            .map(|n| {
                ToolCall::new(
                    format!("call_{n}"),
                    "look",
                    format!("{{\"at\":\"{}\"}}", "x".repeat(round * 40)),
                )
            })
            .collect();
        messages.push(Message::calls(calls.clone()));
        for call in &calls {
            let text = format!("entry_{round}: something was seen\n").repeat(1 + round * 7 % 90);
            messages.push(Message::tool(call, vec![text.into()], round % 7 == 6));
        }
        if round % 5 == 4 {
            messages.push(Message::assistant("Done so far."));
            messages.push(Message::user("Go on."));
        }
    }
    messages.push(Message::assistant("entry_3 and entry_17"));
    for (index, policy) in tight().iter().enumerate() {
        assert_agrees_with_a_naive_loop(&messages, policy, &format!("policy {index}"));
    }
}

#[test]
fn a_naive_loop_gives_the_same_figures_on_real_transcripts() {
    let Some(all) = real_transcripts("a_naive_loop_gives_the_same_figures_on_real_transcripts")
    else {
        return;
    };
    let every = if cfg!(debug_assertions) { 24 } else { 1 };
    let ready = ["cache-friendly"].map(|name| settings::load(name).unwrap());
    let chosen: Vec<Source> = all.into_iter().step_by(every).collect();
    for source in &chosen {
        for messages in source.read().unwrap() {
            for (index, policy) in tight().iter().chain(&ready).enumerate() {
                assert_agrees_with_a_naive_loop(
                    &messages,
                    policy,
                    &format!("{} under policy {index}", source.name()),
                );
            }
        }
    }
    writeln!(
        std::io::stderr(),
        "{} transcripts agree with a naive loop",
        chosen.len()
    )
    .unwrap();
}
