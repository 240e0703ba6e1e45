//! The reader as a tool.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::matches::Wanted;
use super::page::{PageCutter, room};
#[cfg(feature = "query")]
use super::query;
use super::words::{DESCRIPTIONS, Refusal};
use super::{MIN_PAGE, decoded, matches, overhead};
use crate::backend::BackendError;
use crate::backend::content::{Stored, media_type};
use crate::content::{Part, ToolCall, ToolError, ToolOutput};
use crate::hint::Position;
use crate::preview::Preview;
use crate::session::Session;
use crate::tool::{Tool, ToolDefinition};

/// `read_file { path, offset?, limit?, pattern?, context?, count?, query? }`, a tool that reads stored
/// content back one bounded page at a time, finds lines in it, and answers questions about it in jq's
/// language (feature `query`).
///
/// It reads only content that its own reduction stored in its own session. Its answers are always
/// within the truncation limit, so they are never truncated or stored themselves.
#[derive(Clone, Debug)]
pub struct ReadFileTool {
    session: Session,
}

impl ReadFileTool {
    /// Size limit of a compiled `pattern`, in bytes.
    pub const MAX_PATTERN: usize = 256 << 10;

    pub(crate) fn new(session: Session) -> Self {
        Self { session }
    }
}

#[async_trait]
impl Tool for ReadFileTool {
    fn definition(&self) -> ToolDefinition {
        let description = &DESCRIPTIONS[self.session.settings.language as usize];
        let mut properties = json!({
            "path": {"type": "string", "description": description.path},
            "offset": {"type": ["integer", "string"], "description": description.offset},
            "limit": {"type": "integer", "minimum": 1, "description": description.limit},
            "pattern": {"type": "string", "description": description.pattern},
            "context": {"type": "integer", "minimum": 0, "description": description.context},
            "count": {"type": "boolean", "description": description.count}
        });
        if ANSWERS_QUERIES {
            properties["query"] = json!({"type": "string", "description": description.query});
        }
        ToolDefinition {
            name: self.session.reader_name().to_owned(),
            description: description.tool.to_owned(),
            parameters: json!({
                "type": "object",
                "properties": properties,
                "required": ["path"]
            }),
        }
    }

    async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let room = room(&self.session, &call.name);
        let answer = read(&self.session, &call.arguments, room).await;
        answer.map_err(|refusal| {
            let error = refusal.into_error(self.session.settings.language);
            // Errors about a pattern repeat the pattern, so they may be long.
            error.with_message(|message| Preview::HeadTail.show(message, room))
        })
    }
}

/// A parsed call of the reader.
#[derive(Clone, Debug, PartialEq)]
struct ReadRequest {
    path: String,
    offset: Offset,
    wanted: Wanted,
    pattern: Option<String>,
    query: Option<String>,
}

/// A query that costs too much unwinds.
const ANSWERS_QUERIES: bool = cfg!(all(feature = "query", panic = "unwind"));
/// Content longer than this, in bytes, does not have its lines counted for each page.
const MAX_COUNTED: u64 = 8 << 20;
/// The most lines of `context`.
const MAX_CONTEXT: u64 = 100;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Offset {
    From(Position),
    FromEnd(u64),
}

