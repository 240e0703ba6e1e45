//! Additions to a JSON file that keep its comments and its layout.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A value that is added to a settings file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Addition {
    /// Names of the objects that lead to the place, from the outside.
    pub(crate) path: Vec<String>,
    /// The place at the end of `path`.
    pub(crate) place: Place,
    /// The value.
    pub(crate) value: Value,
}

/// A place for a value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Place {
    /// An element of the list at `path`.
    Element,
    /// The property of this name in the object at `path`.
    Property(String),
}

impl Addition {
    /// An element of the list at `path`, which consists of names with dots between them.
    pub(crate) fn element(path: &str, value: Value) -> Self {
        Self {
            path: path.split('.').map(str::to_owned).collect(),
            place: Place::Element,
            value,
        }
    }

    #[cfg(test)]
    /// A property of the object at `path`, which consists of names with dots between them.
    pub(crate) fn property(path: &str, name: &str, value: Value) -> Self {
        Self {
            place: Place::Property(name.to_owned()),
            ..Self::element(path, value)
        }
    }

    /// Returns true if `settings` hold the value at its place.
    pub(crate) fn is_in(&self, settings: &Value) -> bool {
        let found = self
            .path
            .iter()
            .try_fold(settings, |value, name| value.get(name));
        match (&self.place, found) {
            (Place::Element, Some(Value::Array(list))) => list.contains(&self.value),
            (Place::Property(name), Some(object)) => object.get(name) == Some(&self.value),
            _ => false,
        }
    }
}

/// Parses a file. An empty one is an empty object.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let root = root(text)?;
    match root.value() {
        None => Ok(Value::Object(Map::new())),
        Some(value) if value.as_object().is_none() => Err("it is not a JSON object".to_owned()),
        Some(value) => value
            .to_serde_value()
            .ok_or_else(|| "a value can't be read".to_owned()),
    }
}

/// Adds what is missing. The file's other text stays as it is, byte for byte.
pub(crate) fn add(text: &str, additions: &[Addition]) -> Result<String, String> {
    parse(text)?;
    let root = root(text)?;
    for addition in additions {
        let mut object = root.object_value_or_set();
        let (last, outer) = match (&addition.place, addition.path.split_last()) {
            (Place::Element, Some((last, outer))) => (last.as_str(), outer),
            (Place::Property(name), _) => (name.as_str(), addition.path.as_slice()),
            (Place::Element, None) => return Err("a list needs a name".to_owned()),
        };
        for name in outer {
            object = match property(&object, name)? {
                None => object.object_value_or_set(name),
                Some(found) => found
                    .object_value()
                    .ok_or_else(|| format!("`{name}` is not an object"))?,
            };
        }
        let found = property(&object, last)?;
        match (&addition.place, found) {
            (Place::Property(_), None) => {
                object.append(last, input(&addition.value));
            }
            (Place::Property(_), Some(found)) => {
                if value_of(found.value()).as_ref() != Some(&addition.value) {
                    return Err(format!("`{last}` already has another value"));
                }
            }
            (Place::Element, found) => {
                let list = match found {
                    None => object.array_value_or_set(last),
                    Some(found) => found
                        .array_value()
                        .ok_or_else(|| format!("`{last}` is not a list"))?,
                };
                let mut elements = list.elements().into_iter();
                if !elements
                    .any(|element| value_of(Some(element)).as_ref() == Some(&addition.value))
                {
                    list.append(input(&addition.value));
                }
            }
        }
    }
    let added = root.to_string();
    parse(&added).map_err(|error| format!("adding to it would break it: {error}"))?;
    Ok(added)
}

/// Removes additions, and lists and objects that are empty without them and that `original`, if
/// known, did not have.
pub(crate) fn remove(
    text: &str,
    additions: &[Addition],
    original: Option<&Value>,
) -> Result<String, String> {
    parse(text)?;
    let root = root(text)?;
    for addition in additions.iter().rev() {
        let Some(mut object) = root.object_value() else {
            break;
        };
        let mut way = Vec::new();
        let mut names = addition.path.iter().peekable();
        while let Some(name) = names.next() {
            let Some(found) = property(&object, name)? else {
                break;
            };
            way.push(found.clone());
            match found.object_value() {
                Some(inner) => object = inner,
                None if names.peek().is_none() => {}
                None => return Err(format!("`{name}` is not an object")),
            }
        }
        if way.len() < addition.path.len() {
            continue;
        }
        let is_removed = match &addition.place {
            Place::Property(name) => {
                let found = property(&object, name)?;
                let is_ours = |found: &CstObjectProp| {
                    value_of(found.value()).as_ref() == Some(&addition.value)
                };
                let found = found.filter(is_ours);
                found.map(CstObjectProp::remove).is_some()
            }
            Place::Element => {
                let list = way.last().and_then(CstObjectProp::array_value);
                let mut elements = list.iter().flat_map(CstArray::elements);
                let is_ours = |element: &CstNode| {
                    value_of(Some(element.clone())).as_ref() == Some(&addition.value)
                };
                elements.find(is_ours).map(CstNode::remove).is_some()
            }
        };
        if is_removed {
            remove_empty(&way, &addition.path, original);
        }
    }
    Ok(root.to_string())
}

