//! The outcome of a trial.

use serde::Serialize;
use serde_json::{Value, json};

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
    /// Figures of both arms, in the plan's order.
    pub(crate) arms: [Value; 2],
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
        let [first, second] = [0, 1].map(|arm| {
            let runs = records.iter().filter(|record| record.run.arm == arm);
            figures(&plan.arms[arm].name, &runs.collect::<Vec<_>>(), prices)
        });
        let (made, planned) = (records.len() as u64, plan.runs_of_arm() * 2);
        let solved = first.0.zip(second.0).map(|(first, second)| Compared {
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
            arms: [first.1, second.1],
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

/// The share that an arm's runs have solved, and all its figures. Those of money and tokens are null unless every run was
/// counted by the provider.
fn figures(name: &str, runs: &[&Record], prices: Option<&Prices>) -> (Option<Interval>, Value) {
    let all = runs.len() as u64;
    let count = |is: &dyn Fn(&Record) -> bool| runs.iter().filter(|run| is(run)).count() as u64;
    let sum = |value: &dyn Fn(&Record) -> Option<f64>| {
        let sum = runs.iter().map(|run| value(run)).sum::<Option<f64>>();
        sum.filter(|_| all > 0)
    };
    let mean = |value: &dyn Fn(&Record) -> Option<f64>| Some(sum(value)? / all as f64);
    let solved = count(&|run| run.solved);
    let money = sum(&|run| money(run.usage?, prices?));
    let share = share(all, solved);
    let figures = json!({
        "name": name,
        "runs": all,
        "solved": solved,
        "share": share,
        "over_time": count(&|run| run.over_time),
        "failed_agents": count(&|run| run.exit.is_some_and(|code| code != 0)),
        "counted": count(&|run| run.usage.is_some()),
        "money": money,
        "per_solved": money.filter(|_| solved > 0).map(|money| money / solved as f64),
        "calls": mean(&|run| Some(run.usage?.calls? as f64)),
        "input": mean(&|run| Some(run.usage?.all_input() as f64)),
        "output": mean(&|run| Some(run.usage?.output as f64)),
        "seconds": mean(&|run| Some(run.seconds)),
    });
    (share, figures)
}
