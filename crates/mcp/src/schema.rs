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

/// Keywords whose schemas apply to the value of the schema that has them.
const SAME_VALUE: [&str; 8] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
];

/// Returns true if a schema refers to one that it is `inside` of; `None` if checking a value would take too long: time
/// doubles with each level of the value if two branches for the same value do so.
fn is_recursive<'s>(
    root: &'s Value,
    schema: &'s Value,
    inside: &mut Vec<&'s str>,
    left: &mut usize,
) -> Option<bool> {
    *left = left.checked_sub(1)?;
    let Some(fields) = schema.as_object() else {
        let mut is_any = false;
        for item in schema.as_array().into_iter().flatten() {
            is_any |= is_recursive(root, item, inside, left)?;
        }
        return Some(is_any);
    };
    let (mut branches, mut is_own) = (0, false);
    for (name, value) in fields {
        if let Some(place) = value
            .as_str()
            .filter(|_| name.ends_with("Ref") || name == "$ref")
        {
            let target = place.strip_prefix('#').and_then(|at| root.pointer(at));
            branches += usize::from(match target.filter(|_| !inside.contains(&place)) {
                Some(target) => {
                    inside.push(place);
                    let is_any = is_recursive(root, target, inside, left)?;
                    inside.pop();
                    is_any
                }
                None => true,
            });
        } else if SAME_VALUE.contains(&name.as_str()) {
            let parts: Vec<&Value> = match value {
                Value::Array(parts) => parts.iter().collect(),
                Value::Object(parts) if name == "dependentSchemas" => parts.values().collect(),
                _ => vec![value],
            };
            for part in parts {
                branches += usize::from(is_recursive(root, part, inside, left)?);
            }
        } else if !matches!(name.as_str(), "$defs" | "definitions") {
            is_own |= is_recursive(root, value, inside, left)?;
        }
    }
    branches += usize::from(is_own);
    (branches < 2).then_some(branches > 0)
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
    /// So is one that takes too long: that unfolds to more than 10 000 nodes, that refers to itself in two ways for the same value,
    /// or whose patterns look around or back.
    #[must_use]
    pub fn new(schema: &Value) -> Self {
        let mut left = MAX_NODES;
        if is_recursive(schema, schema, &mut Vec::new(), &mut left).is_none() {
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
        for twice in [
            json!({"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}}),
            json!({"allOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}),
            json!({"if": {"properties": {"a": {"$ref": "#"}}}, "properties": {"a": {"$ref": "#"}}}),
        ] {
            assert!(
                matches!(OutputSchema::new(&twice), OutputSchema::Unknown),
                "{twice}"
            );
        }
        let tree = json!({
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"properties": {
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"$ref": "#/$defs/tree"},
                "all": {"items": {"$ref": "#/$defs/tree"}},
            }}},
        });
        let tree = OutputSchema::new(&tree);
        assert_eq!(tree.violations(r#"{"left": {"right": {}}}"#), Some(vec![]));
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
