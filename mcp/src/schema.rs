//! Schemas of tools' structured results.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

/// Maximum number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 32;

/// A tool's promise about its `structuredContent`.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum OutputSchema {
    /// The tool promises nothing, or the client was not told of its promise.
    None,
    /// The promise is unknown, or not a schema that can be used. Structured content stays whole.
    #[default]
    Unknown,
    /// A compiled schema.
    Known(Arc<jsonschema::Validator>),
}

impl OutputSchema {
    /// Compiles a tool's `outputSchema`: JSON Schema 2020-12, unless it names another draft. A schema
    /// that is invalid, or that refers to another document, is [`Unknown`](Self::Unknown).
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        jsonschema::options()
            .build(schema)
            .map_or(Self::Unknown, |schema| Self::Known(Arc::new(schema)))
    }

    /// Returns true if structured content may be left out.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Pointers to the places in the JSON `text` that violate the schema; empty if it is valid. `None`
    /// if that can't be said.
    pub(crate) fn violations(&self, text: &str) -> Option<Vec<String>> {
        match self {
            Self::None => Some(Vec::new()),
            Self::Unknown => None,
            Self::Known(schema) => {
                let value: Value = serde_json::from_str(text).ok()?;
                let errors = schema.iter_errors(&value).take(MAX_VIOLATIONS);
                Some(
                    errors
                        .map(|error| error.instance_path().to_string())
                        .collect(),
                )
            }
        }
    }
}

impl fmt::Debug for OutputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Unknown => "Unknown",
            Self::Known(_) => "Known(..)",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_are_found_at_their_places() {
        let schema = OutputSchema::new(&json!({
            "type": "object",
            "properties": {"a/b": {"type": "array", "items": {"type": "string", "maxLength": 2}}},
        }));
        assert_eq!(schema.violations(r#"{"a/b": ["xx"]}"#), Some(vec![]));
        assert_eq!(
            schema.violations(r#"{"a/b": ["xx", "xxx"]}"#),
            Some(vec!["/a~1b/1".to_owned()])
        );
    }

    #[test]
    fn schemas_that_can_not_be_used_are_unknown() {
        for schema in [
            json!({"type": 7}),
            json!({"$ref": "https://example.org/schema.json"}),
            json!({"$ref": "file:///etc/passwd"}),
            json!("schema"),
        ] {
            let compiled = OutputSchema::new(&schema);
            assert!(matches!(compiled, OutputSchema::Unknown), "{schema}");
            assert_eq!(compiled.violations("{}"), None);
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        ] {
            _ = OutputSchema::new(&schema).violations("{}");
        }
    }
}
