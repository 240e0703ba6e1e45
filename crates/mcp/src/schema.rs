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

/// Keywords whose schemas have names, and may all apply to the same value.
const MAPS: [&str; 3] = ["patternProperties", "dependentSchemas", "dependencies"];

/// Keywords that bind no value themselves.
const DATA: [&str; 6] = [
    "$defs",
    "definitions",
    "const",
    "enum",
    "default",
    "examples",
];

/// Returns true if a schema refers to one that it is `inside` of. Counts its nodes down from `left`. `None` if it has
/// more, refers to one that is not found, or does so to itself in two ways that may apply to the same value: time
/// would double with each level of the value.
fn is_recursive<'s>(
    root: &'s Value,
    schema: &'s Value,
    inside: &mut Vec<&'s str>,
    left: &mut usize,
) -> Option<bool> {
    *left = left.checked_sub(1)?;
    let mut ways = 0;
    for item in schema.as_array().into_iter().flatten() {
        ways += usize::from(is_recursive(root, item, inside, left)?);
    }
    for (name, value) in schema.as_object().into_iter().flatten() {
        match (&**name, value) {
            (name, Value::String(place)) if name == "$ref" || name.ends_with("Ref") => {
                let target = root.pointer(place.strip_prefix('#')?)?;
                let mut is_way = inside.contains(&&**place);
                if !is_way {
                    inside.push(place);
                    is_way = is_recursive(root, target, inside, left)?;
                    inside.pop();
                }
                ways += usize::from(is_way);
            }
            // Places in it count from there.
            ("$id" | "id", Value::String(_)) if !std::ptr::eq(schema, root) => return None,
            (name, _) if DATA.contains(&name) => {}
            (name, Value::Object(schemas)) if name == "properties" || MAPS.contains(&name) => {
                let mut named = 0;
                for schema in schemas.values() {
                    named += usize::from(is_recursive(root, schema, inside, left)?);
                }
                // Each property is another value.
                ways += if name == "properties" {
                    named.min(1)
                } else {
                    named
                };
            }
            _ => ways += usize::from(is_recursive(root, value, inside, left)?),
        }
    }
    // These check again what the other keywords have.
    let again = ["unevaluatedProperties", "unevaluatedItems"];
    let is_again = again.iter().any(|name| schema.get(name).is_some());
    (ways + usize::from(is_again) < 2 || ways == 0).then_some(ways > 0)
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
    /// So is one that may take too long: that unfolds to more than 10 000 nodes, that refers to itself in two ways for the
    /// same value, or whose patterns look around or back.
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
        let twice = json!([{"$ref": "#"}, {"$ref": "#"}]);
        let each = json!({"a": {"$ref": "#"}});
        for recursive in [
            json!({"properties": {"a": {"anyOf": twice}}}),
            json!({"allOf": [{"properties": each}, {"properties": each}]}),
            json!({"if": {"properties": each}, "properties": each}),
            json!({"properties": each, "patternProperties": each}),
            json!({"patternProperties": {"a": {"$ref": "#"}, "^a": {"$ref": "#"}}}),
            json!({"dependentSchemas": {"properties": {"not": {"$ref": "#"}, "if": {"$ref": "#"}}}}),
            json!({"contains": {"$ref": "#"}, "items": {"$ref": "#"}}),
            json!({"anyOf": [{"properties": each}], "unevaluatedProperties": false}),
            json!({"$anchor": "a", "items": {"$ref": "#a"}}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "urn:a", "$ref": "#/$defs/b"}, "b": {}}}),
        ] {
            assert!(
                matches!(OutputSchema::new(&recursive), OutputSchema::Unknown),
                "{recursive}"
            );
        }
        let tree = json!({
            "$id": "urn:tree",
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"properties": {
                "left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]},
                "right": {"$ref": "#/$defs/tree"},
                "all": {"items": {"$ref": "#/$defs/tree"}},
                "name": {"type": "string", "default": {"$ref": "#"}},
            }, "additionalProperties": false}},
        });
        let tree = OutputSchema::new(&tree);
        assert_eq!(tree.violations(r#"{"left": {"right": {}}}"#), Some(vec![]));
        let deep = format!("{}{{\"x\": 1}}{}", r#"{"left":"#.repeat(99), "}".repeat(99));
        assert_ne!(tree.violations(&deep), Some(vec![]));
        let bound = json!({"properties": {"a": {"unevaluatedProperties": false}}, "unevaluatedProperties": false});
        assert!(matches!(OutputSchema::new(&bound), OutputSchema::Known(_)));
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
