//! Tests of the checks: each flaw breaks the expected law, and without a flaw no law is broken.

use std::collections::BTreeMap;

use offcut::format::Plain;
use proptest::prelude::Strategy;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};

use super::drive::{FaultAt, drive};
use super::generate::{Step, simple_conversations};
use super::naive::{Flaw, Naive};
use super::wire::{OpenAiChat, Wire};
use super::{Violation, block_on, cases, hold};

async fn try_all<F: Wire>(wire: F, flaw: Flaw, steps: &[Step]) -> Result<(), Violation> {
    let (run, _) = drive(wire, Naive::new(flaw), steps, None).await?;
    for (step, writes) in run.writes.iter().enumerate() {
        for nth in 1..=*writes {
            for is_done in [false, true] {
                drive(
                    wire,
                    Naive::new(flaw),
                    steps,
                    Some(FaultAt { step, nth, is_done }),
                )
                .await?;
            }
        }
    }
    Ok(())
}

/// Counts the violations of each law over a fixed set of conversations.
fn broken_laws<F: Wire>(wire: F, flaw: Flaw) -> BTreeMap<&'static str, usize> {
    let config = Config {
        rng_seed: RngSeed::Fixed(1),
        ..Config::default()
    };
    let mut runner = TestRunner::new(config);
    let conversations = simple_conversations().boxed();
    let mut found = BTreeMap::new();
    for _ in 0..60 {
        let steps = conversations.new_tree(&mut runner).unwrap().current();
        if let Err(violation) = block_on(try_all(wire, flaw, &steps)) {
            *found.entry(violation.law).or_default() += 1;
        }
    }
    found
}

fn assert_caught(flaw: Flaw, law: &str, others: &[&str]) {
    for found in [broken_laws(Plain, flaw), broken_laws(OpenAiChat, flaw)] {
        assert!(
            found.get(law).is_some_and(|times| *times > 5),
            "{flaw:?} was hardly caught by {law}: {found:?}"
        );
        assert!(
            found
                .keys()
                .all(|found| *found == law || others.contains(found)),
            "{flaw:?}: {found:?}"
        );
    }
}

#[test]
fn a_flawless_report_has_no_problems() {
    hold(5, simple_conversations, |steps| {
        block_on(try_all(Plain, Flaw::None, &steps))
    });
    hold(5, simple_conversations, |steps| {
        block_on(try_all(OpenAiChat, Flaw::None, &steps))
    });
    assert!(cases(5) > 0);
}

#[test]
fn l1_finds_hints_that_are_stored_as_originals() {
    // Each pass differs from the one before, so L4 may be the first to report it.
    assert_caught(Flaw::StoresHints, "L1", &["L4"]);
}

#[test]
fn l1_finds_content_that_is_overwritten() {
    assert_caught(Flaw::Overwrites, "L1", &[]);
}

#[test]
fn l1_finds_content_that_was_never_stored() {
    assert_caught(Flaw::Forgets, "L1", &[]);
}

#[test]
fn l1_finds_content_that_was_cut_short() {
    assert_caught(Flaw::CutsShort, "L1", &[]);
}

#[test]
fn l2_finds_messages_that_are_changed_before_the_write() {
    assert_caught(Flaw::ChangesFirst, "L2", &[]);
}

#[test]
fn l3_finds_results_that_grow() {
    assert_caught(Flaw::Grows, "L3", &[]);
}

#[test]
fn l4_finds_hints_that_differ_from_pass_to_pass() {
    assert_caught(Flaw::Restless, "L4", &["L3"]);
}

#[test]
fn l5_finds_fields_that_are_dropped() {
    assert_caught(Flaw::DropsFields, "L5", &[]);
}

#[test]
fn l5_finds_pairs_that_are_broken() {
    assert_caught(Flaw::BreaksPairs, "L5", &[]);
}

#[test]
fn l6_finds_ids_that_are_paths() {
    assert_caught(Flaw::IdIsPath, "L6", &["L3"]);
}
