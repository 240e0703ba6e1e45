//! Schemas of tools' structured results.

use std::sync::Arc;

use jsonschema::PatternOptions;
use serde_json::Value;

/// Maximum number of violations that are reported for one value.
const MAX_VIOLATIONS: usize = 32;

/// Maximum number of a schema's nodes, each counted as often as it is referred to.
const MAX_NODES: usize = 10_000;

/// Maximum number of bytes of a compiled pattern.
const MAX_PATTERN: usize = 256 << 10;

/// Counts a schema's nodes down from `left`. `None` if it has more, or refers to one that it is `inside` of, or to one that is
/// not found: time doubles with each level of a value if two branches for the same value refer to themselves.
fn unfolded<'s>(
    root: &'s Value,
    schema: &'s Value,
    inside: &mut Vec<&'s str>,
    left: &mut usize,
) -> Option<()> {
    *left = left.checked_sub(1)?;
    for item in schema.as_array().into_iter().flatten() {
        unfolded(root, item, inside, left)?;
    }
    for (name, value) in schema.as_object().into_iter().flatten() {
        let place = value
            .as_str()
            .filter(|_| name.ends_with("Ref") || name == "$ref");
        if let Some(place) = place {
            let target = place.strip_prefix('#').and_then(|at| root.pointer(at));
            let target = target.filter(|_| !inside.contains(&place))?;
            inside.push(place);
            unfolded(root, target, inside, left)?;
            inside.pop();
        } else if name != "$defs" && name != "definitions" {
            unfolded(root, value, inside, left)?;
        }
    }
    Some(())
}

/// A tool's promise about its `structuredContent`.
#[derive(Clone, Debug, Default)]
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
    ///
    /// So is one that may take too long: that unfolds to more than 10 000 nodes, that refers to itself, or whose patterns
    /// look around or back.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        let mut left = MAX_NODES;
        if unfolded(schema, schema, &mut Vec::new(), &mut left).is_none() {
            return Self::Unknown;
        }
        let linear = PatternOptions::regex().size_limit(MAX_PATTERN);
        jsonschema::options()
            .with_pattern_options(linear)
            .build(schema)
            .map_or(Self::Unknown, |schema| Self::Known(Arc::new(schema)))
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
            json!({"properties": {"a": {"pattern": r"^(a*)*\1$"}}}),
        ] {
            let compiled = OutputSchema::new(&schema);
            assert!(matches!(compiled, OutputSchema::Unknown), "{schema}");
            assert_eq!(compiled.violations("{}"), None);
        }
    }

    #[test]
    fn schemas_that_take_too_long_are_unknown() {
        let chain = |keyword: &str, levels: usize| {
            let mut defs = serde_json::Map::new();
            for level in 0..levels {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                defs.insert(format!("d{level}"), json!({keyword: [next, next]}));
            }
            defs.insert(format!("d{levels}"), json!({"type": "string"}));
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        for keyword in ["anyOf", "oneOf", "allOf"] {
            assert!(matches!(
                OutputSchema::new(&chain(keyword, 28)),
                OutputSchema::Unknown
            ));
            assert!(matches!(
                OutputSchema::new(&chain(keyword, 5)),
                OutputSchema::Known(_)
            ));
        }
        for recursive in [
            json!({"$ref": "#"}),
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
            json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"$anchor": "a", "items": {"$ref": "#a"}}),
        ] {
            assert!(
                matches!(OutputSchema::new(&recursive), OutputSchema::Unknown),
                "{recursive}"
            );
        }
    }
}
