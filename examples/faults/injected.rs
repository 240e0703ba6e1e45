//! Store calls that fail at random, by `testkit::Faulty`: before or after taking effect, or never
//! end.

use std::collections::BTreeMap;
use std::time::Duration;

use offcut::backend::{Backend, ErrorKind};
use offcut::{OnOffloadError, ToolReduction};
use offcut_testkit::{Fault, Faulty};

use crate::conversation::{Call, Conversation, Script, reduction, verify_all};
use crate::log;
use crate::originals::{Numbers, Originals};
use crate::result::Result;
use crate::tally::Tally;

/// Number of results in a conversation.
const STEPS: u64 = 50;
/// Upper bound on the calls of each kind (writes, chunks, reads) for one result.
const CALLS: u64 = 30;
/// Time that the loop waits for a store that hangs.
const PATIENCE: Duration = Duration::from_millis(30);

/// Planned faults, by the number of the call that meets them.
#[derive(Debug, Default)]
struct Schedule {
    writes: BTreeMap<u64, Fault>,
    chunks: BTreeMap<u64, Fault>,
    reads: BTreeMap<u64, Fault>,
}

impl Schedule {
    /// Plans faults for `rate` of the calls that `results` results make.
    fn random<B: Backend>(
        store: &Faulty<B>,
        results: u64,
        rate: f64,
        numbers: &mut Numbers,
    ) -> Self {
        let mut schedule = Self::default();
        for call in 1..=results * CALLS {
            for (cues, fault) in [
                (&mut schedule.writes, fault as fn(&mut Numbers) -> Fault),
                (&mut schedule.chunks, fault),
                (&mut schedule.reads, fault_of_a_read),
            ] {
                if numbers.chance(rate) {
                    cues.insert(call, fault(numbers));
                }
            }
        }
        schedule
            .writes
            .iter()
            .for_each(|(call, fault)| _ = store.fault_on_write(*call, *fault));
        schedule
            .chunks
            .iter()
            .for_each(|(call, fault)| _ = store.fault_on_chunk(*call, *fault));
        schedule
            .reads
            .iter()
            .for_each(|(call, fault)| _ = store.fault_on_read(*call, *fault));
        schedule
    }

    /// Number of faults met so far.
    fn met<B: Backend>(&self, store: &Faulty<B>) -> u64 {
        let met = |cues: &BTreeMap<u64, Fault>, calls: u64| cues.range(..=calls).count() as u64;
        met(&self.writes, store.writes())
            + met(&self.chunks, store.chunks())
            + met(&self.reads, store.reads())
    }
}

fn fault(numbers: &mut Numbers) -> Fault {
    match numbers.below(20) {
        0..5 => Fault::Fail(ErrorKind::Unavailable),
        5..8 => Fault::Fail(ErrorKind::Full),
        8..11 => Fault::Fail(ErrorKind::Denied),
        11..13 => Fault::Fail(ErrorKind::Other),
        13..18 => Fault::ApplyThenFail,
        18 => Fault::Hang,
        _ => Fault::ApplyThenHang,
    }
}

/// Draws a fault for a read. A read has no effect to apply, and over a missing key it would report
/// that instead of failing.
fn fault_of_a_read(numbers: &mut Numbers) -> Fault {
    match fault(numbers) {
        Fault::ApplyThenFail => Fault::Fail(ErrorKind::Unavailable),
        Fault::ApplyThenHang => Fault::Hang,
        fault => fault,
    }
}

/// Sends `results` results through a store that fails `rate` of its calls.
pub(crate) async fn run(store: impl Backend, results: u64, rate: f64, seed: u64) -> Result<Tally> {
    let originals = Originals { seed };
    let store = Faulty::new(store);
    // On a store failure one loop gets the original back, and the other one tries again.
    let whole = [OnOffloadError::KeepOriginal, OnOffloadError::Fail]
        .map(|on_error| reduction(store.clone(), on_error));
    let whole: Vec<ToolReduction> = whole.into_iter().collect::<Result<_>>()?;
    let schedule = Schedule::random(&store, results, rate, &mut Numbers::new(seed));
    let warned = log::failures();
    let (mut failures, mut conversations) = (0, Vec::new());
    for n in 0..results.div_ceil(STEPS) {
        let session = whole[n as usize % 2].session(&format!("chat-{n}"));
        let script = Script::new(originals, n * STEPS, STEPS.min(results - n * STEPS));
        let mut conversation = Conversation::new(script, Vec::new());
        let mut before = (schedule.met(&store), log::attempts());
        while !conversation.is_over() {
            let is_told = |tally: &mut Tally, call: Call| {
                let now = (schedule.met(&store), log::attempts());
                let (met, tried_again) = (now.0 - before.0, now.1 - before.1);
                before = now;
                // One decision may meet several faults. A call that failed or was given up has
                // already told the loop.
                if met > tried_again && call == (Call::Returned { failures: 0 }) {
                    tally.hidden += 1;
                    tally.problem(format!("{met} faults but nothing in the report"));
                }
            };
            conversation.go_on(&session, PATIENCE, is_told).await?;
        }
        failures += conversation.failures;
        conversations.push((session, conversation));
    }
    let mut all = Tally {
        faults: schedule.met(&store),
        ..Tally::default()
    };
    let warned = log::failures() - warned;
    if warned != failures {
        all.hidden += 1;
        all.problem(format!(
            "{warned} warnings in the log for {failures} failures in reports"
        ));
    }
    store.heal();
    for (session, conversation) in &mut conversations {
        conversation.verify(session).await;
        all += std::mem::take(&mut conversation.tally);
    }
    verify_all(store.inner(), originals, &mut all).await?;
    Ok(all)
}
