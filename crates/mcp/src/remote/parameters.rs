//! Arguments of tools that a server wants in headers too: those whose schemas have `x-mcp-header`.

use std::collections::HashMap;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderName, HeaderValue};
use offcut::json::{Kind, Node, View};

/// Maximum depth at which a property is found.
const MAX_DEPTH: usize = 16;

/// Maximum number of such arguments of a tool. No server takes as many headers.
const MAX_PARAMETERS: usize = 100;

/// Maximum number of tools with such arguments.
const MAX_TOOLS: usize = 10_000;

/// The arguments of each tool that go into headers.
#[derive(Debug, Default)]
pub(crate) struct Parameters(HashMap<String, Vec<Parameter>>);

#[derive(Debug)]
struct Parameter {
    /// Names of the properties from the arguments down.
    path: Vec<String>,
    header: HeaderName,
}

impl Parameters {
    /// Learns from the result of `tools/list`.
    pub(super) fn learn(&mut self, result: Node<'_>) {
        let tools = result.get("tools");
        for tool in tools.into_iter().flat_map(Node::items) {
            let mut found = Vec::new();
            if let Some(schema) = tool.get("inputSchema") {
                collect(schema, &mut Vec::new(), &mut found);
            }
            if found.is_empty() {
                self.0.remove(tool.text("name"));
            } else if self.0.len() < MAX_TOOLS {
                self.0.insert(tool.text("name").to_owned(), found);
            }
        }
    }

    /// The headers for a call of `tool`.
    pub(super) fn headers(
        &self,
        tool: &str,
        arguments: Node<'_>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let all = self.0.get(tool).into_iter().flatten();
        let header = |parameter: &Parameter| {
            let value = parameter
                .path
                .iter()
                .try_fold(arguments, |value, name| value.get(name))?;
            let text = match value.kind() {
                Kind::String => value.as_str()?.to_owned(),
                Kind::Array | Kind::Object | Kind::Null => return None,
                _ => value.json().to_string(),
            };
            Some((parameter.header.clone(), encoded(&text)?))
        };
        all.filter_map(header).collect()
    }
}

/// Collects the properties of a schema that go into headers.
fn collect(schema: Node<'_>, path: &mut Vec<String>, found: &mut Vec<Parameter>) {
    if path.len() == MAX_DEPTH {
        return;
    }
    let properties = schema.get("properties");
    for (name, property) in properties.into_iter().flat_map(Node::fields) {
        if found.len() == MAX_PARAMETERS {
            return;
        }
        path.push(name.to_string());
        let header = format!("mcp-param-{}", property.text("x-mcp-header"));
        if let (true, Ok(header)) = (property.has("x-mcp-header"), header.parse()) {
            found.push(Parameter {
                path: path.clone(),
                header,
            });
        }
        collect(property, path, found);
        path.pop();
    }
}

/// A text as the value of a header: in Base64 unless it is plain ASCII.
pub(super) fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| (b' '..=b'~').contains(&byte))
        && text.trim() == text
        && !(text.starts_with(BEGIN) && text.ends_with(END));
    if is_plain {
        return HeaderValue::from_str(text).ok();
    }
    let coded = BASE64_STANDARD.encode(text);
    HeaderValue::from_str(&format!("{BEGIN}{coded}{END}")).ok()
}

const BEGIN: &str = "=?base64?";
const END: &str = "?=";

#[cfg(test)]
mod tests {
    use offcut::json::JsonText;

    use super::*;

    #[test]
    fn annotated_arguments_become_headers() {
        let list = r#"{"tools": [{"name": "t", "inputSchema": {"properties": {
            "region": {"type": "string", "x-mcp-header": "Region"}, "plain": {"type": "string"},
            "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "Count"}}},
            "bad": {"type": "string", "x-mcp-header": "a: b"}}}}]}"#;
        let list = JsonText::parse(list).unwrap();
        let mut parameters = Parameters::default();
        parameters.learn(Node::root(&list));
        let arguments = r#"{"region": "Zürich", "plain": "x", "deep": {"n": 1.00}, "bad": "y"}"#;
        let arguments = JsonText::parse(arguments).unwrap();
        let arguments = Node::root(&arguments);
        let mut headers = parameters.headers("t", arguments);
        headers.sort_by_key(|(name, _)| name.to_string());
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
            .collect();
        assert_eq!(
            headers,
            [
                ("mcp-param-count", "1.00"),
                ("mcp-param-region", "=?base64?WsO8cmljaA==?=")
            ]
        );
        assert!(parameters.headers("other", arguments).is_empty());
    }

    #[test]
    fn a_call_has_at_most_a_hundred_such_headers() {
        let all = |value: fn(usize) -> String| {
            let fields: Vec<String> = (0..40_000)
                .map(|nth| format!("\"p{nth}\":{}", value(nth)))
                .collect();
            format!("{{{}}}", fields.join(","))
        };
        let properties = all(|nth| format!(r#"{{"x-mcp-header":"H{nth}"}}"#));
        let list =
            format!(r#"{{"tools":[{{"name":"t","inputSchema":{{"properties":{properties}}}}}]}}"#);
        let mut parameters = Parameters::default();
        parameters.learn(Node::root(&JsonText::parse(list).unwrap()));
        let arguments = JsonText::parse(all(|nth| nth.to_string())).unwrap();
        assert_eq!(parameters.headers("t", Node::root(&arguments)).len(), 100);
    }

    #[test]
    fn values_that_a_header_would_change_are_coded() {
        for plain in ["a", "a b", "=?base64?x"] {
            assert_eq!(encoded(plain).unwrap(), plain);
        }
        for changed in [" a", "a\t", "a\nb", "=?base64?x?=", "é"] {
            assert!(
                encoded(changed)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(BEGIN)
            );
        }
    }
}
