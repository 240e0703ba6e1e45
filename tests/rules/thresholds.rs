//! The tokens that a pass frees, compared exactly with `clear_at_least_tokens` (C6).

use crate::common::{clear, content, lines, memory, outcomes, round, stored, text, tokens};
use offcut::backend::{Backend, ErrorKind, Key};
use offcut::format::Message;
use offcut::handler::{Action, Replacement, ToolOutcome};
use offcut::report::{Outcome, Reason};
use offcut::{Builder, OnOffloadError, Report, ToolReduction};
use offcut_testkit::{Fault, Faulty};

/// One token for each byte, so that the length of a name shows in the count.
fn builder(store: impl Backend) -> Builder {
    ToolReduction::builder()
        .backend(store)
        .count_tokens_with(|text: &str| text.len() as u64)
        .max_tokens_for_clear(100)
}

fn rounds(count: usize) -> Vec<Message> {
    let rounds = (0..count).flat_map(|n| round(&format!("call_{n}"), "grep", lines(30)));
    rounds.chain([Message::assistant("done")]).collect()
}

/// Runs a pass over `messages`. Returns its report and the tokens before and after.
async fn pass(reduction: &ToolReduction, messages: &mut [Message]) -> (Report, u64, u64) {
    let before = tokens(reduction, messages);
    let report = clear(reduction, messages).await;
    let after = tokens(reduction, messages);
    assert_eq!(
        report.cleared_input_tokens(),
        before.saturating_sub(after),
        "the report is exact"
    );
    assert_eq!(report.tokens_after(), Some(after));
    (report, before, after)
}

#[tokio::test]
async fn c6_a_pass_that_frees_exactly_the_minimum_acts() {
    let all = builder(memory()).build().unwrap();
    let frees = pass(&all, &mut rounds(51)).await.0.cleared_input_tokens();
    for (at_least, cleared) in [(frees - 1, 50), (frees, 50), (frees + 1, 0)] {
        let store = memory();
        let reduction = builder(store.clone())
            .clear_at_least_tokens(at_least)
            .build()
            .unwrap();
        let mut messages = rounds(51);
        let (report, ..) = pass(&reduction, &mut messages).await;
        assert_eq!(
            (report.cleared_tool_uses(), stored(&store).await.len()),
            (cleared, cleared),
            "{at_least} of {frees}"
        );
    }
}

/// A store in which the first `count` names are taken by other content, as after another
/// conversation without sessions.
async fn with_names_taken(count: usize) -> offcut::backend::Memory {
    let store = memory();
    for n in 0..count {
        store
            .put(
                &Key::new(format!("clear/call_{n}")).unwrap(),
                "something else".into(),
            )
            .await
            .unwrap();
    }
    store
}

#[tokio::test]
async fn c6_names_that_turn_out_to_be_taken_are_accounted_for() {
    let frees = pass(&builder(memory()).build().unwrap(), &mut rounds(11))
        .await
        .0
        .cleared_input_tokens();
    // Three names get longer by a hyphen and a digest.
    let longer = 3 * 17;
    for (at_least, cleared) in [(frees - longer, 10), (frees - longer + 1, 0)] {
        let store = with_names_taken(3).await;
        let reduction = builder(store.clone())
            .clear_at_least_tokens(at_least)
            .build()
            .unwrap();
        let (mut messages, before) = (rounds(11), rounds(11));
        let (report, ..) = pass(&reduction, &mut messages).await;
        assert_eq!(
            report.cleared_tool_uses(),
            cleared,
            "{at_least}, and {} can be freed",
            frees - longer
        );
        if cleared == 0 {
            assert_eq!(messages, before);
            assert_eq!(outcomes(&report)[0].1, Outcome::Kept(Reason::TooLittle));
        }
    }
}

