//! Streams over a store that fails at any point (L1, L12, T8, T12).

use offcut::backend::ErrorKind;
use offcut::hint::Hint;
use offcut::report::Outcome;
use offcut::{Chunk, OnOffloadError, Part};
use offcut_testkit::{Fault, Faulty};
use proptest::prelude::{Just, Strategy, prop_oneof};

use super::super::{STORE, Violation, block_on, hold, require};
use super::{Case, cases};

/// The failing store call, and the way it fails.
#[derive(Clone, Copy, Debug)]
struct Failure {
    call: Call,
    nth: u64,
    fault: Fault,
    then: OnOffloadError,
}

#[derive(Clone, Copy, Debug)]
enum Call {
    Write,
    Chunk,
    Read,
}

fn failures() -> impl Strategy<Value = Failure> {
    let call = prop_oneof![1 => Just(Call::Write), 2 => Just(Call::Chunk), 1 => Just(Call::Read)];
    let fault =
        prop_oneof![2 => Just(Fault::Fail(ErrorKind::Full)), 1 => Just(Fault::ApplyThenFail)];
    let then = prop_oneof![
        2 => Just(OnOffloadError::KeepOriginal),
        1 => Just(OnOffloadError::PreviewOnly),
        1 => Just(OnOffloadError::Fail)
    ];
    (call, prop_oneof![1_u64..3, 1_u64..40], fault, then).prop_map(|(call, nth, fault, then)| {
        Failure {
            call,
            nth,
            fault,
            then,
        }
    })
}

/// Checks that all shown parts are the tool's own, or hints that are true.
async fn a_failing_store_loses_nothing_in_silence(
    case: Case,
    failure: Failure,
) -> Result<(), Violation> {
    let mut originals = case.output(case.whole()).into_parts().await.0;
    originals.push(Part::Text(String::new()));
    // The texts of a long stream are one.
    let joined = case.texts().join(&b"\n"[..]);
    let joined = case.output(vec![Chunk::Bytes(joined.into())]);
    originals.extend(joined.into_parts().await.0);
    let home = STORE();
    let store = Faulty::new(home.open("t"));
    let reduction = case.reduction(store.clone(), failure.then);
    match failure.call {
        Call::Write => store.fault_on_write(failure.nth, failure.fault),
        Call::Chunk => store.fault_on_chunk(failure.nth, failure.fault),
        Call::Read => store.fault_on_read(failure.nth, failure.fault),
    };
    let output = case.output(case.cut(&case.chunks));
    let shown = reduction.truncate(&case.call(), output).await;
    store.heal();
    let Ok(shown) = shown else {
        return require(failure.then == OnOffloadError::Fail, "T8", || {
            "it failed".into()
        });
    };
    require(shown.interrupted.is_some() == case.breaks_off, "T8", || {
        format!("the tool's error became {:?}", shown.interrupted)
    })?;
    let decision = &shown.report.decisions[0];
    let mut lost = Vec::new();
    for part in shown.parts {
        if originals.contains(&part) {
            continue;
        }
        let Part::Text(text) = &part else {
            return Err(Violation::new("L1", format!("{part:?} was made up")));
        };
        let Some(hint) = Hint::parse(text) else {
            return Err(Violation::new(
                "L1",
                format!("{text:?} is no hint and was no text"),
            ));
        };
        let Some(location) = &hint.location else {
            lost.push(hint.bytes);
            continue;
        };
        let stored = reduction.read_original(location).await.unwrap().unwrap();
        require(stored.len() as u64 == hint.bytes, "L1", || {
            format!("{} bytes are at {hint:?}", stored.len())
        })?;
        require(decision.locations.contains(location), "L12", || {
            format!("{location} is not reported")
        })?;
    }
    let is_lost = !lost.is_empty();
    require(
        is_lost == (decision.outcome == Outcome::Lost),
        "L12",
        || format!("it was {:?}", decision.outcome),
    )?;
    let may_lose = match (failure.then, failure.call) {
        (OnOffloadError::PreviewOnly, _) => true,
        (OnOffloadError::KeepOriginal, Call::Chunk) => failure.nth > 1,
        _ => false,
    };
    require(!is_lost || may_lose, "L1", || {
        format!("{lost:?} were lost: {:?}", decision.error)
    })?;
    Ok(())
}

#[test]
fn l1_a_store_that_fails_during_a_stream_loses_nothing_silently() {
    let cases = || (cases(), failures());
    hold(100, cases, |(case, failure)| {
        block_on(a_failing_store_loses_nothing_in_silence(case, failure))
    });
}
