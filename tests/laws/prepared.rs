//! A prepared pass does what it would have done by itself.

use offcut::format::{Anthropic, OpenAiChat, Plain};

use super::drive::drive;
use super::generate::{Step, conversations, imitations};
use super::subject::OffcutSubject;
use super::wire::Wire;
use super::world::{Setup, World, setups};
use super::{STORE, Violation, block_on, hold, require};

/// Drives one conversation with and without prepared passes.
fn drive_both<F: Wire>(wire: F, setup: &Setup, steps: &[Step]) -> Result<(), Violation> {
    block_on(async {
        let mut done = Vec::new();
        for prepares in [false, true] {
            let subject = OffcutSubject {
                prepares: Some(prepares),
                ..OffcutSubject::new(World::new(setup.clone()))
            };
            let (run, subject) = drive(wire, subject, steps, None).await?;
            let reports = std::mem::take(&mut *subject.reports.lock().unwrap());
            done.push((run.messages, subject.world.stored().await, reports));
        }
        let [alone, prepared] = <[_; 2]>::try_from(done).unwrap();
        require(alone.0 == prepared.0, "L4", || {
            format!(
                "a prepared pass leaves {:#?}, not {:#?}",
                prepared.0, alone.0
            )
        })?;
        require(alone.1 == prepared.1, "L4", || {
            "a prepared pass stores other bytes".into()
        })?;
        let differ = alone
            .2
            .iter()
            .zip(&prepared.2)
            .find(|(one, two)| one != two);
        require(
            differ.is_none() && alone.2.len() == prepared.2.len(),
            "L4",
            || format!("a prepared pass reports something else: {differ:#?}"),
        )
    })
}

#[test]
fn l4_a_prepared_pass_does_the_same_to_our_own_messages() {
    let cases = || (setups(STORE), conversations());
    hold(20, cases, |(setup, steps)| {
        drive_both(Plain, &setup, &steps)
    });
}

#[test]
fn l4_a_prepared_pass_does_the_same_to_chat_json() {
    let cases = || (setups(STORE), conversations());
    hold(10, cases, |(setup, steps)| {
        drive_both(OpenAiChat, &setup, &steps)
    });
}

#[test]
fn l4_a_prepared_pass_does_the_same_to_imitations() {
    let cases = || (setups(STORE), imitations());
    hold(20, cases, |(setup, steps)| {
        drive_both(Anthropic, &setup, &steps)
    });
}
