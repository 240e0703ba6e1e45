//! Counters are user code, and the sum of their counts may overflow.

use crate::common::{call, content, lines, memory, round, text};
use offcut::format::{Message, Messages, Plain};
use offcut::handler::{Action, Replacement, ToolOutcome};
use offcut::{Builder, Part, ToolReduction, Turn};
use serde_json::json;

const COUNTS: [u64; 3] = [u64::MAX, u64::MAX / 2, u64::MAX / 3];

/// A counter that charges `count` for a text of more than 100 bytes, and a quarter of its bytes for
/// a shorter one.
fn builder(count: u64) -> Builder {
    let counter = move |text: &str| {
        if text.len() > 100 {
            count
        } else {
            text.len() as u64 / 4
        }
    };
    ToolReduction::builder()
        .backend(memory())
        .count_tokens_with(counter)
        .clear_retention_suffix_limit(0)
}

fn messages() -> Vec<Message> {
    let picture = Part::Media {
        mime: "image/png".into(),
        data: vec![7; 3_000].into(),
    };
    let two = [
        Part::from(lines(90)),
        picture,
        Part::Json(json!({"rows": lines(50)})),
    ];
    let shot = call("d", "shoot");
    let mut messages = [
        round("a", "f", lines(400)),
        round("b", "f", lines(300)),
        round("c", "f", lines(200)),
    ]
    .concat();
    messages.extend([
        Message::calls(vec![shot.clone()]),
        Message::tool(&shot, two.into(), false),
    ]);
    messages.push(Message::assistant(lines(70)));
    messages
}

#[tokio::test]
async fn l7_a_pass_over_counts_that_no_sum_can_hold() {
    for count in COUNTS {
        let schemas = [
            json!({"name": "x".repeat(200)}),
            json!({"name": "y".repeat(200)}),
        ];
        let longer = |outcome: ToolOutcome| {
            let twice = [outcome.parts.clone(), outcome.parts].concat();
            Ok(Action::Replace(Replacement::discarding(twice)))
        };
        let passes = [
            builder(count).max_tokens_for_clear(10),
            builder(count)
                .max_tokens_for_clear(10)
                .clear_at_least_tokens(u64::MAX),
            builder(count).max_tokens_for_clear(u64::MAX - 1),
            builder(count)
                .max_tokens_for_clear(10)
                .clear_tool_inputs(true)
                .stub_length(200),
            builder(count)
                .max_tokens_for_clear(10)
                .clear_handler(longer),
        ];
        for (n, pass) in passes.into_iter().enumerate() {
            let reduction = pass.build().unwrap();
            for last_usage in [None, Some(u64::MAX), Some(7)] {
                let (mut sent, mut again) = (messages(), messages());
                // The second run, over the originals, repeats and counts the decisions.
                for messages in [&mut sent, &mut again] {
                    let mut conversation = Messages::new(Plain, messages);
                    let mut turn = Turn {
                        tools: &schemas,
                        last_usage,
                        ..Turn::new(&mut conversation)
                    };
                    let report = reduction.clear_turn(&mut turn).await.unwrap();
                    let saved = report.cleared_input_tokens();
                    assert!(
                        n != 4 || saved == 0,
                        "the handler made it longer, and saved {saved}"
                    );
                    assert!(report.saved_bytes() < 20_000);
                }
            }
        }
    }
}

#[tokio::test]
async fn l7_counts_that_no_sum_can_hold_are_as_much_as_a_number_holds() {
    for count in COUNTS {
        let reduction = builder(count).build().unwrap();
        let all = reduction.count_tokens(&Messages::new(Plain, &mut messages()), &[]);
        assert!(all >= count.min(u64::MAX - 1), "{all}");
    }
    let mut one = round("a", "f", lines(400));
    assert_eq!(text(content(&one[1])), lines(400));
    let counted = builder(u64::MAX)
        .build()
        .unwrap()
        .count_tokens(&Messages::new(Plain, &mut one), &[]);
    assert_eq!(counted, u64::MAX, "as much as a number holds");
}
