//! Advice about unknown names in settings.

use super::Settings;

/// Options that are set in code, not in a file.
const CALLBACKS: [&str; 6] = [
    "trunc_handler",
    "clear_handler",
    "trunc_id_with",
    "clear_id_with",
    "clear_post_process",
    "on_report",
];
/// Maximum length in bytes of an unknown word that an error repeats.
const LONGEST_WORD: usize = 24;
/// Minimum likeness (Jaro-Winkler) of a name that an error suggests.
const LIKE: f64 = 0.75;

/// Removes the misplaced string that serde quotes, since it may be a store's URL with a secret.
/// Line and field still identify it.
fn without_value(problem: &str) -> String {
    let quotes = ["invalid type: string \"", "invalid value: string \""];
    let Some(quote) = quotes.into_iter().find(|quote| problem.starts_with(quote)) else {
        return problem.to_owned();
    };
    let expected = problem
        .rsplit_once("\", expected ")
        .map(|(_, expected)| format!(", expected {expected}"));
    format!(
        "{}a string{}",
        quote.trim_end_matches("string \""),
        expected.unwrap_or_default()
    )
}

/// Says in words which type is expected.
fn in_words(problem: &str) -> String {
    let number = "expected a whole number, 0 or more";
    problem
        .replace("expected u64", number)
        .replace("expected usize", number)
        .replace("expected f64", "expected a number")
        .replace("expected a sequence", "expected a list")
}

/// Improves an error of serde about `field`: it lists every known name, but only the nearest one
/// helps. `outermost` says where the options for all tools belong.
pub(super) fn advise(problem: &str, field: &str, outermost: &str) -> String {
    let problem = &*in_words(&without_value(problem));
    let Some((what, known)) = problem.split_once(", expected ") else {
        return problem.to_owned();
    };
    let (Some(kind), Some(unknown)) = (what.strip_prefix("unknown "), quoted(what).next()) else {
        return problem.to_owned();
    };
    let known: Vec<&str> = quoted(known).collect();
    match kind.split(' ').next().unwrap_or_default() {
        "field" => about_field(unknown, &known, field, outermost),
        // There are only a few variants, so list them all.
        "variant" if !known.is_empty() => {
            let unknown = if is_word(unknown) {
                format!(" `{unknown}`")
            } else {
                String::new()
            };
            format!("unknown value{unknown}: use one of {}", known.join(", "))
        }
        _ => problem.to_owned(),
    }
}

/// Names the table that a tool's options belong in, if `problem` is that something else is there.
#[cfg(feature = "toml")]
pub(super) fn name_the_table(problem: &str, field: &str) -> String {
    let tool = field
        .strip_prefix("tool_config.")
        .filter(|tool| is_word(tool));
    match problem.rsplit_once(", expected struct ").zip(tool) {
        Some(((found, _), tool)) => {
            format!("{found}, expected a table, such as [tool_config.{tool}]")
        }
        None => problem.to_owned(),
    }
}

fn about_field(unknown: &str, known: &[&str], field: &str, outermost: &str) -> String {
    if CALLBACKS.contains(&unknown) {
        return "can't be set in a file: set it on the builder".to_owned();
    }
    if let Some(ours) = synonym(unknown, known) {
        return format!("unknown field; it is called `{ours}` here");
    }
    // The options that only the outermost table has.
    let names = Settings::NAMES.iter().map(|(name, _)| *name);
    let of_all: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
    if field.contains('.') && of_all.contains(&unknown) {
        return format!("is for all tools: {outermost}");
    }
    let likeness = |name: &str| strsim::jaro_winkler(unknown, name);
    let nearest = |names: &[&'_ str]| {
        let alike = names
            .iter()
            .map(|name| (likeness(name), (*name).to_owned()));
        let alike = alike.filter(|(likeness, _)| *likeness >= LIKE);
        alike.max_by(|(one, _), (two, _)| one.total_cmp(two))
    };
    let here = nearest(known);
    if field.starts_with("tool_config.") {
        if let Some(ours) = synonym(unknown, &of_all) {
            return format!(
                "unknown field; it is called `{ours}` here, and is for all tools: {outermost}"
            );
        }
        let likeness_here = here.as_ref().map_or(0.0, |(likeness, _)| *likeness);
        if let Some((likeness, ours)) = nearest(&of_all)
            && likeness > likeness_here
        {
            return format!(
                "unknown field; did you mean `{ours}`? It is for all tools: {outermost}"
            );
        }
    }
    here.map_or_else(
        || "unknown field".to_owned(),
        |(_, here)| format!("unknown field; did you mean `{here}`?"),
    )
}

/// Our name for the option that others call `unknown`, if it is one of `known`.
fn synonym(unknown: &str, known: &[&str]) -> Option<&'static str> {
    let same = |(_, theirs): &&(&str, &[&str])| theirs.contains(&unknown);
    let (ours, _) = Settings::NAMES.iter().find(same)?;
    known.contains(ours).then_some(*ours)
}

/// Returns true if `text` may be a misspelt word rather than a URL.
fn is_word(text: &str) -> bool {
    text.len() <= LONGEST_WORD
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// The texts between back ticks.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}
