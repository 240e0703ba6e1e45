//! Additions to a JSON file that keep its comments and its layout.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The place of the command in a group of hooks that is an addition.
const COMMAND: &str = "/hooks/0/command";

/// A value that is added to a list in a settings file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Addition {
    /// The name of an object, and that of a list in it.
    path: [String; 2],
    /// The value.
    value: Value,
}

impl Addition {
    /// An element of the list at `path`.
    pub(super) fn element(path: [&str; 2], value: Value) -> Self {
        let path = path.map(str::to_owned);
        Self { path, value }
    }

    /// Returns true if `settings` hold the value.
    pub(super) fn is_in(&self, settings: &Value) -> bool {
        let [object, list] = &self.path;
        let list = settings[object][list].as_array();
        list.is_some_and(|list| list.contains(&self.value))
    }

    /// The addition in words, one line.
    pub(super) fn in_words(&self) -> String {
        let text = self.value.pointer(COMMAND).unwrap_or(&self.value).as_str();
        self.naming(text.unwrap_or_default())
    }

    /// The same with another text for its value.
    fn naming(&self, text: &str) -> String {
        format!("{}: {text}", self.path.join("."))
    }
}

/// The command of a hook without the values of variables that its user has put before it, which may be secrets.
pub(crate) fn shown(command: &str) -> String {
    const OURS: &str = "env 'OFFCUT_HOME=";
    let start = command.strip_prefix(OURS).map_or(0, |_| OURS.len());
    match command[start..].find('=') {
        Some(end) => format!("{}=…", &command[..start + end]),
        None => command.to_owned(),
    }
}

/// Parses a file. An empty one is an empty object.
pub(super) fn parse(text: &str) -> Result<Value, String> {
    let root = root(text)?;
    match root.value() {
        None => Ok(Value::Object(Map::new())),
        Some(value) if value.as_object().is_none() => Err("it is not a JSON object".to_owned()),
        Some(value) => value
            .to_serde_value()
            .ok_or_else(|| "a value can't be read".to_owned()),
    }
}

/// Adds the values that are missing. The file's other text stays as it is, byte for byte.
pub(super) fn add(text: &str, additions: &[Addition]) -> Result<String, String> {
    parse(text)?;
    let root = root(text)?;
    for Addition { path, value } in additions {
        let [outer, name] = path;
        let object = root.object_value_or_set();
        let object = match property(&object, outer)? {
            None => object.object_value_or_set(outer),
            Some(found) => found
                .object_value()
                .ok_or_else(|| format!("`{outer}` is not an object"))?,
        };
        let list = match property(&object, name)? {
            None => object.array_value_or_set(name),
            Some(found) => found
                .array_value()
                .ok_or_else(|| format!("`{name}` is not a list"))?,
        };
        let elements = list.elements();
        if elements.iter().any(|element| is_equal(element, value)) {
            continue;
        }
        let has_comma = |last: &CstNode| last.trailing_comma().is_some();
        // On one line, a comma after the last element would become ours, and go with it.
        match elements.last().is_some_and(has_comma) && !list.to_string().contains('\n') {
            true => list.insert(0, input(value)),
            false => list.append(input(value)),
        };
    }
    let added = root.to_string();
    parse(&added).map_err(|error| format!("adding to it would break it: {error}"))?;
    Ok(added)
}

/// Removes additions, and hooks with commands of ours in the same lists. Returns what was removed in words, too. Lists
/// and objects that this empties go as well, unless they were there `before` or hold a comment.
pub(super) fn remove(
    text: &str,
    additions: &[Addition],
    before: &Value,
    is_ours: impl Fn(&str) -> bool,
) -> Result<(String, Vec<String>), String> {
    parse(text)?;
    let root = root(text)?;
    let mut all = Vec::new();
    for addition in additions {
        let [outer, name] = &addition.path;
        if let Some(settings) = root.object_value()
            && let Some(outer_place) = property(&settings, outer)?
            && let Some(object) = outer_place.object_value()
            && let Some(place) = property(&object, name)?
            && let Some(list) = place.array_value()
        {
            let mut removed = Vec::new();
            // Somebody may have copied it, or changed it around its command.
            for element in list.elements() {
                if is_equal(&element, &addition.value) {
                    element.remove();
                    removed.push(addition.in_words());
                } else if addition.value.pointer(COMMAND).is_some() {
                    let hooks = remove_hooks(element, &is_ours);
                    removed.extend(hooks.iter().map(|command| addition.naming(&shown(command))));
                }
            }
            let is_empty = |text: String| text.trim_matches(['[', ']', '{', '}']).trim().is_empty();
            if !removed.is_empty() && is_empty(list.to_string()) && before[outer][name].is_null() {
                place.remove();
                if is_empty(object.to_string()) && before[outer].is_null() {
                    outer_place.remove();
                }
            }
            removed.dedup();
            all.extend(removed);
        }
    }
    Ok((root.to_string(), all))
}

