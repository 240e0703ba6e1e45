//! A trial in words: its plan, and its page.

use std::fmt::Write as _;

use crate::output;
use crate::replay::Prices;
use crate::trials::statistics::Interval;
use crate::trials::{Analysis, Arm, ArmFigures, Plan, Verdict};

/// The plan, as lines for a terminal.
pub(crate) fn plan_text(plan: &Plan) -> String {
    let arm = |arm: &Arm| format!("{}: {}", arm.name, shown(&arm.command));
    let [first, second] = plan.arms.each_ref().map(arm);
    let (test, repetitions, tasks) = (&plan.test, plan.repetitions, plan.tasks.len());
    let runs = plan.runs_of_arm();
    format!(
        "Arms      {first}\n          {second}\n\
         Tasks     {tasks}\n\
         Question  do the arms differ in the share of runs that solve their task?\n\
         Test      {test}\n\
         Planned   {repetitions} of each task: {runs} runs of each arm, {} in all\n",
        runs * 2,
    )
}

/// The page of a trial, in Markdown.
pub(crate) fn markdown(plan: &Plan, analysis: &Analysis, prices: Option<&Prices>) -> String {
    let [first, second] = plan.arms.each_ref().map(|arm| &arm.name);
    let mut page = format!(
        "# Trial of {first} and {second}\n\n{}\n\n| | {first} | {second} |\n|---|---|---|\n",
        answer(plan, analysis),
    );
    for (name, cells) in rows(&analysis.arms, prices) {
        let [first, second] = cells.map(|cell| cell.unwrap_or("–".to_owned()));
        let _ = writeln!(page, "| {name} | {first} | {second} |");
    }
    let _ = write!(
        page,
        "\n## Tasks\n\n| task | {first} | {second} |\n|---|---|---|\n"
    );
    for task in &analysis.tasks {
        let [(first, of_first), (second, of_second)] = task.solved;
        let name = shown(&task.name);
        let _ = writeln!(
            page,
            "| {name} | {first} of {of_first} | {second} of {of_second} |"
        );
    }
    let (text, seed) = (plan_text(plan), plan.seed);
    let _ = write!(page, "\n## Plan\n\n```text\n{text}Seed      {seed}\n");
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
    let (made, planned) = (analysis.made, analysis.planned);
    let Some(solved) = analysis.solved else {
        return format!("No run of {planned} of both arms is recorded yet.");
    };
    let Interval { value, low, high } = solved.interval;
    let [value, low, high] = [value, low, high].map(|share| format!("{:+.1}", share * 100.0));
    let p = solved.p.map_or(String::new(), |p| format!(", p = {p:.4}"));
    let difference = format!(
        "{second} solves {value} points more than {first} ({low} to {high}, 95 % confidence{p})"
    );
    match analysis.verdict {
        Verdict::Unfinished => format!(
            "Unfinished: {made} of {planned} runs. {difference}, so far. The test waits for the last run, because a look after each \
             would find differences that do not exist."
        ),
        Verdict::FirstSolvesMore => format!("**{first} solves more.** {difference}."),
        Verdict::SecondSolvesMore => format!("**{second} solves more.** {difference}."),
        Verdict::NoneFound => format!(
            "**No difference was found.** {difference}. It does not prove that there is none: the interval says what is still possible."
        ),
    }
}

/// The rows of the page's main table: a name, and a cell for each arm.
fn rows(arms: &[ArmFigures; 2], prices: Option<&Prices>) -> Vec<(String, [Option<String>; 2])> {
    let row = |name: &str, cell: &dyn Fn(&ArmFigures) -> Option<String>| {
        (name.to_owned(), arms.each_ref().map(cell))
    };
    let whole = |name: &str, number: fn(&ArmFigures) -> u64| {
        row(name, &|arm| Some(number(arm).to_string()))
    };
    let real = |name: &str, places: usize, number: fn(&ArmFigures) -> Option<f64>| {
        row(name, &|arm| Some(format!("{:.places$}", number(arm)?)))
    };
    let share = |arm: &ArmFigures| {
        let Interval { value, low, high } = arm.share?;
        let [value, low, high] = [value, low, high].map(|share| format!("{:.1}", share * 100.0));
        Some(format!("{value} % ({low} to {high})"))
    };
    let mut rows = vec![
        whole("runs", |arm| arm.runs),
        whole("solved", |arm| arm.solved),
        row("share that is solved", &share),
        whole("ended for taking too long", |arm| arm.over_time),
        whole("agent ended with an error", |arm| arm.failed_agents),
        whole("counted by the provider", |arm| arm.counted),
    ];
    if let Some([currency, ..]) = prices.and_then(Prices::money) {
        let money = shown(currency);
        let of_solved = format!("**{money} for each solved task**");
        rows.extend([
            real(&format!("{money}, all runs"), 4, |arm| arm.money),
            real(&of_solved, 4, |arm| arm.per_solved),
        ]);
    }
    let input = "input tokens, cached ones too, for each run";
    rows.extend([
        real("model calls for each run", 2, |arm| arm.calls),
        real(input, 0, |arm| arm.input),
        real("output tokens for each run", 0, |arm| arm.output),
        real("seconds for each run", 2, |arm| arm.seconds),
    ]);
    rows
}

/// A name or command on one line, so that it can't break a table or a terminal.
fn shown(text: &str) -> String {
    let plain = output::visible(text);
    plain.replace('|', "\\|").replace("```", "'''")
}
