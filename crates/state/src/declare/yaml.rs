//! Parses YAML into JSON.

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number, Value};

use crate::schema_error::{DECLARATION, SchemaError};

/// Maximum nesting depth of lists and maps.
const MAX_DEPTH: usize = 100;

/// A list or map that is not closed yet.
enum OpenNode {
    List(Vec<Value>),
    /// The last field holds the key whose value comes next.
    Map(Map<String, Value>, Option<String>),
}

/// Parses one document. Rejects everything that could make a small file large or strange: aliases,
/// anchors, tags, a second document.
pub(super) fn parse(text: &str) -> Result<Value, SchemaError> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<OpenNode> = Vec::new();
    let mut root = None;
    while let Some(event) = parser.next_event() {
        let (event, span) =
            event.map_err(|error| SchemaError::syntax(error.marker().line(), "YAML", error))?;
        let line = span.start.line();
        let refuse = |what: &str| SchemaError::new(DECLARATION, format!("line {line}"), what);
        let value = match event {
            Event::Alias(_)
            | Event::Scalar(_, _, 1.., _)
            | Event::SequenceStart(1.., _)
            | Event::MappingStart(1.., _)
            | Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(refuse(
                    "this has an anchor, an alias or a tag: write out the value",
                ));
            }
            Event::Scalar(text, style, _, None) => {
                if let Some(OpenNode::Map(entries, key @ None)) = open.last_mut() {
                    if entries.contains_key(&*text) {
                        return Err(SchemaError::doubled(line, &text));
                    }
                    *key = Some(text.into_owned());
                    continue;
                }
                scalar(&text, style)
            }
            Event::SequenceStart(..) | Event::MappingStart(..) => {
                if matches!(open.last(), Some(OpenNode::Map(_, None))) {
                    return Err(refuse("this key is a list or a map: use text"));
                }
                if open.len() == MAX_DEPTH {
                    return Err(refuse("this is nested too deeply: use at most 100 levels"));
                }
                open.push(match event {
                    Event::SequenceStart(..) => OpenNode::List(Vec::new()),
                    _ => OpenNode::Map(Map::new(), None),
                });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(OpenNode::List(items)) => Value::Array(items),
                Some(OpenNode::Map(entries, _)) => Value::Object(entries),
                None => return Err(refuse("this closes nothing: remove it")),
            },
            Event::DocumentStart(_) if root.is_some() => {
                return Err(refuse("this begins a second document: keep only one"));
            }
            Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::StreamStart
            | Event::StreamEnd
            | Event::Nothing => {
                continue;
            }
        };
        match open.last_mut() {
            Some(OpenNode::List(items)) => items.push(value),
            Some(OpenNode::Map(entries, key)) => {
                entries.extend(key.take().map(|key| (key, value)));
            }
            None => root = Some(value),
        }
    }
    Ok(root.unwrap_or_default())
}

/// Parses a scalar by YAML 1.2's core schema.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return text.into();
    }
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => true.into(),
        "false" | "False" | "FALSE" => false.into(),
        _ => number(text).unwrap_or_else(|| text.into()),
    }
}

fn number(text: &str) -> Option<Value> {
    let radix = |prefix: &str, radix| {
        text.strip_prefix(prefix)
            .and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    if let Some(number) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return Some(number.into());
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = digits.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'+' | b'-'));
    if !is_number {
        return None;
    }
    let plain = text.strip_prefix('+').unwrap_or(text);
    if digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if let Ok(number) = plain.parse::<i64>() {
            return Some(number.into());
        }
        if let Ok(number) = plain.parse::<u64>() {
            return Some(number.into());
        }
    }
    plain
        .parse()
        .ok()
        .and_then(Number::from_f64)
        .map(Value::Number)
}
