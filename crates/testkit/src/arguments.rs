//! Arguments of calls that were cleared, compared with the originals.

use serde_json::Value;

/// Finds the texts of a call's arguments that were replaced: each text as `shown`, with its original.
///
/// Either `{"_cleared": …}` stands for all arguments, or long strings were replaced one by one. `None`
/// if anything else differs.
#[must_use]
pub fn replaced_arguments(shown: &str, original: &str) -> Option<Vec<(String, String)>> {
    if shown == original {
        return Some(Vec::new());
    }
    let value: Value = serde_json::from_str(shown).ok()?;
    if let Some(hint) = whole(&value) {
        return Some(vec![(hint.to_owned(), original.to_owned())]);
    }
    let mut pairs = Vec::new();
    let is_alike = compare(&value, &serde_json::from_str(original).ok()?, &mut pairs);
    (is_alike && !pairs.is_empty()).then_some(pairs)
}

/// The text that stands for all arguments.
fn whole(value: &Value) -> Option<&str> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get("_cleared")?.as_str()
}

/// Collects strings that differ. Returns `false` if anything else does.
fn compare(shown: &Value, original: &Value, pairs: &mut Vec<(String, String)>) -> bool {
    match (shown, original) {
        (Value::String(shown), Value::String(original)) => {
            if shown != original {
                pairs.push((shown.clone(), original.clone()));
            }
            true
        }
        (Value::Array(shown), Value::Array(original)) => {
            let mut both = shown.iter().zip(original);
            shown.len() == original.len() && both.all(|(one, two)| compare(one, two, pairs))
        }
        (Value::Object(shown), Value::Object(original)) => {
            let mut both = shown.iter().zip(original);
            shown.len() == original.len()
                && both.all(|((key, one), (other, two))| key == other && compare(one, two, pairs))
        }
        _ => shown == original,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_texts_are_found_and_other_changes_are_told() {
        let original = r#"{"path": "a", "edits": [{"old": "long", "n": 1.0}]}"#;
        let pair = |one: &str, two: &str| Some(vec![(one.to_owned(), two.to_owned())]);
        let replaced = |shown| replaced_arguments(shown, original);
        assert_eq!(replaced(original), Some(Vec::new()));
        assert_eq!(replaced(r#"{"_cleared": "hint"}"#), pair("hint", original));
        let by_string = r#"{"path": "a", "edits": [{"old": "hint", "n": 1.0}]}"#;
        assert_eq!(replaced(by_string), pair("hint", "long"));
        for other in [
            r#"{"path":"a","edits":[{"old":"long","n":1.0}]}"#,
            r#"{"path": "a", "edits": [{"old": "hint", "n": 2.0}]}"#,
            r#"{"path": "a", "edits": []}"#,
            r#"{"path": "a"}"#,
            "hint",
        ] {
            assert_eq!(replaced(other), None, "{other}");
        }
    }
}
