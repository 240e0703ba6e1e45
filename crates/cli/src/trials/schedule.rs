//! The order of a trial's runs.

use crate::trials::plan::{Plan, Planned};

/// All runs of a plan, in order: each repetition goes once through all tasks in an order of its own, and each task's
/// two arms run one after the other, either first.
///
/// So whatever changes with time, such as a provider's load, affects both arms alike. The order follows from the seed.
pub(crate) fn schedule(plan: &Plan) -> Vec<Planned> {
    let mut random = Random::new(plan.seed);
    let mut runs = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut tasks: Vec<usize> = (0..plan.tasks.len()).collect();
        random.shuffle(&mut tasks);
        for task in tasks {
            let mut arms = [0, 1];
            random.shuffle(&mut arms);
            runs.extend(arms.map(|arm| Planned {
                task,
                arm,
                repetition,
            }));
        }
    }
    runs
}

/// A generator of random numbers from a seed: SplitMix64.
///
/// Written out here, because the order of a trial's runs follows from the seed, and another version of this crate
/// must be able to continue the trial.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next_u64()) * bound as u128;
        (wide >> 64) as usize
    }

    /// Shuffles `items`.
    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_published_generator() {
        // The first outputs for the seed 1234567, from Vigna's reference implementation in C.
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..5).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423,
                4_593_380_528_125_082_431,
                16_408_922_859_458_223_821
            ]
        );
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_reaches_every_order() {
        let mut random = Random::new(7);
        let mut orders = std::collections::BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [1, 2, 3];
            random.shuffle(&mut items);
            *orders.entry(items).or_insert(0) += 1;
        }
        assert_eq!(orders.len(), 6);
        // Five standard deviations around 1 000.
        assert!(
            orders.values().all(|count| (856..=1_144).contains(count)),
            "{orders:?}"
        );
    }
}
