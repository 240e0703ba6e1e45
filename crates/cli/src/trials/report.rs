//! A trial in words: its plan, and its page.

use std::fmt::Write as _;

use crate::output;
use crate::replay::Prices;
use crate::trials::statistics::Interval;
use crate::trials::{Analysis, Arm, ArmFigures, Design, Plan, Verdict};

/// The plan, as lines for a terminal: what is asked, and how many runs the answer takes.
pub(crate) fn plan_text(plan: &Plan) -> String {
    let design = plan.design;
    let arm = |arm: &Arm| format!("{}: {}", arm.name, shown(&arm.command));
    let [first, second] = plan.arms.each_ref().map(arm);
    let [difference, expected, alpha, power] = in_percent(design);
    let (test, repetitions, tasks) = (&plan.test, plan.repetitions, plan.tasks.len());
    let (runs, needed, of_task) = (plan.runs_of_arm(), design.runs(), design.repetitions(tasks));
    let mut text = format!(
        "Arms      {first}\n          {second}\n\
         Tasks     {tasks}\n\
         Question  do the arms differ in the share of runs that solve their task?\n\
         Test      {test}, at {alpha} %\n\
         To find   {difference} points from {expected} % with a probability of {power} %: {needed} runs of each arm, {of_task} of each task\n\
         Planned   {repetitions} of each task: {runs} runs of each arm, {} in all\n",
        runs * 2,
    );
    if runs < needed {
        let finds = match design.found_by(runs) {
            Some(difference) => format!("differences of {} points and more", percent(difference)),
            None => "no difference that is possible".to_owned(),
        };
        let _ = writeln!(
            text,
            "          With so few, it finds {finds} with that probability"
        );
    }
    text
}

/// The page of a trial, in Markdown.
pub(crate) fn markdown(plan: &Plan, analysis: &Analysis, prices: Option<&Prices>) -> String {
    let [first, second] = plan.arms.each_ref().map(|arm| &arm.name);
    let mut page = format!(
        "# Trial of {first} and {second}\n\n{}\n\n{}## Tasks\n\n| task | {first} | {second} |\n|---|---|---|\n",
        answer(plan, analysis),
        table(plan, analysis, prices),
    );
    for task in &analysis.tasks {
        let [(first, of_first), (second, of_second)] = task.solved;
        let _ = writeln!(
            page,
            "| {} | {first} of {of_first} | {second} of {of_second} |",
            shown(&task.name)
        );
    }
    let _ = write!(
        page,
        "\n## Plan\n\n```text\n{}Seed      {}\n",
        plan_text(plan),
        plan.seed
    );
    if let Some(prices) = prices
        && let (Some(output), Some(money)) = (prices.output, prices.money())
    {
        let [currency, source, date] = money.map(shown);
        let _ = writeln!(
            page,
            "Prices    {} input, {} cached, {} written, {output} output: {currency} for a million tokens,\n          {source} of {date}",
            prices.fresh,
            prices.cached,
            prices.written.unwrap_or(prices.fresh),
        );
    }
    page + "```\n"
}

/// The answer in one paragraph.
fn answer(plan: &Plan, analysis: &Analysis) -> String {
    let [first, second] = plan.arms.each_ref().map(|arm| &arm.name);
    let Some(solved) = analysis.solved else {
        return format!(
            "No run of {} of both arms is recorded yet.",
            analysis.planned
        );
    };
    let Interval { value, low, high } = solved.interval;
    let [value, low, high] = [value, low, high].map(|share| format!("{:+.1}", share * 100.0));
    let confidence = percent(1.0 - plan.design.alpha);
    let difference = format!(
        "{second} solves {value} points more than {first} ({low} to {high}, {confidence} % confidence"
    );
    let p = solved.p.map_or(String::new(), |p| format!(", p = {p:.4}"));
    match analysis.verdict {
        Verdict::Unfinished => format!(
            "Unfinished: {} of {} runs. {difference}), so far. The test waits for the last run, because a look after each would find \
             differences that do not exist.",
            analysis.made, analysis.planned
        ),
        Verdict::FirstSolvesMore => format!("**{first} solves more.** {difference}{p})."),
        Verdict::SecondSolvesMore => format!("**{second} solves more.** {difference}{p})."),
        Verdict::NoneFound => format!(
            "**No difference was found.** {difference}{p}). {} It does not prove that there is none: the interval says what is still possible.",
            match plan.design.found_by(plan.runs_of_arm()) {
                Some(found) => {
                    let [_, expected, _, power] = in_percent(plan.design);
                    let found = percent(found);
                    format!(
                        "This trial finds {found} points from {expected} % with a probability of {power} %."
                    )
                }
                None => "This trial is too small to find any difference as surely as was asked."
                    .to_owned(),
            }
        ),
    }
}

fn table(plan: &Plan, analysis: &Analysis, prices: Option<&Prices>) -> String {
    let row = |name: &str, cell: &dyn Fn(&ArmFigures) -> Option<String>| {
        let cell = |arm| cell(arm).unwrap_or("–".to_owned());
        let [first, second] = analysis.arms.each_ref().map(cell);
        format!("| {name} | {first} | {second} |\n")
    };
    let whole = |number: u64| Some(number.to_string());
    let places = |number: Option<f64>, places: usize| Some(format!("{:.places$}", number?));
    let [first, second] = plan.arms.each_ref().map(|arm| &arm.name);
    let mut text = format!("| | {first} | {second} |\n|---|---|---|\n");
    text += &row("runs", &|arm| whole(arm.runs));
    text += &row("solved", &|arm| whole(arm.solved));
    text += &row("share that is solved", &|arm| {
        let Interval { value, low, high } = arm.share?;
        let [value, low, high] = [value, low, high].map(tenth);
        Some(format!("{value} % ({low} to {high})"))
    });
    text += &row("ended for taking too long", &|arm| whole(arm.over_time));
    text += &row("agent ended with an error", &|arm| whole(arm.failed_agents));
    text += &row("counted by the provider", &|arm| whole(arm.counted));
    if let Some([currency, ..]) = prices.and_then(Prices::money) {
        let money = shown(currency);
        text += &row(&format!("{money}, all runs"), &|arm| places(arm.money, 4));
        let of_solved = format!("**{money} for each solved task**");
        text += &row(&of_solved, &|arm| places(arm.per_solved, 4));
        text += &row(&format!("{money} for each run"), &|arm| {
            places(arm.means.money, 4)
        });
    }
    text += &row("model calls for each run", &|arm| {
        places(arm.means.calls, 2)
    });
    let input = "input tokens, cached ones too, for each run";
    text += &row(input, &|arm| places(arm.means.input, 0));
    text += &row("output tokens for each run", &|arm| {
        places(arm.means.output, 0)
    });
    text += &row("seconds for each run", &|arm| places(arm.means.seconds, 2));
    text + "\n"
}

/// Difference, expected share, alpha and power in percent.
fn in_percent(design: Design) -> [String; 4] {
    let Design {
        difference,
        expected,
        alpha,
        power,
    } = design;
    [difference, expected, alpha, power].map(percent)
}

fn percent(share: f64) -> String {
    let text = format!("{:.1}", share * 100.0);
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn tenth(share: f64) -> String {
    format!("{:.1}", share * 100.0)
}

/// A name or command on one line, so that it can't break a table or a terminal.
fn shown(text: &str) -> String {
    let plain = output::visible(text);
    plain.replace('|', "\\|").replace("```", "'''")
}
