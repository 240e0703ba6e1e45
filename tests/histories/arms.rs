//! Ways to hand in one history, call by call: always the same process, a new one each time, or
//! replicas in random turn.

use futures_util::StreamExt;
use offcut::ToolReduction;
use offcut::backend::{Backend, Memory};

/// The keys of everything stored.
pub(crate) fn keys(store: &Memory) -> Vec<String> {
    let entries = futures_util::FutureExt::now_or_never(store.list().collect::<Vec<_>>());
    let entries = entries.unwrap().into_iter();
    let mut keys: Vec<_> = entries
        .map(|entry| entry.unwrap().key.to_string())
        .collect();
    keys.sort();
    keys
}

/// Numbers that look random, the same in every run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The processes that answer the calls of one conversation.
pub(crate) enum Arm {
    /// One process.
    One(Vec<ToolReduction>),
    /// A new process for each call.
    New(Box<dyn Fn() -> ToolReduction>),
    /// Several processes in random turn.
    Replicas(Vec<ToolReduction>, Dice),
}

/// The names of all ways, in the order of [`Arm::all`].
pub(crate) const NAMES: [&str; 3] = ["one process", "new processes", "replicas"];

impl Arm {
    /// All ways, each with a store of its own, which `make` opens.
    pub(crate) fn all<B: Backend + Clone>(
        stores: [B; 3],
        make: impl Fn(B) -> ToolReduction + Clone + 'static,
    ) -> [Self; 3] {
        let [one, new, shared] = stores;
        let again = make.clone();
        [
            Self::One(vec![make(one)]),
            Self::New(Box::new(move || again(new.clone()))),
            Self::Replicas((0..3).map(|_| make(shared.clone())).collect(), Dice(7)),
        ]
    }

    /// The process that answers the next call.
    pub(crate) fn next(&mut self) -> ToolReduction {
        match self {
            Self::One(one) => one[0].clone(),
            Self::New(make) => make(),
            Self::Replicas(replicas, dice) => replicas[dice.roll(3)].clone(),
        }
    }
}
