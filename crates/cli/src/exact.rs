//! Reads JSON only if nothing gets lost: no duplicate keys, and no numbers with more digits than
//! are kept.

use offcut::json::{JsonText, Kind, Node, View};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads `text`, or describes what can't be read or would be lost, with its place.
pub(crate) fn from_slice<T: DeserializeOwned>(text: &[u8]) -> Result<T, String> {
    let read = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let text = JsonText::parse(String::from_utf8_lossy(text)).map_err(|error| error.to_string())?;
    let doubled = text.doubled_key();
    let doubled = doubled.map(|(key, at)| (format!("the key `{key}` is there twice"), at));
    let long = || {
        let problem = "a number has more digits than can be kept".to_owned();
        Some((problem, long_number(&text, Node::root(&text))?))
    };
    let Some((problem, at)) = doubled.or_else(long) else {
        return Ok(read);
    };
    let before = &text.as_str()[..at];
    let line = before.matches('\n').count() + 1;
    let column = at - before.rfind('\n').map_or(0, |feed| feed + 1) + 1;
    Err(format!("{problem} at line {line} column {column}"))
}

/// The place of the first number in `node` that reading it changes.
fn long_number(text: &JsonText, node: Node<'_>) -> Option<usize> {
    let range = node.range();
    match node.kind() {
        Kind::Number => {
            let number = &text.as_str()[range.clone()];
            let read: Value = serde_json::from_str(number).unwrap_or_default();
            let is_kept = decimal(&read.to_string()) == decimal(number);
            (!is_kept).then_some(range.start)
        }
        Kind::Array => node.items().find_map(|item| long_number(text, item)),
        Kind::Object => node
            .fields()
            .find_map(|(_, value)| long_number(text, value)),
        Kind::Null | Kind::Bool | Kind::String => None,
    }
}

/// Splits a number into its digits, without zeros around them, and the power of ten of its last
/// digit.
fn decimal(number: &str) -> Option<(String, i64)> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{}{fraction}", whole.trim_start_matches('-'));
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return Some((String::new(), 0));
    }
    let power: i64 = exponent.parse().ok()?;
    let power =
        power.checked_add(digits.len() as i64 - kept.len() as i64 - fraction.len() as i64)?;
    Some((kept.trim_start_matches('0').to_owned(), power))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_that_would_lose_something_is_refused() {
        for text in [
            "[0, -0, 1.00, 1E5, 0.1e1, 1e-7, 18446744073709551615, 0.30000000000000004, 1.5e300]",
            r#"{"a\"1e999": "9\\"}"#,
        ] {
            assert_eq!(from_slice::<Value>(text.as_bytes()).err(), None, "{text}");
        }
        for (text, problem) in [
            (
                "[1,\n 123456789012345678901]",
                "a number has more digits than can be kept at line 2 column 2",
            ),
            ("[0.10000000000000000555]", "a number has more digits"),
            ("[1e-400]", "a number has more digits"),
            ("[1e400]", "number out of range"),
            (
                r#"[{"a": 1, "\u0061": 2}]"#,
                "the key `a` is there twice at line 1 column 11",
            ),
            ("[1", "EOF"),
        ] {
            let error = from_slice::<Value>(text.as_bytes()).unwrap_err();
            assert!(error.starts_with(problem), "{text}: {error}");
        }
    }
}
