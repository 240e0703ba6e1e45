//! Equality of JSON by meaning.

use std::collections::HashMap;

use offcut::json::{Kind, Node, View};

/// Maximum depth that is compared; anything deeper counts as different.
const MAX_DEPTH: usize = 100;
/// Numbers of up to this many bytes are equal if they are equal as `f64`, which holds 15 digits.
const EXACT: usize = 15;

/// Returns true if two documents without duplicate keys mean the same, whatever their whitespace,
/// escapes and order of keys.
pub(crate) fn same(one: Node<'_>, other: Node<'_>) -> bool {
    same_at(one, other, 0)
}

fn same_at(one: Node<'_>, other: Node<'_>, depth: usize) -> bool {
    if one.kind() != other.kind() || depth > MAX_DEPTH {
        return false;
    }
    match one.kind() {
        Kind::Null => true,
        Kind::Bool => one.as_bool() == other.as_bool(),
        Kind::Number => same_number(&one.json().to_string(), &other.json().to_string()),
        Kind::String => one.as_str().is_some() && one.as_str() == other.as_str(),
        Kind::Array => {
            let mut items = one.items().zip(other.items());
            has_count(other.items(), one.items().count())
                && items.all(|(one, other)| same_at(one, other, depth + 1))
        }
        Kind::Object => {
            if !has_count(other.fields(), one.fields().count()) {
                return false;
            }
            let others: HashMap<_, _> = other.fields().collect();
            let is_same = |(name, value)| {
                let other = others.get(name);
                other.is_some_and(|other| same_at(value, *other, depth + 1))
            };
            one.fields().all(is_same)
        }
    }
}

/// Returns true if there are so many, without counting more: many short texts may be compared with one long document.
fn has_count(items: impl Iterator, count: usize) -> bool {
    items.take(count + 1).count() == count
}

fn same_number(one: &str, other: &str) -> bool {
    let exact = |text: &str| text.parse::<f64>().ok().filter(|_| text.len() <= EXACT);
    one == other || exact(one).is_some_and(|value| exact(other) == Some(value))
}

#[cfg(test)]
mod tests {
    use offcut::json::JsonText;
    use proptest::prelude::*;

    use super::*;

    fn is_same(one: &str, other: &str) -> bool {
        let (one, other) = (
            JsonText::parse(one).unwrap(),
            JsonText::parse(other).unwrap(),
        );
        same(Node::root(&one), Node::root(&other))
    }

    #[test]
    fn spelling_does_not_count_and_meaning_does() {
        assert!(is_same(
            r#"{"a": [1, "\u0062"], "b": 1.0}"#,
            r#"{"b":1,"a":[1,"b"]}"#
        ));
        for (one, other) in [
            ("[1]", "[1,2]"),
            ("[1,2]", "[1]"),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1,"b":null}"#, r#"{"a":1}"#),
            ("12345678901234567890123", "12345678901234567890124"),
            ("1", "\"1\""),
            ("true", "false"),
            (r#"["\ud800"]"#, r#"["\ud801"]"#),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(!is_same(&deep, &deep));
    }

    #[test]
    fn counting_ends_where_the_counts_differ() {
        assert!(has_count(0..3, 3));
        assert!(!has_count(0..2, 3) && !has_count(0.., 3));
    }

    proptest! {
        #[test]
        fn a_value_is_the_same_in_any_spelling(text: String, number: i32, key: String) {
            let value = serde_json::json!({"k": text, "l": [number, {key: null}]});
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert!(is_same(&value.to_string(), &pretty));
        }
    }
}