/// Removes the hooks with commands of ours from a `group` of hooks, and the group if it has no other. Returns their
/// commands.
fn remove_hooks(group: CstNode, is_ours: impl Fn(&str) -> bool) -> Vec<String> {
    let hooks = group
        .as_object()
        .and_then(|group| group.array_value("hooks"));
    let hooks: Vec<CstNode> = hooks.iter().flat_map(CstArray::elements).collect();
    let command = |hook: &CstNode| {
        let command = hook.to_serde_value()?["command"].as_str()?.to_owned();
        is_ours(&command).then_some(command)
    };
    let (ours, others): (Vec<_>, Vec<_>) =
        hooks.into_iter().partition(|hook| command(hook).is_some());
    let commands = ours.iter().filter_map(command).collect();
    match others.is_empty() && !ours.is_empty() {
        true => group.remove(),
        false => ours.into_iter().for_each(CstNode::remove),
    }
    commands
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

fn is_equal(node: &CstNode, value: &Value) -> bool {
    node.to_serde_value().as_ref() == Some(value)
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

    fn additions() -> [Addition; 2] {
        [
            Addition::element(["hooks", "After"], json!({"command": "offcut"})),
            Addition::element(["permissions", "allow"], json!("Read(//store/**)")),
        ]
    }

    #[test]
    fn what_is_added_can_be_removed() {
        let files = [
            "{}",
            "{\n}\n",
            "",
            "{ \"permissions\": { \"allow\": [] } }",
            "{\n  // mine\n  \"hooks\": {\"After\": [{\"command\": \"mine\"}]},\n}\n",
            "{\"permissions\":{\"allow\":[\"Read(//store/**)\"]}}",
            "{\"env\": {\"KEY\": \"1\" /* mine too */}, \"model\": \"opus\"}",
            "{\"permissions\": {\"allow\": [\"Bash\",]}, \"hooks\": {\"After\": [],},}",
            "{\r\n\t\"permissions\": {\"allow\": [\r\n\t\t\"Bash\", // first\r\n\t]},\r\n\t\"hooks\": {}\r\n}\r\n",
        ];
        for file in files {
            let original = parse(file).unwrap();
            let added = add(file, &additions()).unwrap();
            let value = parse(&added).unwrap();
            assert!(value["hooks"]["After"].as_array().is_some_and(|list| {
                list.iter().filter(|one| one["command"] == "offcut").count() == 1
            }));
            assert_eq!(add(&added, &additions()).unwrap(), added, "twice");
            let missing: Vec<_> = additions()
                .into_iter()
                .filter(|addition| *addition != additions()[1] || !file.contains("Read"))
                .collect();
            let (removed, _) = remove(&added, &missing, &original, |_| false).unwrap();
            assert_eq!(parse(&removed).unwrap(), original, "{added}{removed}");
            let commas = |text: &str| text.matches(',').count();
            assert_eq!(commas(&removed), commas(file), "{added}{removed}");
            for comment in ["// mine", "// first", "/* mine too */"] {
                assert_eq!(removed.contains(comment), file.contains(comment));
            }
        }
    }

    #[test]
    fn copies_of_what_was_added_go_too() {
        let file = "{\"permissions\": {\"allow\": [\"Bash\", \"Read(//store/**)\", \"Edit\", \"Read(//store/**)\"]}}";
        let (removed, _) = remove(file, &additions(), &Value::Null, |_| false).unwrap();
        let left = json!({"permissions": {"allow": ["Bash", "Edit"]}});
        assert_eq!(parse(&removed).unwrap(), left);
    }

    #[test]
    fn values_of_other_shapes_are_refused() {
        let files = [
            ("[]", "it is not a JSON object"),
            ("{\"hooks\": []}", "`hooks` is not an object"),
            ("{\"hooks\": {\"After\": {}}}", "`After` is not a list"),
            (
                "{\"permissions\": {\"allow\": null}}",
                "`allow` is not a list",
            ),
            ("{\"hooks\": {}, \"hooks\": {}}", "`hooks` is there twice"),
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
