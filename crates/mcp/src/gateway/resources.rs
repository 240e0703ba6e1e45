//! Stored results as resources, for clients that read these.

use std::borrow::Cow;

use offcut::backend::Location;
use offcut::json::{Edit, JsonText, New, Node, View, put_into_text};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// The beginning of all URIs of stored results.
const PREFIX: &str = "offcut://result/";
/// The first revision whose clients know links.
const WITH_LINKS: &str = "2025-06-18";
/// Everything but what paths consist of.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/');

/// Returns true if clients of this revision know links in results.
pub(super) fn knows_links(revision: &str) -> bool {
    revision >= WITH_LINKS
}

fn uri(location: &Location) -> String {
    let location = utf8_percent_encode(location.as_str(), ESCAPED);
    format!("{PREFIX}{location}")
}

/// The arguments of the reader for a URI: its path is where the result is stored, and its query names
/// a page. `None` for URIs of others.
pub(super) fn arguments(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let mut arguments = Map::new();
    for one in query.split('&').filter(|one| !one.is_empty()) {
        let (name, value) = one.split_once('=').unwrap_or((one, ""));
        arguments.insert(decoded(name).into(), decoded(value).into());
    }
    arguments.insert("path".to_owned(), decoded(path).into());
    Some(Value::from(arguments).to_string())
}

fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// The result of a `tool` with a link to each location at its end. `None` if it has no list of blocks.
pub(super) fn with_links<'l>(
    result: &str,
    tool: &str,
    locations: impl Iterator<Item = &'l Location>,
) -> Option<String> {
    let mut result = JsonText::parse(result).ok()?;
    let links = locations.map(|location| {
        json!({
            "type": "resource_link",
            "uri": uri(location),
            "name": format!("stored result of {tool}"),
            "description": "Read in pages: ?offset=LINE goes on, ?pattern=REGEX searches.",
            "mimeType": "text/plain",
        })
    });
    let links: Vec<String> = links.map(|link| link.to_string()).collect();
    if links.is_empty() {
        return None;
    }
    let content = Node::root(&result).get("content")?;
    let has_blocks = content.items().next().is_some();
    let spelled = content.json().to_string();
    let before = spelled.strip_suffix(']')?.trim_end();
    let comma = if has_blocks { "," } else { "" };
    let list = format!("{before}{comma}{}]", links.join(","));
    put_into_text(&mut result, |_| {
        Some(vec![Edit::set(Vec::new(), "content", New::Text(list))])
    });
    Some(result.into_string())
}

/// The answer of a server that has no resources, with the word that it has some. `None` if it says so
/// itself, or says nothing of what it can do.
pub(super) fn declared(result: &JsonText) -> Option<String> {
    let capabilities = Node::root(result).get("capabilities")?;
    if !capabilities.is_object() || capabilities.has("resources") {
        return None;
    }
    let is_empty = capabilities.fields().next().is_none();
    let comma = if is_empty { "" } else { "," };
    let spelled = capabilities.json().to_string();
    let before = spelled.strip_suffix('}')?.trim_end();
    let new = format!(r#"{before}{comma}"resources":{{}}}}"#);
    let mut result = result.clone();
    put_into_text(&mut result, |_| {
        Some(vec![Edit::set(Vec::new(), "capabilities", New::Text(new))])
    });
    Some(result.into_string())
}

/// The field that holds the empty list of a server without resources.
pub(super) fn list_of(method: &str) -> Option<&'static str> {
    match method {
        "resources/list" => Some("resources"),
        "resources/templates/list" => Some("resourceTemplates"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_leads_to_the_location_that_it_was_made_of() {
        for location in [
            "/home/me/a b/trunc/7",
            "s3://bucket/%2e/é?x#y",
            "memory://t/trunc/1",
        ] {
            let uri = uri(&Location::new(location));
            assert!(!uri.contains([' ', '#', '?']), "{uri}");
            let asked = arguments(&format!("{uri}?offset=-5&pattern=a%26b+&limit")).unwrap();
            let asked: Value = serde_json::from_str(&asked).unwrap();
            let expected =
                json!({"path": location, "offset": "-5", "pattern": "a&b+", "limit": ""});
            assert_eq!(asked, expected);
        }
        // The query does not name another place.
        let asked = arguments("offcut://result/a?path=b&path=c").unwrap();
        assert_eq!(asked, r#"{"path":"a"}"#);
        for other in [
            "",
            "file:///etc/passwd",
            "offcut://other/a",
            "OFFCUT://result/a",
        ] {
            assert_eq!(arguments(other), None, "{other}");
        }
    }

    #[test]
    fn a_server_without_resources_says_that_it_has_some() {
        let said = |text: &str| declared(&JsonText::parse(text).unwrap());
        assert_eq!(
            said(r#"{"capabilities": { "tools":{} }, "n": 1.00}"#).unwrap(),
            r#"{"capabilities": { "tools":{},"resources":{}}, "n": 1.00}"#
        );
        assert_eq!(
            said(r#"{"capabilities":{ }}"#).unwrap(),
            r#"{"capabilities":{"resources":{}}}"#
        );
        for own in [
            r#"{"capabilities":{"resources":{"subscribe":true}}}"#,
            r#"{"capabilities":[]}"#,
            r#"{"capabilities":{},"capabilities":{"resources":{}}}"#,
            "{}",
        ] {
            assert_eq!(said(own), None, "{own}");
        }
    }
}
