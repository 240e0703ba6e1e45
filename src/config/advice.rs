//! Advice about unknown names in settings.

use super::Settings;

/// Maximum length in bytes of an unknown word that an error repeats.
const LONGEST_WORD: usize = 24;
/// Minimum likeness (Jaro-Winkler) of a name that an error suggests.
const LIKE: f64 = 0.75;

/// Removes the misplaced string that serde quotes, since it may be a store's URL with a secret.
/// Line and field still identify it.
fn without_value(problem: &str) -> String {
    let Some((kind @ ("invalid type" | "invalid value"), quoted)) =
        problem.split_once(": string \"")
    else {
        return problem.to_owned();
    };
    let expected = quoted.rsplit_once("\", expected ");
    let expected = expected.map(|(_, expected)| format!(", expected {expected}"));
    format!("{kind}: a string{}", expected.unwrap_or_default())
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

fn about_field(unknown: &str, known: &[&str], field: &str, outermost: &str) -> String {
    let is_here = |name: &str| known.contains(&name);
    // Options for all tools end up below the header of a table by mistake.
    let ours = || {
        Settings::NAMES
            .iter()
            .filter(|(name, _)| field.contains('.') || is_here(name))
    };
    let synonym = ours().find(|(_, theirs)| theirs.contains(&unknown));
    let likeness = |name: &str| strsim::jaro_winkler(unknown, name);
    let names = ours().map(|(name, _)| *name).chain(known.iter().copied());
    let alike = names.filter(|name| likeness(name) >= LIKE);
    let nearest = alike.max_by(|one, two| likeness(one).total_cmp(&likeness(two)));
    let Some(name) = synonym.map(|(ours, _)| *ours).or(nearest) else {
        return "unknown field".to_owned();
    };
    let place = match is_here(name) {
        true => String::new(),
        false => format!("; it is for all tools: {outermost}"),
    };
    match synonym {
        Some(_) => format!("unknown field; it is called `{name}` here{place}"),
        None if name == unknown => format!("is for all tools: {outermost}"),
        None => format!(
            "unknown field; did you mean `{name}`?{}",
            place.replacen("; it", " It", 1)
        ),
    }
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
