//! L2: deciding changes nothing, storing touches no message, changing messages cannot fail. After
//! an error everything is unchanged, and trying again is safe.

use futures_util::FutureExt;
use offcut::format::Plain;
use offcut_testkit::Fault;
use proptest::prelude::Strategy;

use super::drive::{FaultAt, drive};
use super::generate::{Step, conversations};
use super::subject::{OffcutSubject, Subject};
use super::wire::{Anthropic, Gemini, OpenAiChat, Responses, Wire};
use super::world::{Setup, World, setups};
use super::{OTHER_STORE, STORE, Violation, block_on, hold, require};

/// Number of a conversation's writes that fail in turn, spread over all of them.
const MAX_FAULTS: usize = 8;

async fn fail_every_write<F: Wire>(
    wire: F,
    setup: &Setup,
    steps: &[Step],
) -> Result<(), Violation> {
    let (run, _) = drive(
        wire,
        OffcutSubject::new(World::new(setup.clone())),
        steps,
        None,
    )
    .await?;
    let writes: Vec<(usize, u64)> = run
        .writes
        .iter()
        .enumerate()
        .flat_map(|(step, writes)| (1..=*writes).map(move |nth| (step, nth)))
        .collect();
    let stride = writes.len().div_ceil(MAX_FAULTS).max(1);
    for (step, nth) in writes.into_iter().step_by(stride) {
        for is_done in [false, true] {
            let fault = FaultAt { step, nth, is_done };
            let failed = drive(
                wire,
                OffcutSubject::new(World::new(setup.clone())),
                steps,
                Some(fault),
            )
            .await;
            failed.map_err(|Violation { law, what }| Violation {
                law,
                what: format!("with {fault:?}: {what}"),
            })?;
        }
    }
    Ok(())
}

#[test]
fn l2_a_store_may_fail_at_every_write_of_our_own_messages() {
    let cases = || (setups(STORE), conversations());
    hold(8, cases, |(setup, steps)| {
        block_on(fail_every_write(Plain, &setup, &steps))
    });
}

#[test]
fn l2_a_store_may_fail_at_every_write_of_chat_json() {
    let cases = || (setups(STORE), conversations());
    hold(8, cases, |(setup, steps)| {
        block_on(fail_every_write(OpenAiChat, &setup, &steps))
    });
}

#[test]
fn l2_a_store_may_fail_at_every_write_of_other_wire_formats() {
    let cases = || (setups(STORE), conversations());
    hold(3, cases, |(setup, steps)| {
        block_on(fail_every_write(Responses, &setup, &steps))
    });
    hold(3, cases, |(setup, steps)| {
        block_on(fail_every_write(Anthropic, &setup, &steps))
    });
    hold(3, cases, |(setup, steps)| {
        block_on(fail_every_write(Gemini, &setup, &steps))
    });
}

#[test]
fn l2_another_store_may_fail_at_every_write() {
    let cases = || (setups(OTHER_STORE), conversations());
    hold(2, cases, |(setup, steps)| {
        block_on(fail_every_write(OpenAiChat, &setup, &steps))
    });
}

/// Generates a conversation before its last pass.
fn interrupted() -> impl Strategy<Value = (Setup, Vec<Step>)> {
    let steps = conversations().prop_map(|mut steps| {
        steps.pop();
        steps
    });
    (setups(STORE), steps)
}

/// At each write, drops a pass that hangs there.
async fn drop_at_every_write<F: Wire>(
    wire: F,
    setup: &Setup,
    steps: &[Step],
) -> Result<(), Violation> {
    for nth in 1..=4 {
        for fault in [Fault::Hang, Fault::ApplyThenHang] {
            let (mut run, subject) = drive(
                wire,
                OffcutSubject::new(World::new(setup.clone())),
                steps,
                None,
            )
            .await?;
            let before = run.messages.clone();
            for store in &subject.world.stores {
                store.fault_on_write(store.writes() + nth, fault);
            }
            let hung = subject
                .reduction
                .clear(&wire, &mut run.messages)
                .now_or_never()
                .is_none();
            Subject::<F>::heal(&subject);
            if !hung {
                return Ok(());
            }
            require(run.messages == before, "L2", || {
                "a pass that was dropped changed a message".into()
            })?;
            run.shadow.check_store::<F, OffcutSubject>(&subject).await?;
            super::pass::pass(wire, &subject, &mut run, false).await?;
        }
    }
    Ok(())
}

#[test]
fn l2_a_pass_that_is_dropped_changes_nothing() {
    hold(5, interrupted, |(setup, steps)| {
        block_on(drop_at_every_write(OpenAiChat, &setup, &steps))
    });
}
