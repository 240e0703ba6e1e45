//! Input tokens that a provider has recorded in a log, beside those that a replay counts.

use serde::Serialize;

use super::card::Card;
use super::replayed::{NONE, Replayed};
use crate::transcript::Recorded;
use crate::units;

/// One log: its provider's count of input tokens, and ours of doing nothing.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LogUsage {
    pub(crate) name: String,
    pub(crate) recorded: Recorded,
    pub(crate) counted: Recorded,
}

impl LogUsage {
    /// Sets the usage of a log beside its transcripts, replayed without a policy.
    pub(super) fn new(name: String, recorded: Recorded, transcripts: &[Replayed]) -> Self {
        let mut counted = Recorded::default();
        for figures in transcripts.iter().map(|one| one.replays[0].figures) {
            counted.calls += figures.model_calls;
            counted.cached += figures.tokens - figures.fresh;
            counted.fresh += figures.fresh;
        }
        Self {
            name,
            recorded,
            counted,
        }
    }
}

/// Compares sums over all logs that have usage. `None` if none has.
pub(crate) fn compared(usage: &[LogUsage], card: Card) -> Option<String> {
    if usage.is_empty() {
        return None;
    }
    let (mut recorded, mut counted) = (Recorded::default(), Recorded::default());
    for one in usage {
        recorded += one.recorded;
        counted += one.counted;
    }
    let in_words = |all: Recorded| {
        format!(
            "{} of input in {}, {:.1} % of it from the cache",
            units::count(all.cached + all.fresh, "token"),
            units::count(all.calls, "call"),
            100.0 * all.cached as f64 / (all.cached + all.fresh).max(1) as f64,
        )
    };
    let bill = |all: Recorded| card.cached * all.cached as f64 + card.fresh * all.fresh as f64;
    Some(format!(
        "Providers recorded {}, in {}; {NONE} has {}. The recorded bill is {:.2} times that of {NONE}: it has instructions, tools and what else the log lacks.",
        in_words(recorded),
        units::count(usage.len() as u64, "log"),
        in_words(counted),
        bill(recorded) / bill(counted).max(1.0),
    ))
}
