//! L8: cost follows what is new. L10: no global state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::join3;
use offcut::backend::Memory;
use offcut::format::{Message, Plain};
use offcut::{ToolCall, ToolReduction};
use proptest::collection::vec;
use proptest::prelude::any;

use super::drive::drive;
use super::generate::conversations;
use super::subject::OffcutSubject;
use super::text::{Kind, Text};
use super::wire::OpenAiChat;
use super::world::{World, setups};
use super::{OTHER_STORE, STORE, Violation, block_on, hold, require};

/// Allowance for hints in each turn: candidates are counted too, once in each possible form.
const HINTS: u64 = 600;

/// Runs a loop in which the counter sees no more than the new texts and their replacements.
async fn count_what_is_new(
    turns: &[usize],
    threshold: u64,
    over_originals: bool,
    inputs: bool,
) -> Result<(), Violation> {
    let counted = Arc::new(AtomicU64::new(0));
    let counter = {
        let counted = Arc::clone(&counted);
        move |text: &str| {
            counted.fetch_add(text.len() as u64, Ordering::Relaxed);
            text.len() as u64 / 4
        }
    };
    let reduction = ToolReduction::builder()
        .backend(Memory::new())
        .count_tokens_with(counter)
        .max_tokens_for_clear(threshold)
        .clear_retention_suffix_limit(2)
        .clear_tool_inputs(inputs)
        .build()
        .unwrap();
    let mut messages: Vec<Message> = Vec::new();
    let mut allowed = 0;
    for (turn, length) in turns.iter().enumerate() {
        let call = ToolCall::new(
            format!("call_{turn}"),
            "grep",
            Text::new(Kind::Json, length / 3, 0).render(),
        );
        let result = Text::new(Kind::Lines, *length, (turn % 200) as u8).render();
        let new = (call.arguments.len() + result.len()) as u64;
        messages.extend([
            Message::calls(vec![call.clone()]),
            Message::tool(&call, vec![result.into()], false),
        ]);
        let mut sent = messages.clone();
        reduction.clear(Plain, &mut sent).await.unwrap();
        allowed += new + HINTS;
        let cost = counted.load(Ordering::Relaxed);
        require(cost <= allowed, "L8", || {
            format!("by turn {turn}, {cost} bytes were counted of {allowed}")
        })?;
        if !over_originals {
            messages = sent;
        }
    }
    Ok(())
}

#[test]
fn l8_the_cost_of_a_turn_follows_its_new_messages() {
    let cases = || {
        let turns = vec(
            proptest::prop_oneof![3 => 50_usize..900, 1 => 900_usize..9_000],
            30..60,
        );
        (
            turns,
            proptest::prop_oneof![1_u64..9_000, proptest::prelude::Just(u64::MAX)],
            any::<bool>(),
            any::<bool>(),
        )
    };
    hold(3, cases, |(turns, threshold, over_originals, inputs)| {
        block_on(count_what_is_new(&turns, threshold, over_originals, inputs))
    });
}

#[test]
fn l10_two_reductions_share_no_state() {
    let cases = || {
        (
            (setups(STORE), conversations()),
            (setups(OTHER_STORE), conversations()),
        )
    };
    hold(3, cases, |((setup, steps), (other_setup, other_steps))| {
        block_on(async {
            let drive_one = || {
                drive(
                    Plain,
                    OffcutSubject::new(World::new(setup.clone())),
                    &steps,
                    None,
                )
            };
            let drive_other = || {
                drive(
                    OpenAiChat,
                    OffcutSubject::new(World::new(other_setup.clone())),
                    &other_steps,
                    None,
                )
            };
            let (alone, other_alone) = (
                drive_one().await?.0.messages,
                drive_other().await?.0.messages,
            );
            // Whenever one waits for its files, another runs.
            let (first, between, last) = join3(drive_other(), drive_one(), drive_other()).await;
            let others = first?.0.messages == other_alone && last?.0.messages == other_alone;
            require(others && between?.0.messages == alone, "L10", || {
                "side by side, they give something else than alone".into()
            })
        })
    });
}
