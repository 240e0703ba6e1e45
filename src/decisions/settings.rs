//! A digest of settings.

use crate::backend::key::digest_from_sha256;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// A digest of settings, as JSON, that is the same in every build. The URLs of stores are left out:
/// they may hold secrets, and another way to the same store changes nothing.
#[must_use]
pub(crate) fn digest_of_settings(mut settings: Value) -> String {
    leave_urls_out(&mut settings);
    let tools = settings
        .get_mut("tool_config")
        .and_then(Value::as_object_mut);
    let tools = tools.into_iter().flat_map(|tools| tools.values_mut());
    tools.for_each(leave_urls_out);
    let mut sha256 = Sha256::new();
    add(&mut sha256, &settings);
    digest_from_sha256(&sha256.finalize().into())
}

fn leave_urls_out(options: &mut Value) {
    if let Some(options) = options.as_object_mut() {
        options.remove("backend");
    }
}

/// Adds a value, with the fields of objects in the order of their names: builds differ in the order
/// that they keep.
fn add(sha256: &mut Sha256, value: &Value) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            sha256.update(b"{");
            for (name, value) in fields {
                sha256.update(Value::from(name.as_str()).to_string());
                add(sha256, value);
            }
            sha256.update(b"}");
        }
        Value::Array(items) => {
            sha256.update(b"[");
            items.iter().for_each(|item| add(sha256, item));
            sha256.update(b"]");
        }
        plain => sha256.update(plain.to_string() + ","),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_decides_counts() {
        let settings = json!({"backend": "s3://key:secret@a", "limit": 1, "tool_config": {"grep": {"backend": "x", "limit": 2}}});
        let same = json!({"limit": 1, "tool_config": {"grep": {"limit": 2}}});
        assert_eq!(
            digest_of_settings(settings),
            digest_of_settings(same.clone())
        );
        for other in [
            json!({"limit": 12, "tool_config": {"grep": {"limit": 2}}}),
            json!({"limit": 1, "tool_config": {"grep": {"limit": "2"}}}),
            json!({"limit": 1, "tool_config": {"sed": {"limit": 2}}}),
        ] {
            assert_ne!(digest_of_settings(other), digest_of_settings(same.clone()));
        }
    }
}
