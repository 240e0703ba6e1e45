//! L1 to L5, with L6 and L12, over conversations of all kinds.

use std::sync::Arc;

use offcut::format::Plain;

use super::drive::drive;
use super::generate::{Step, conversations, imitations};
use super::subject::OffcutSubject;
use super::wire::{Anthropic, Gemini, OpenAiChat, OverText, Responses, Wire};
use super::world::{Setup, World, setups};
use super::{OTHER_STORE, STORE, Violation, block_on, hold, require};

/// Drives one conversation twice, checking every law on the way: the same input over equal stores
/// gives the same bytes.
fn drive_twice<F: Wire>(wire: F, setup: &Setup, steps: &[Step]) -> Result<(), Violation> {
    block_on(async {
        let (first, subject) = drive(
            wire,
            OffcutSubject::new(World::new(setup.clone())),
            steps,
            None,
        )
        .await?;
        let stored = subject.world.stored().await;
        let other = OffcutSubject::new(World::new(setup.clone()));
        let other_world = Arc::clone(&other.world);
        let (second, _) = drive(wire, other, steps, None).await?;
        require(first.messages == second.messages, "L4", || {
            "the same input gave other messages".into()
        })?;
        require(stored == other_world.stored().await, "L4", || {
            "the same input stored other bytes".into()
        })
    })
}

#[test]
fn l1_to_l5_hold_for_our_own_messages() {
    let cases = || (setups(STORE), conversations());
    hold(40, cases, |(setup, steps)| {
        drive_twice(Plain, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_chat_json() {
    let cases = || (setups(STORE), conversations());
    hold(40, cases, |(setup, steps)| {
        drive_twice(OpenAiChat, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_our_own_messages_in_another_store() {
    let cases = || (setups(OTHER_STORE), conversations());
    hold(10, cases, |(setup, steps)| {
        drive_twice(Plain, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_chat_json_in_another_store() {
    let cases = || (setups(OTHER_STORE), conversations());
    hold(10, cases, |(setup, steps)| {
        drive_twice(OpenAiChat, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_responses_items() {
    let cases = || (setups(STORE), conversations());
    hold(20, cases, |(setup, steps)| {
        drive_twice(Responses, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_anthropic_messages() {
    let cases = || (setups(STORE), conversations());
    hold(20, cases, |(setup, steps)| {
        drive_twice(Anthropic, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_gemini_contents() {
    let cases = || (setups(STORE), conversations());
    hold(20, cases, |(setup, steps)| {
        drive_twice(Gemini, &setup, &steps)
    });
}

#[test]
fn l1_to_l5_hold_for_messages_as_text() {
    let cases = || (setups(STORE), conversations());
    hold(10, cases, |(setup, steps)| {
        drive_twice(OverText(OpenAiChat), &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        drive_twice(OverText(Responses), &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        drive_twice(OverText(Anthropic), &setup, &steps)
    });
    hold(10, cases, |(setup, steps)| {
        drive_twice(OverText(Gemini), &setup, &steps)
    });
}

#[test]
fn l1_imitations_of_hints_are_not_lost() {
    let cases = || (setups(STORE), imitations());
    hold(30, cases, |(setup, steps)| {
        drive_twice(
            Plain,
            &Setup {
                keep: 0,
                threshold: 1,
                ..setup
            },
            &steps,
        )
    });
}
