//! The outcome of a trial.

use serde::Serialize;

use crate::trials::statistics::{
    Interval, MeanDifference, Outcomes, difference, exact_p, mean_difference, share,
};
use crate::trials::{Plan, PlannedTask, Prices, Random, Record};

/// Number of resamples for an interval of money per solved task.
const RESAMPLES: usize = 2_000;

/// All that a trial's runs say.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Runs that were made.
    pub made: u64,
    /// Runs that were planned.
    pub planned: u64,
    /// The answer to the main question.
    pub verdict: Verdict,
    /// Both arms, in the plan's order.
    pub arms: [ArmFigures; 2],
    /// Solved runs: the second arm's share less the first's.
    pub solved: Option<Compared>,
    /// The second arm's means less the first's.
    pub means: Means,
    /// Each task.
    pub tasks: Vec<TaskFigures>,
}

/// The answer to the main question: do the arms differ in what they solve?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
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
pub struct Compared {
    /// The difference with its interval.
    #[serde(flatten)]
    pub interval: Interval,
    /// The p-value of the plan's test, once all runs are made.
    pub p: Option<f64>,
}

/// Figures of one arm.
#[derive(Clone, Debug, Serialize)]
pub struct ArmFigures {
    /// Name of the arm.
    pub name: String,
    /// Runs that were made.
    pub runs: u64,
    /// Runs that solved their task.
    pub solved: u64,
    /// The share of solved runs.
    pub share: Option<Interval>,
    /// Runs whose agent was ended because it took too long.
    pub over_time: u64,
    /// Runs whose agent ended with another exit code than 0.
    pub failed_agents: u64,
    /// Runs with a provider's count of tokens.
    pub counted: u64,
    /// Money of all runs, if there are prices and every run was counted.
    pub money: Option<f64>,
    /// Money for each solved task.
    pub per_solved: Option<PerSolved>,
}

/// Money of all runs for each that solved its task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PerSolved {
    /// Money for each solved task.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound. `None` if runs like these may solve nothing.
    pub high: Option<f64>,
}

/// Differences of means per run. `None` where not every run was counted, or there are too few.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Means {
    /// Money, by the given prices.
    pub money: Option<MeanDifference>,
    /// Model calls.
    pub calls: Option<MeanDifference>,
    /// Input tokens, cached ones among them.
    pub input: Option<MeanDifference>,
    /// Output tokens.
    pub output: Option<MeanDifference>,
    /// Seconds.
    pub seconds: Option<MeanDifference>,
}

/// One task under both arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskFigures {
    /// Name of the task.
    pub name: String,
    /// Runs that solved it, and all runs, by arm.
    pub solved: [(u64, u64); 2],
}

impl Analysis {
    /// Analyses the runs of a plan.
    #[must_use]
    pub fn new(plan: &Plan, records: &[Record], prices: Option<&Prices>) -> Self {
        let confidence = 1.0 - plan.design.alpha;
        let planned = plan.runs_of_arm() * 2;
        let runs = Runs::new(plan.tasks.len(), records);
        let of_task = |(task, runs): (&PlannedTask, &[Vec<&Record>; 2])| TaskFigures {
            name: task.name.clone(),
            solved: [0, 1].map(|arm: usize| {
                let solved = runs[arm].iter().filter(|run| run.solved).count();
                (solved as u64, runs[arm].len() as u64)
            }),
        };
        let tasks: Vec<TaskFigures> = plan.tasks.iter().zip(&runs.0).map(of_task).collect();
        let arms = [0, 1].map(|arm| arm_figures(plan, &runs, prices, arm));
        let made = records.len() as u64;
        let is_whole = made == planned;
        let solved = arms[0]
            .share
            .zip(arms[1].share)
            .map(|(first, second)| Compared {
                interval: difference(first, second),
                p: is_whole.then(|| exact_p(&outcomes(&tasks))),
            });
        let verdict = match solved.and_then(|solved| Some((solved.p?, solved.interval.value))) {
            None => Verdict::Unfinished,
            Some((p, _)) if p > plan.design.alpha => Verdict::NoneFound,
            Some((_, difference)) if difference > 0.0 => Verdict::SecondSolvesMore,
            Some(_) => Verdict::FirstSolvesMore,
        };
        let means = |value: &dyn Fn(&Record) -> Option<f64>| {
            let both = runs
                .values(0, value)?
                .into_iter()
                .zip(runs.values(1, value)?);
            mean_difference(&both.collect::<Vec<_>>(), confidence)
        };
        let means = Means {
            money: means(&|run| money(run, prices)),
            calls: means(&|run| Some(run.usage?.calls? as f64)),
            input: means(&|run| Some(run.usage?.all_input() as f64)),
            output: means(&|run| Some(run.usage?.output as f64)),
            seconds: means(&|run| Some(run.seconds)),
        };
        Self {
            made,
            planned,
            verdict,
            arms,
            solved,
            means,
            tasks,
        }
    }
}

