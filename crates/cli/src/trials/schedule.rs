//! The order of a trial's runs.

use crate::trials::{Plan, Random};

/// A run that is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Planned {
    /// Index of the task.
    pub(crate) task: usize,
    /// Index of the arm.
    pub(crate) arm: usize,
    /// The repetition, from 0.
    pub(crate) repetition: u64,
}

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