/// Removes the properties of `way` from the inside while they are empty and were not in `original`.
fn remove_empty(way: &[CstObjectProp], path: &[String], original: Option<&Value>) {
    for (at, found) in way.iter().enumerate().rev() {
        let mut names = path[..=at].iter();
        let was_there = original.and_then(|all| names.try_fold(all, |value, name| value.get(name)));
        let is_empty = match value_of(found.value()) {
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Array(list)) => list.is_empty(),
            _ => false,
        };
        if was_there.is_some() || !is_empty {
            return;
        }
        found.clone().remove();
    }
}

/// The property called `name`, which must not be there twice: an agent takes the last one.
fn property(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, String> {
    let mut found = object
        .properties()
        .into_iter()
        .filter(|property| property.decoded_name().as_deref() == Some(name));
    let first = found.next();
    match found.next() {
        None => Ok(first),
        Some(_) => Err(format!("`{name}` is there twice")),
    }
}

fn value_of(node: Option<CstNode>) -> Option<Value> {
    node?.to_serde_value()
}

fn root(text: &str) -> Result<CstRootNode, String> {
    // Comments and trailing commas are common; anything else, an agent would not read either.
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    CstRootNode::parse(text, &options).map_err(|error| {
        // Its message would quote the line, and settings hold secrets.
        let (line, column) = (error.line_display(), error.column_display());
        format!(
            "it is not JSON: {} at line {line}, column {column}",
            error.kind()
        )
    })
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(map) => {
            let entries = map.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn additions() -> [Addition; 3] {
        [
            Addition::element("hooks.After", json!({"command": "offcut"})),
            Addition::element("allow", json!("Read(//store/**)")),
            Addition::property("outside", "/store/**", json!("allow")),
        ]
    }

    #[test]
    fn what_is_added_can_be_removed() {
        let files = [
            "{}",
            "{\n}\n",
            "",
            "{ \"allow\": [] }",
            "{\n  // mine\n  \"hooks\": {\"After\": [{\"command\": \"mine\"}]},\n}\n",
            "{\"allow\":[\"Read(//store/**)\"],\"outside\":{}}",
            "{\r\n\t\"allow\": [\r\n\t\t\"Bash\", // first\r\n\t],\r\n\t\"hooks\": {}\r\n}\r\n",
        ];
        for file in files {
            let original = parse(file).unwrap();
            let added = add(file, &additions()).unwrap();
            let value = parse(&added).unwrap();
            assert!(value["hooks"]["After"].as_array().is_some_and(|list| {
                list.iter().filter(|one| one["command"] == "offcut").count() == 1
            }));
            assert_eq!(value["outside"]["/store/**"], "allow", "{added}");
            assert_eq!(add(&added, &additions()).unwrap(), added, "twice");
            let missing: Vec<_> = additions()
                .into_iter()
                .filter(|addition| *addition != additions()[1] || !file.contains("Read"))
                .collect();
            let removed = remove(&added, &missing, Some(&original)).unwrap();
            assert_eq!(parse(&removed).unwrap(), original, "{added}{removed}");
            for comment in ["// mine", "// first"] {
                assert_eq!(removed.contains(comment), file.contains(comment));
            }
        }
    }

    #[test]
    fn values_of_other_shapes_are_refused() {
        let files = [
            ("[]", "it is not a JSON object"),
            ("{\"hooks\": []}", "`hooks` is not an object"),
            ("{\"hooks\": {\"After\": {}}}", "`After` is not a list"),
            ("{\"allow\": null}", "`allow` is not a list"),
            ("{\"allow\": [], \"allow\": []}", "`allow` is there twice"),
            (
                "{\"outside\": {\"/store/**\": \"deny\"}}",
                "already has another value",
            ),
            ("{'a': 1}", "it is not JSON"),
            ("{\"key\": sk-secret}", "it is not JSON"),
        ];
        for (file, expected) in files {
            let error = add(file, &additions()).unwrap_err();
            assert!(error.contains(expected), "{file}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