/// The runs of each task, by arm.
struct Runs<'r>(Vec<[Vec<&'r Record>; 2]>);

impl<'r> Runs<'r> {
    fn new(tasks: usize, records: &'r [Record]) -> Self {
        let mut runs = vec![[Vec::new(), Vec::new()]; tasks];
        for record in records {
            runs[record.task][record.arm].push(record);
        }
        Self(runs)
    }

    /// A value of each run, by task. `None` if a run lacks it.
    fn values<T>(&self, arm: usize, value: impl Fn(&Record) -> Option<T>) -> Option<Vec<Vec<T>>> {
        let of_task = |runs: &[Vec<&Record>; 2]| runs[arm].iter().map(|run| value(run)).collect();
        self.0.iter().map(of_task).collect()
    }
}

fn outcomes(tasks: &[TaskFigures]) -> Vec<Outcomes> {
    let of_task = |task: &TaskFigures| {
        let [first, second] = task.solved.map(|(solved, runs)| (runs, solved));
        Outcomes { first, second }
    };
    tasks.iter().map(of_task).collect()
}

fn money(run: &Record, prices: Option<&Prices>) -> Option<f64> {
    Some(prices?.money(&run.usage?))
}

fn arm_figures(plan: &Plan, runs: &Runs<'_>, prices: Option<&Prices>, arm: usize) -> ArmFigures {
    let all_runs = runs;
    let runs: Vec<&Record> = runs.0.iter().flat_map(|arms| &arms[arm]).copied().collect();
    let count = |is: &dyn Fn(&Record) -> bool| runs.iter().filter(|run| is(run)).count() as u64;
    let solved = count(&|run| run.solved);
    let all = runs.len() as u64;
    ArmFigures {
        name: plan.arms[arm].name.clone(),
        runs: all,
        solved,
        share: share(all, solved, 1.0 - plan.design.alpha),
        over_time: count(&|run| run.over_time),
        failed_agents: count(&|run| run.exit.is_some_and(|code| code != 0)),
        counted: count(&|run| run.usage.is_some()),
        money: runs
            .iter()
            .map(|run| money(run, prices))
            .sum::<Option<f64>>()
            .filter(|_| all > 0),
        per_solved: per_solved(plan, all_runs, prices, arm),
    }
}

/// Money for each solved task, with the percentile interval of resamples: of the runs of each task, or of the tasks
/// if each was run only once.
fn per_solved(
    plan: &Plan,
    runs: &Runs<'_>,
    prices: Option<&Prices>,
    arm: usize,
) -> Option<PerSolved> {
    let mut groups = runs.values(arm, |run| Some((money(run, prices)?, run.solved)))?;
    groups.retain(|runs| !runs.is_empty());
    if groups.iter().all(|runs| runs.len() == 1) {
        groups = vec![groups.concat()];
    }
    let all: Vec<(f64, bool)> = groups.concat();
    let value = each_solved(all.iter().copied())?;
    let mut random = Random::new(plan.seed ^ arm as u64);
    let mut resampled: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut drawn = Vec::with_capacity(all.len());
            for runs in &groups {
                drawn.extend((0..runs.len()).map(|_| runs[random.below(runs.len())]));
            }
            each_solved(drawn.into_iter()).unwrap_or(f64::INFINITY)
        })
        .collect();
    resampled.sort_by(f64::total_cmp);
    let quantile = |share: f64| resampled[((RESAMPLES - 1) as f64 * share).round() as usize];
    Some(PerSolved {
        value,
        low: quantile(plan.design.alpha / 2.0),
        high: Some(quantile(1.0 - plan.design.alpha / 2.0)).filter(|high| high.is_finite()),
    })
}

fn each_solved(runs: impl Iterator<Item = (f64, bool)>) -> Option<f64> {
    let (mut money, mut solved) = (0.0, 0_u64);
    for (of_run, is_solved) in runs {
        money += of_run;
        solved += u64::from(is_solved);
    }
    (solved > 0).then(|| money / solved as f64)
}
