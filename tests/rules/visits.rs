//! The number of visits that a pass makes to a message: counted, not timed.

use std::sync::atomic::{AtomicUsize, Ordering};

use offcut::backend::Memory;
use offcut::format::{Anthropic, Format, LoopFormat, Messages, NewPiece, Piece};
use offcut::{Builder, Report, TokenCounter, ToolCall, ToolReduction, Turn};
use serde_json::{Value, json};

/// Anthropic's format, counting visits and the pieces seen.
#[derive(Default)]
struct Watched {
    visits: AtomicUsize,
    pieces: AtomicUsize,
}

impl Format for Watched {
    type Message = Value;

    fn visit<'m>(&self, message: &'m Value, see: &mut dyn FnMut(Piece<'m>)) {
        self.visits.fetch_add(1, Ordering::Relaxed);
        Anthropic.visit(message, &mut |piece| {
            self.pieces.fetch_add(1, Ordering::Relaxed);
            see(piece);
        });
    }

    fn replace(&self, message: &mut Value, index: usize, new: NewPiece) {
        Anthropic.replace(message, index, new);
    }
}

/// Makes `rounds` rounds of `calls` parallel calls each.
fn rounds(rounds: usize, calls: usize) -> Vec<Value> {
    let mut messages = vec![json!({"role": "user", "content": "Go."})];
    for round in 0..rounds {
        let call = |n| ToolCall::new(format!("toolu_{round}_{n}"), "grep", "{}");
        let asked = (0..calls).map(|n| {
            let input = json!({"pattern": format!("{n}").repeat(400)});
            json!({"type": "tool_use", "id": call(n).id, "name": "grep", "input": input})
        });
        messages.push(json!({"role": "assistant", "content": asked.collect::<Value>()}));
        let text = |n| format!("{round}.{n}: a line that was found\n").repeat(40);
        messages.extend(
            (0..calls).map(|n| Anthropic.tool_message(&call(n), vec![text(n).into()], false)),
        );
        Anthropic.join_results(&mut messages);
    }
    messages.push(json!({"role": "assistant", "content": "Done."}));
    messages
}

fn eager() -> Builder {
    ToolReduction::builder()
        .backend(Memory::new())
        .token_counter(TokenCounter::Estimate)
        .max_tokens_for_clear(100)
        .clear_tool_inputs(true)
        .clear_retention_suffix_limit(0)
}

/// Runs one pass. Returns its report and the numbers of visits and pieces.
async fn pass(
    reduction: &ToolReduction,
    messages: &mut [Value],
    last_usage: Option<u64>,
) -> (Report, usize, usize) {
    let watched = Watched::default();
    let mut conversation = Messages::new(&watched, messages);
    let mut turn = Turn {
        last_usage,
        ..Turn::new(&mut conversation)
    };
    let report = reduction.clear_turn(&mut turn).await.unwrap();
    let Watched { visits, pieces } = watched;
    (report, visits.into_inner(), pieces.into_inner())
}

#[tokio::test]
async fn l8_a_pass_visits_each_message_at_most_three_times() {
    let reduction = eager().build().unwrap();
    let mut messages = rounds(50, 1);
    let originals = messages.clone();
    let (report, visits, _) = pass(&reduction, &mut messages, None).await;
    assert_eq!(report.cleared_tool_uses(), 50);
    // It is read, and compared with what has taken its place.
    assert_eq!(visits, 2 * messages.len());
    // Is anything to be replaced again, and what may go?
    let (report, visits, _) = pass(&reduction, &mut messages, None).await;
    assert!(!report.is_change() && report.decisions.len() == 100);
    assert_eq!(visits, 2 * messages.len());
    // Only what follows the last request is counted.
    let (.., visits, _) = pass(&reduction, &mut messages, Some(1_000_000)).await;
    assert!(visits <= 3 * messages.len() + 3, "{visits}");
    let (report, visits, _) = pass(&reduction, &mut originals.clone(), None).await;
    assert_eq!(report.cleared_tool_uses(), 50);
    assert!(visits <= 3 * messages.len(), "{visits}");
}

#[tokio::test]
async fn l8_visits_to_a_whole_history_are_linear_in_it() {
    let mut shares = Vec::new();
    for count in [25, 400] {
        let store = Memory::new();
        let make = || {
            let builder = eager().backend(store.clone()).max_length_for_trunc(1_000);
            builder.preview_length(200).build().unwrap()
        };
        let originals = rounds(count, 1);
        // A process that decides, one that reads the decisions, and the same one again.
        let deciding = make();
        let reading = make();
        for (nth, reduction) in [&deciding, &reading, &reading].into_iter().enumerate() {
            let watched = Watched::default();
            let mut messages = originals.clone();
            let report = reduction.reduce(&watched, &mut messages).await.unwrap();
            assert!(report.decisions.len() >= count, "{nth}");
            assert_ne!(messages, originals);
            shares.push(watched.visits.into_inner().div_ceil(messages.len()));
        }
    }
    assert_eq!(shares[..3], shares[3..], "visits to each message");
    assert!(shares.iter().all(|visits| *visits <= 12), "{shares:?}");
}

#[tokio::test]
async fn l8_visits_are_linear_in_the_results_of_a_message() {
    let mut seen = Vec::new();
    for calls in [50, 400] {
        let mut messages = rounds(1, calls);
        let plan = eager().build().unwrap();
        let (report, visits, pieces) = pass(&plan, &mut messages, None).await;
        assert_eq!(report.cleared_tool_uses(), calls);
        assert_eq!(visits, 2 * messages.len());
        seen.push(pieces);
    }
    let (few, many) = (seen[0], seen[1]);
    assert!(many <= 8 * few, "{seen:?}");
}
