//! A trial in words: its plan, and its page.

use std::fmt::Write as _;

use serde_json::Value;

use crate::output;
use crate::replay::Prices;
use crate::trials::statistics::Interval;
use crate::trials::{Analysis, Arm, Plan, Verdict};

/// The rows of the page's main table: an arm's figure, its title with the currency as `$`, and its decimal places.
const ROWS: [(&str, &str, usize); 12] = [
    ("runs", "runs", 0),
    ("solved", "solved", 0),
    ("share", "share that is solved", 1),
    ("over_time", "ended for taking too long", 0),
    ("failed_agents", "agent ended with an error", 0),
    ("counted", "counted by the provider", 0),
    ("money", "$, all runs", 4),
    ("per_solved", "**$ for each solved task**", 4),
    ("calls", "model calls for each run", 2),
    ("input", "input tokens, cached ones too, for each run", 0),
    ("output", "output tokens for each run", 0),
    ("seconds", "seconds for each run", 2),
];

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
    let currency = prices
        .and_then(Prices::money)
        .map(|[currency, ..]| shown(currency));
    for (figure, title, places) in ROWS {
        if title.contains('$') && currency.is_none() {
            continue;
        }
        let title = title.replace('$', currency.as_deref().unwrap_or_default());
        let [first, second] = analysis
            .arms
            .each_ref()
            .map(|arm| cell(&arm[figure], places));
        let _ = writeln!(page, "| {title} | {first} | {second} |");
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
    let is_found = analysis.verdict != Verdict::NoneFound;
    let is_outside = solved.interval.low > 0.0 || solved.interval.high < 0.0;
    let decides = match is_found == is_outside {
        true => "",
        false => " The test decides: the interval takes all runs for one sample.",
    };
    match analysis.verdict {
        Verdict::Unfinished => format!(
            "Unfinished: {made} of {planned} runs. {difference}, so far. The test waits for the last run, because a look after each \
             would find differences that do not exist."
        ),
        Verdict::FirstSolvesMore => format!("**{first} solves more.** {difference}.{decides}"),
        Verdict::SecondSolvesMore => format!("**{second} solves more.** {difference}.{decides}"),
        Verdict::NoneFound => format!(
            "**No difference was found.** {difference}.{decides} It does not prove that there is none: the interval says what is still possible."
        ),
    }
}

/// A number with so many decimal places, or a share with its interval in percent.
fn cell(figure: &Value, places: usize) -> String {
    let share = ["value", "low", "high"].map(|bound| figure[bound].as_f64());
    match (figure.as_f64(), share) {
        (Some(number), _) => format!("{number:.places$}"),
        (None, [Some(value), Some(low), Some(high)]) => {
            let [value, low, high] = [value, low, high].map(|share| share * 100.0);
            format!("{value:.places$} % ({low:.places$} to {high:.places$})")
        }
        _ => "–".to_owned(),
    }
}

/// A name or command on one line, so that it can't break a table or a terminal.
fn shown(text: &str) -> String {
    let plain = output::visible(text);
    plain.replace('|', "\\|").replace("```", "'''")
}
