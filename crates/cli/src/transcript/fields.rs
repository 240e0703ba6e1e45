//! Access to fields of sessions, whatever they hold.

use serde_json::Value;

/// Returns the text of a field, or an empty one.
pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

/// Returns true if a field is `true`.
pub(super) fn is_true(value: &Value, field: &str) -> bool {
    value[field] == true
}

/// Iterates over a list in a field; empty if there is no list.
pub(super) fn items<'v>(value: &'v Value, field: &str) -> impl Iterator<Item = &'v Value> {
    value[field].as_array().into_iter().flatten()
}
