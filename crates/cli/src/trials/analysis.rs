//! The outcome of a trial.

use serde::Serialize;

use crate::replay::Prices;
use crate::trials::statistics::{ALPHA, Interval, difference, exact_p, share};
use crate::trials::{Plan, Record, Usage};

/// All that a trial's runs say.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Analysis {
    /// Runs that were made.
    pub(crate) made: u64,
    /// Runs that were planned.
    pub(crate) planned: u64,
    /// The answer to the main question.
    pub(crate) verdict: Verdict,
    /// Both arms, in the plan's order.
    pub(crate) arms: [ArmFigures; 2],
    /// Solved runs: the second arm's share less the first's.
    pub(crate) solved: Option<Compared>,
    /// Each task.
    pub(crate) tasks: Vec<TaskFigures>,
}

/// The answer to the main question: do the arms differ in what they solve?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    /// Runs are missing. A test after each run would find differences that do not exist.
    Unfinished,
    /// The first arm solves more.
    FirstSolvesMore,
    /// The second arm solves more.
    SecondSolvesMore,
    /// No difference was found.
    NoneFound,
}

/// The shares of solved runs, compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Compared {
    /// The difference with its interval.
    #[serde(flatten)]
    pub(crate) interval: Interval,
    /// The p-value of the test, once all runs are made.
    pub(crate) p: Option<f64>,
}

/// Figures of one arm.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ArmFigures {
    /// Name of the arm.
    pub(crate) name: String,
    /// Runs that were made.
    pub(crate) runs: u64,
    /// Runs that solved their task.
    pub(crate) solved: u64,
    /// The share of solved runs.
    pub(crate) share: Option<Interval>,
    /// Runs whose agent was ended because it took too long.
    pub(crate) over_time: u64,
    /// Runs whose agent ended with another exit code than 0.
    pub(crate) failed_agents: u64,
    /// Runs with a provider's count of tokens.
    pub(crate) counted: u64,
    /// Money of all runs, if there are prices and every run was counted.
    pub(crate) money: Option<f64>,
    /// Money for each solved task.
    pub(crate) per_solved: Option<f64>,
    /// Means per run of model calls, input tokens with cached ones, output tokens, and seconds. `None` without a run, or
    /// where not every run was counted.
    pub(crate) calls: Option<f64>,
    pub(crate) input: Option<f64>,
    pub(crate) output: Option<f64>,
    pub(crate) seconds: Option<f64>,
}

/// One task under both arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TaskFigures {
    /// Name of the task.
    pub(crate) name: String,
    /// Runs that solved it, and all runs, by arm.
    pub(crate) solved: [(u64, u64); 2],
}

impl Analysis {
    /// Analyses the runs of a plan.
    pub(crate) fn new(plan: &Plan, records: &[Record], prices: Option<&Prices>) -> Self {
        let tasks = plan.tasks.iter().map(|task| TaskFigures {
            name: task.name.clone(),
            solved: [(0, 0); 2],
        });
        let mut tasks: Vec<TaskFigures> = tasks.collect();
        for record in records {
            let (solved, all) = &mut tasks[record.run.task].solved[record.run.arm];
            *solved += u64::from(record.solved);
            *all += 1;
        }
        let arms = [0, 1].map(|arm| arm_figures(plan, records, prices, arm));
        let (made, planned) = (records.len() as u64, plan.runs_of_arm() * 2);
        let shares = arms[0].share.zip(arms[1].share);
        let solved = shares.map(|(first, second)| Compared {
            interval: difference(first, second),
            p: (made == planned).then(|| exact_p(tasks.iter().map(|task| task.solved))),
        });
        let verdict = match solved.and_then(|solved| Some((solved.p?, solved.interval.value))) {
            None => Verdict::Unfinished,
            Some((p, _)) if p > ALPHA => Verdict::NoneFound,
            Some((_, difference)) if difference > 0.0 => Verdict::SecondSolvesMore,
            Some(_) => Verdict::FirstSolvesMore,
        };
        Self {
            made,
            planned,
            verdict,
            arms,
            solved,
            tasks,
        }
    }
}

/// The money for a run's tokens.
fn money(usage: Usage, prices: &Prices) -> Option<f64> {
    let parts = [
        (usage.input, prices.fresh),
        (usage.cached, prices.cached),
        (usage.written, prices.written.unwrap_or(prices.fresh)),
        (usage.output, prices.output?),
    ];
    let millionths = parts.map(|(tokens, price)| tokens as f64 * price);
    Some(millionths.iter().sum::<f64>() / 1e6)
}

fn arm_figures(plan: &Plan, records: &[Record], prices: Option<&Prices>, arm: usize) -> ArmFigures {
    let runs: Vec<&Record> = records.iter().filter(|one| one.run.arm == arm).collect();
    let all = runs.len() as u64;
    let count = |is: &dyn Fn(&Record) -> bool| runs.iter().filter(|run| is(run)).count() as u64;
    let sum = |value: &dyn Fn(&Record) -> Option<f64>| {
        let sum = runs.iter().map(|run| value(run)).sum::<Option<f64>>();
        sum.filter(|_| all > 0)
    };
    let mean = |value: &dyn Fn(&Record) -> Option<f64>| Some(sum(value)? / all as f64);
    let solved = count(&|run| run.solved);
    let money = sum(&|run| money(run.usage?, prices?));
    ArmFigures {
        name: plan.arms[arm].name.clone(),
        runs: all,
        solved,
        share: share(all, solved),
        over_time: count(&|run| run.over_time),
        failed_agents: count(&|run| run.exit.is_some_and(|code| code != 0)),
        counted: count(&|run| run.usage.is_some()),
        money,
        per_solved: money
            .filter(|_| solved > 0)
            .map(|money| money / solved as f64),
        calls: mean(&|run| Some(run.usage?.calls? as f64)),
        input: mean(&|run| Some(run.usage?.all_input() as f64)),
        output: mean(&|run| Some(run.usage?.output as f64)),
        seconds: mean(&|run| Some(run.seconds)),
    }
}
