//! Equality of JSON by meaning.

use offcut::json::{Kind, Node, View};

/// Maximum depth that is compared; anything deeper counts as different.
const MAX_DEPTH: usize = 100;

/// Returns true if two documents without duplicate keys, at this depth, mean the same, whatever their whitespace,
/// escapes and order of keys. Numbers have to be spelled alike.
pub(crate) fn same(one: Node<'_>, other: Node<'_>, depth: usize) -> bool {
    // Many short texts may be compared with one long document, so its length is looked at first.
    if one.kind() != other.kind() || one.values() != other.values() || depth > MAX_DEPTH {
        return false;
    }
    match one.kind() {
        Kind::Array | Kind::Object => {
            let mut both = parts(one).zip(parts(other));
            both.all(|((name, one), (named, other))| name == named && same(one, other, depth + 1))
        }
        Kind::String => one.as_str().is_some() && one.as_str() == other.as_str(),
        Kind::Null | Kind::Bool | Kind::Number => one.json().text() == other.json().text(),
    }
}

/// The items of a list, or the fields of an object by their names.
fn parts<'m>(node: Node<'m>) -> impl Iterator<Item = (&'m str, Node<'m>)> {
    let items = node.items().map(|item| ("", item));
    let mut parts: Vec<_> = items.chain(node.fields()).collect();
    parts.sort_by_key(|(name, _)| *name);
    parts.into_iter()
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
        same(Node::root(&one), Node::root(&other), 0)
    }

    #[test]
    fn spelling_does_not_count_and_meaning_does() {
        assert!(is_same(
            r#"{"a": [1, "\u0062"], "b": 1.0}"#,
            r#"{"b":1.0,"a":[1,"b"]}"#
        ));
        for (one, other) in [
            ("[1]", "[1,2]"),
            ("[1,2]", "[1]"),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#),
            (r#"{"a":1,"b":null}"#, r#"{"a":1}"#),
            ("12345678901234567890123", "12345678901234567890124"),
            ("1", "1.0"),
            ("[[1]]", "[1,2]"),
            ("[[],[]]", "[[[]]]"),
            ("1", "\"1\""),
            ("true", "false"),
            (r#"["\ud800"]"#, r#"["\ud801"]"#),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(!is_same(&deep, &deep));
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