impl ReadRequest {
    fn parse(arguments: &str) -> Result<Self, Refusal> {
        let given: Value = serde_json::from_str(arguments).map_err(Refusal::InvalidArguments)?;
        let field = |name: &str| {
            let others = SYNONYMS.iter().find(|(ours, _)| *ours == name);
            let others = others.map_or("", |(_, others)| others).split_whitespace();
            let mut given = [name]
                .into_iter()
                .chain(others)
                .filter_map(|name| given.get(name));
            given.find(|value| !value.is_null())
        };
        let Some(path) = field("path").and_then(Value::as_str) else {
            return Err(Refusal::NoPath);
        };
        let offset = field("offset").map_or(Some(Offset::From(Position::START)), parse_offset);
        let offset = offset.ok_or(Refusal::InvalidOffset)?;
        let lines = |name, given: Option<&Value>, least| {
            let given = given.map(|lines| number(lines)?.parse().ok());
            let given = given.map(|lines| lines.filter(|lines| *lines >= least));
            let given = given.map(|lines| lines.ok_or(Refusal::NotLines(name, least)));
            given.transpose()
        };
        let number_of_lines = field("count").filter(|count| count.is_number());
        let limit = lines("limit", field("limit").or(number_of_lines), 1)?;
        let text = |name| match field(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.is_empty())),
            // Models search for codes such as 404.
            Some(code @ Value::Number(_)) => Ok(number(code)),
            Some(_) => Err(Refusal::NotText(name)),
        };
        let (pattern, query) = (text("pattern")?, text("query")?);
        if pattern.is_some() && query.is_some() {
            return Err(Refusal::PatternAndQuery);
        }
        if query.is_some() && !ANSWERS_QUERIES {
            return Err(Refusal::NoQueries);
        }
        Ok(Self {
            path: path.to_owned(),
            offset,
            wanted: Wanted {
                max_rows: limit,
                context: lines("context", field("context"), 0)?
                    .map_or(0, |lines| lines.min(MAX_CONTEXT)),
                count_only: matches!(field("count"), Some(Value::Bool(true))),
            },
            pattern,
            query,
        })
    }
}

/// Other names that models write for the reader's arguments.
const SYNONYMS: [(&str, &str); 6] = [
    ("path", "file filename file_name file_path location uri url"),
    (
        "offset",
        "line start start_line from from_line line_number skip",
    ),
    ("limit", "lines max_lines num_lines line_count max"),
    ("pattern", "regex regexp search grep match filter"),
    ("context", "before after around context_lines"),
    ("query", "jq expression select"),
];

/// A number, or one in a string. Some clients write all numbers as 3.0.
fn number(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.trim().to_owned()),
        Value::Number(number) => Some(number.to_string().trim_end_matches(".0").to_owned()),
        _ => None,
    }
}

fn parse_offset(offset: &Value) -> Option<Offset> {
    let text = number(offset)?;
    match text.strip_prefix('-') {
        Some(lines) => {
            let lines = lines.parse().ok().filter(|lines| *lines > 0);
            lines.map(Offset::FromEnd)
        }
        // Models ask for line 0 when they mean the beginning.
        None if text == "0" => Some(Offset::From(Position::START)),
        None => Position::parse(&text).map(Offset::From),
    }
}

/// Answers a call with these `arguments` in at most `room` bytes of text.
async fn read(session: &Session, arguments: &str, room: usize) -> Result<ToolOutput, Refusal> {
    let request = ReadRequest::parse(arguments)?;
    let Some(stored) = session.resolve(&request.path) else {
        return Err(Refusal::UnknownPath);
    };
    let is_plain = request.pattern.is_none() && request.query.is_none();
    if is_plain && media_type(&stored.key).is_some() {
        return media(&stored).await;
    }
    let (stored, bytes) = decoded(stored).await?;
    let from = match request.offset {
        Offset::From(position) => position,
        Offset::FromEnd(_) if !is_plain => return Err(Refusal::NegativeOffset),
        Offset::FromEnd(lines) => {
            let line = count_lines(&stored).await?.saturating_sub(lines) + 1;
            Position { line, byte: 0 }
        }
    };
    let (wanted, prose) = (request.wanted, &session.prose);
    let room = room.saturating_sub(overhead(&stored.location, prose));
    let room = room.max(MIN_PAGE);
    let mut cutter = PageCutter::new(from, wanted.max_rows, room);
    let answer = match (&request.pattern, &request.query) {
        (Some(pattern), _) => {
            let across_lines = matches::crosses_lines(pattern);
            let pattern = matches::compile(pattern, ReadFileTool::MAX_PATTERN)
                .map_err(Refusal::InvalidPattern)?;
            let mut finder = matches::Finder::new(pattern, across_lines, from, wanted, room);
            stored.scan(|block, _| finder.push(block)).await?;
            let hint = finder.finish(bytes, stored.location, prose);
            hint.ok_or(Refusal::SlowPattern)?.render()
        }
        #[cfg(feature = "query")]
        (None, Some(query)) => query::answer(&stored, query.clone(), cutter)
            .await?
            .text(prose),
        (None, _) => {
            let see = |block: &[u8], total| cutter.push(block) || total <= MAX_COUNTED;
            let total = stored.scan(see).await?;
            let page = cutter.finish(total);
            page.hint(bytes, stored.location, prose).render()
        }
    };
    Ok(answer.into())
}

