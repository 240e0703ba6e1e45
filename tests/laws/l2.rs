//! L2: deciding changes nothing, storing touches no message, changing messages cannot fail. After
//! an error everything is unchanged, and trying again is safe.

use futures_util::FutureExt;
use offcut::Turn;
use offcut::format::{Anthropic, Gemini, Messages, OpenAiChat, Plain, Responses};
use offcut::report::{Outcome, Reason};
use offcut_testkit::Fault;
use proptest::collection::vec;
use proptest::prelude::{Strategy, any};

use super::drive::{FaultAt, drive};
use super::generate::{Step, conversations};
use super::shadow::Shadow;
use super::subject::{OffcutSubject, Subject};
use super::wire::Wire;
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

/// Generates a conversation before its last pass, and the changes made between plan and apply.
fn interrupted() -> impl Strategy<Value = (Setup, Vec<Step>, Vec<u8>, Meanwhile)> {
    let steps = conversations().prop_map(|mut steps| {
        steps.pop();
        steps
    });
    let meanwhile = (0_u8..4).prop_map(|which| match which {
        0 => Meanwhile::Nothing,
        1 => Meanwhile::Inserted,
        2 => Meanwhile::Removed,
        _ => Meanwhile::Reversed,
    });
    (setups(STORE), steps, vec(any::<u8>(), 8), meanwhile)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    Inserted,
    Removed,
    Reversed,
}

async fn change_meanwhile<F: Wire>(
    wire: F,
    (setup, steps, mask, meanwhile): (Setup, Vec<Step>, Vec<u8>, Meanwhile),
) -> Result<(), Violation> {
    let (run, subject) = drive(wire, OffcutSubject::new(World::new(setup)), &steps, None).await?;
    let (before, stored, writes) = (
        run.messages.clone(),
        subject.world.stored().await,
        Subject::<F>::writes(&subject),
    );
    let mut messages = run.messages;

    let plan = subject
        .reduction
        .plan(&Turn::new(&mut Messages::new(&wire, &mut messages)));
    require(messages == before, "L2", || {
        "planning changed a message".into()
    })?;
    require(Subject::<F>::writes(&subject) == writes, "L2", || {
        "planning stored something".into()
    })?;
    require(subject.world.stored().await == stored, "L2", || {
        "planning changed the store".into()
    })?;
    let committed = plan
        .commit()
        .await
        .map_err(|why| Violation::new("L2", format!("commit failed: {why}")))?;

    let mut is_changed: Vec<bool> = (0..messages.len())
        .map(|at| mask[at % mask.len()] % 4 == 0)
        .collect();
    for (message, is_changed) in messages.iter_mut().zip(&is_changed) {
        if *is_changed {
            for call in 0..8 {
                let other = "something else that is not short, but was never stored. ".repeat(9);
                wire.replace_result(message, call, vec![other.into()]);
                wire.replace_arguments(
                    message,
                    call,
                    format!("{{\"other\":\"{}\"}}", "y".repeat(400)),
                );
            }
        }
    }
    match meanwhile {
        Meanwhile::Nothing => {}
        Meanwhile::Inserted => {
            messages.insert(0, before[0].clone());
            is_changed.insert(0, false);
        }
        Meanwhile::Removed => messages.truncate(messages.len() / 2),
        Meanwhile::Reversed => {
            messages.reverse();
            is_changed.reverse();
        }
    }
    let mut shadow = Shadow::default();
    for (at, message) in messages.iter().enumerate() {
        shadow.append(wire, at, message, None);
    }
    let then = messages.clone();
    let report = committed.apply(&mut Messages::new(&wire, &mut messages));
    shadow.check(wire, &subject, &messages).await?;
    let changed = super::valid::changed(wire, &then, &messages)?;
    let said: std::collections::BTreeSet<usize> = report
        .decisions
        .iter()
        .filter(|d| d.outcome.is_change())
        .filter_map(|d| d.message)
        .collect();
    require(said == changed, "L12", || {
        format!("said to be changed: {said:?}; changed: {changed:?}")
    })?;
    let kept = |at: usize| !changed.contains(&at) || !is_changed[at];
    require((0..messages.len()).all(kept), "L2", || {
        format!("of {is_changed:?}, {changed:?} were changed all the same")
    })?;
    if meanwhile == Meanwhile::Nothing {
        let left = report
            .decisions
            .iter()
            .filter(|d| d.outcome == Outcome::Kept(Reason::ChangedMeanwhile));
        let is_right = left.filter_map(|d| d.message).all(|at| is_changed[at]);
        require(is_right, "L2", || {
            "what nobody changed is reported as changed meanwhile".into()
        })?;
    }
    let total = |messages: &[F::Message]| {
        messages
            .iter()
            .map(|m| Subject::<F>::count(&subject, m))
            .sum::<u64>()
    };
    require(
        report.cleared_input_tokens() == total(&then) - total(&messages),
        "L12",
        || "the sum is not exact".into(),
    )
}

#[test]
fn l2_slots_that_changed_are_left_alone_in_our_own_messages() {
    hold(15, interrupted, |case| {
        block_on(change_meanwhile(Plain, case))
    });
}

#[test]
fn l2_slots_that_changed_are_left_alone_in_chat_json() {
    hold(15, interrupted, |case| {
        block_on(change_meanwhile(OpenAiChat, case))
    });
}

#[test]
fn l2_slots_that_changed_are_left_alone_in_other_wire_formats() {
    hold(5, interrupted, |case| {
        block_on(change_meanwhile(Responses, case))
    });
    hold(5, interrupted, |case| {
        block_on(change_meanwhile(Anthropic, case))
    });
    hold(5, interrupted, |case| {
        block_on(change_meanwhile(Gemini, case))
    });
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
    hold(5, interrupted, |(setup, steps, ..)| {
        block_on(drop_at_every_write(OpenAiChat, &setup, &steps))
    });
}