#[tokio::test]
async fn c6_a_pass_that_frees_too_little_after_a_failed_save_changes_nothing() {
    let frees = pass(&builder(memory()).build().unwrap(), &mut rounds(11))
        .await
        .0
        .cleared_input_tokens();
    for then in [OnOffloadError::KeepOriginal, OnOffloadError::PreviewOnly] {
        let store = Faulty::new(memory());
        // A store that is unavailable would not be asked again.
        store.fault_on_write(4, Fault::Fail(ErrorKind::Other));
        // A placeholder has fewer bytes than a hint, so a lost result would free more.
        let at_least = if then == OnOffloadError::KeepOriginal {
            frees
        } else {
            frees + 1
        };
        let reduction = builder(store.clone())
            .clear_at_least_tokens(at_least)
            .on_offload_error(then)
            .build()
            .unwrap();
        let (mut messages, before) = (rounds(11), rounds(11));
        let (report, ..) = pass(&reduction, &mut messages).await;
        assert!(!report.is_change(), "{then:?}");
        assert_eq!(messages, before);
        if then == OnOffloadError::PreviewOnly {
            continue;
        }
        let reasons: Vec<_> = outcomes(&report)
            .into_iter()
            .map(|(_, outcome)| outcome)
            .collect();
        assert_eq!(reasons[3], Outcome::Kept(Reason::StoreFailed));
        assert!(
            [0, 1, 2, 4, 9]
                .iter()
                .all(|at| reasons[*at] == Outcome::Kept(Reason::TooLittle)),
            "{reasons:?}"
        );

        // The next pass finds the stored content and stores the rest.
        store.heal();
        let there = stored(store.inner()).await;
        assert_eq!(there.len(), 9);
        let (report, ..) = pass(&reduction, &mut messages).await;
        assert_eq!(report.cleared_tool_uses(), 10);
        let after = stored(store.inner()).await;
        assert_eq!(after.len(), 10, "nothing is stored twice");
        assert!(there.iter().all(|entry| after.contains(entry)));
        assert!(
            !clear(&reduction, &mut messages).await.is_change(),
            "and stays so"
        );
    }
}

#[tokio::test]
async fn c6_results_that_a_handler_lengthens_count_against_the_pass() {
    let handler = |outcome: ToolOutcome| {
        let replacement = |text: String| Ok(Action::Replace(Replacement::discarding(text)));
        if outcome.call.id == "call_0" {
            replacement("x".repeat(1_000))
        } else {
            Ok(Action::Default)
        }
    };
    let make = |at_least| {
        builder(memory())
            .clear_handler(handler)
            .clear_at_least_tokens(at_least)
            .build()
            .unwrap()
    };
    let frees = pass(&make(0), &mut rounds(11))
        .await
        .0
        .cleared_input_tokens();
    for (at_least, cleared) in [(frees, 10), (frees + 1, 0)] {
        let (report, ..) = pass(&make(at_least), &mut rounds(11)).await;
        assert_eq!(report.cleared_tool_uses(), cleared);
    }
}

#[tokio::test]
async fn c6_old_decisions_are_repeated_even_if_the_rest_frees_too_little() {
    let reduction = builder(memory())
        .clear_at_least_tokens(500)
        .build()
        .unwrap();
    let mut history = rounds(11);
    let (report, ..) = pass(&reduction, &mut history.clone()).await;
    assert_eq!(report.cleared_tool_uses(), 10);
    history.extend(
        [
            round("new", "grep", lines(31)).to_vec(),
            vec![Message::assistant("more")],
        ]
        .concat(),
    );
    let mut sent = history.clone();
    clear(&reduction, &mut sent).await;
    assert!(text(content(&sent[1])).starts_with("[offcut/1 cleared"));
    let later = round("call_x", "grep", "ok");
    history.extend(later);
    let mut again = history.clone();
    let report = clear(&reduction, &mut again).await;
    let done = |outcome| {
        report
            .decisions
            .iter()
            .filter(|decision| decision.outcome == outcome)
            .count()
    };
    assert_eq!(
        (
            done(Outcome::Repeated),
            done(Outcome::Kept(Reason::TooLittle))
        ),
        (10, 2),
        "{:?}",
        outcomes(&report)
    );
}

#[tokio::test]
async fn c6_the_minimum_is_exact_in_tokens_of_a_model() {
    let make = |at_least: u64| {
        ToolReduction::builder()
            .backend(memory())
            .max_length_for_trunc(800)
            .preview_length(100)
            .max_tokens_for_clear(100)
            .clear_at_least_tokens(at_least)
            .build()
            .unwrap()
    };
    for is_truncated in [false, true] {
        let run = async |at_least| {
            let reduction = make(at_least);
            let mut messages = rounds(51);
            if is_truncated {
                for at in (1..102).step_by(2) {
                    let call = offcut::ToolCall::new(format!("call_{}", at / 2), "grep", "{}");
                    let result = lines(120 + at);
                    let shown = reduction.truncate(&call, result).await.unwrap();
                    messages[at] = round(&call.id, "grep", shown.parts[0].clone())[1].clone();
                }
            }
            pass(&reduction, &mut messages).await.0
        };
        let frees = run(0).await.cleared_input_tokens();
        for (at_least, cleared) in [(frees, 50), (frees + 1, 0)] {
            let report = run(at_least).await;
            assert_eq!(report.cleared_tool_uses(), cleared, "{at_least} of {frees}");
        }
    }
}