async fn count_lines(stored: &Stored) -> Result<u64, BackendError> {
    let mut end = Position::START;
    stored
        .scan(|bytes, _| {
            end = end.after(bytes);
            true
        })
        .await?;
    Ok(end.lines())
}

/// Returns a stored image, sound, video or PDF as media.
async fn media(stored: &Stored) -> Result<ToolOutput, Refusal> {
    let mime = media_type(&stored.key).unwrap_or_default().to_owned();
    match stored.whole().await? {
        Some(data) => Ok(ToolOutput::parts(vec![Part::Media { mime, data }])),
        None => Err(Refusal::TooLarge),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r1_arguments_are_read_as_models_write_them() {
        let parse = |arguments: &str| {
            ReadRequest::parse(arguments).map(|request| (request.offset, request.wanted.max_rows))
        };
        let line = |line, byte| Offset::From(Position { line, byte });
        assert_eq!(parse(r#"{"path":"a"}"#).unwrap(), (line(1, 0), None));
        assert_eq!(
            parse(r#"{"path":"a","offset":7,"limit":"5"}"#).unwrap(),
            (line(7, 0), Some(5))
        );
        assert_eq!(
            parse(r#"{"path":"a","offset":3.0,"limit":10.0,"context":2.0}"#).unwrap(),
            (line(3, 0), Some(10))
        );
        assert_eq!(
            parse(r#"{"path":"a","offset":"12+4000"}"#).unwrap(),
            (line(12, 4000), None)
        );
        assert_eq!(
            parse(r#"{"path":"a","offset":-20}"#).unwrap(),
            (Offset::FromEnd(20), None)
        );
        assert_eq!(
            parse(r#"{"path":"a","offset":0,"pattern":null}"#).unwrap(),
            (line(1, 0), None)
        );
        let request = ReadRequest::parse(r#"{"path":"a","pattern":404.0}"#).unwrap();
        assert_eq!(request.pattern.as_deref(), Some("404"));
        for bad in [
            "",
            "{}",
            r#"{"path":1}"#,
            r#"{"path":"a","pattern":["b"]}"#,
            r#"{"path":"a","query":true}"#,
            r#"{"path":"a","offset":"x"}"#,
            r#"{"path":"a","offset":1.5}"#,
            r#"{"path":"a","limit":0}"#,
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn r1_arguments_under_other_names_are_taken() {
        let same = |other: &str, ours: &str| {
            let parse = |arguments: &str| ReadRequest::parse(arguments).unwrap();
            assert_eq!(parse(other), parse(ours), "{other}");
        };
        same(
            r#"{"file_path":"a","start_line":5}"#,
            r#"{"path":"a","offset":5}"#,
        );
        same(
            r#"{"path":"a","regex":"x","after":2}"#,
            r#"{"path":"a","pattern":"x","context":2}"#,
        );
        same(
            r#"{"path":"a","jq":".","max_lines":3}"#,
            r#"{"path":"a","query":".","limit":3}"#,
        );
        same(r#"{"path":"a","count":5}"#, r#"{"path":"a","limit":5}"#);
        same(
            r#"{"path":"a","count":5,"limit":7}"#,
            r#"{"path":"a","limit":7}"#,
        );
        for ignored in [
            r#"{"path":"a","file_path":"b"}"#,
            r#"{"path":"a","line":null}"#,
            r#"{"path":"a","ofset":5,"":6}"#,
            r#"{"path":"a","reason":"to see more","verbose":true}"#,
        ] {
            same(ignored, r#"{"path":"a"}"#);
        }
    }
}
