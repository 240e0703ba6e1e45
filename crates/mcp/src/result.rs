//! Reduction of a tool's result.

use offcut::hint::Hint;
use offcut::json::{Edit, JsonText, New, Node, View, put_into_text};
use offcut::{Body, Part, Report, ToolCall, ToolOutput, ToolReduction};

use crate::blocks::{self, Block};
use crate::error::ReduceError;
use crate::same::same;
use crate::schema::OutputSchema;
use crate::structured::{only_string, shorten};

/// Minimum room in bytes for shortened structured content.
const MIN_ROOM: usize = 1024;

/// Shortens the `result` of `call`, the JSON of a `CallToolResult`. `None` if it stays unchanged.
///
/// - **Texts** of text blocks and of embedded resources that are over the limit are stored whole and
///   replaced by a preview and a hint. A resource keeps its `uri` and becomes `text/plain`. Several
///   texts that are stored as one become one text block; the resources among them stay as links.
/// - **`structuredContent`** over the limit is stored, as the text block that repeats it or by itself,
///   and shortened in its own shape: long strings lose their middle, long lists their last items, and
///   one string carries the hint. If it is little but one string, that string is what is stored, or what a text
///   block repeats; the only text, if it repeats all of it as JSON, is shortened as that is. The outcome is valid against `schema`. If it can't be short and
///   valid, it stays whole, or is left out if there is no schema.
/// - **Everything else** keeps its spelling: `isError`, `_meta`, images, audio, blobs, links, unknown fields.
///
/// # Errors
///
/// [`ReduceError::Ambiguous`] if it is not certain what the result means, and
/// [`ReduceError::Offload`] if the store failed and `on_offload_error` is `Fail`.
pub async fn reduce(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: impl Into<String>,
    schema: &OutputSchema,
) -> Result<Option<String>, ReduceError> {
    reduce_and_report(reduction, call, result, schema)
        .await
        .map(|(shown, _)| shown)
}

/// Does the same as [`reduce`], and says what was done; `None` for a tool whose results always stay.
pub(crate) async fn reduce_and_report(
    reduction: &ToolReduction,
    call: &ToolCall,
    result: impl Into<String>,
    schema: &OutputSchema,
) -> Result<(Option<String>, Option<Report>), ReduceError> {
    if !reduction.truncates(&call.name) {
        return Ok((None, None));
    }
    let mut result = JsonText::parse(result).map_err(|_| ReduceError::Ambiguous)?;
    let (output, document) = take_apart(&result)?;
    let truncated = reduction.truncate(call, output).await?;
    let (shown, report) = (truncated.parts, Some(truncated.report));
    let Some(Replaced {
        content,
        structured,
    }) = put_together(&result, shown, &document, schema)
    else {
        return Ok((None, report));
    };
    put_into_text(&mut result, |_| {
        let mut edits = vec![Edit::set(Vec::new(), "content", New::Text(content))];
        edits.extend(match structured {
            Structured::Whole => None,
            Structured::Short(text) => {
                Some(Edit::set(Vec::new(), "structuredContent", New::Text(text)))
            }
            Structured::LeftOut => Some(Edit::remove(Vec::new(), "structuredContent")),
        });
        Some(edits)
    });
    Ok((Some(result.into_string()), report))
}

/// The structured content of a result, for programs. Servers often repeat it as text for clients
/// that can't read it.
#[derive(Debug)]
enum Document {
    Missing,
    /// Means the same as a text, or its only long string is that text.
    SameAs {
        nth: usize,
        /// JSON pointer to the string.
        string: Option<String>,
    },
    /// Means the same as the only text. Its only long string is the part that stands for both.
    Twin {
        text: String,
        string: String,
    },
    /// A part of its own, the last one: all of it, or its only long string.
    Alone {
        text: String,
        string: Option<String>,
    },
}

impl Document {
    /// The only string that is stored. All else has to stay.
    fn string(&self) -> Option<&str> {
        match self {
            Self::Missing => None,
            Self::Twin { string, .. } => Some(string),
            Self::SameAs { string, .. } | Self::Alone { string, .. } => string.as_deref(),
        }
    }
}

/// Maximum number of values in a message, or in a text that may repeat structured content, that is read: each takes
/// up to a hundred bytes while a result is shortened.
pub(crate) const MAX_VALUES: usize = 1 << 20;
/// The most blocks without a text that a result may have.
const MAX_OTHERS: usize = 1_000;

fn take_apart(result: &JsonText) -> Result<(ToolOutput, Document), ReduceError> {
    let root = Node::root(result);
    let [content, structured, is_error] = root.pick(["content", "structuredContent", "isError"]);
    let blocks = Block::all(content);
    if !root.is_object() || !result.is_plain() {
        return Err(ReduceError::Ambiguous);
    }
    // A value takes a hundred times the memory of its shortest text.
    let texts = blocks.iter().filter_map(Block::text).count();
    if blocks.len() - texts > MAX_OTHERS {
        return Err(ReduceError::Ambiguous);
    }
    let mut parts: Vec<Part> = blocks.iter().map(Block::part).collect();
    let document = match structured.filter(|node| blocks::is_document(*node)) {
        None => Document::Missing,
        Some(structured) => match (twin(&blocks, structured), only_string(structured)) {
            (Some(0), Some((string, value))) if texts == 1 => {
                let text = value.to_owned();
                let stand_in = Part::Text(text.clone());
                let part = parts.iter_mut().find(|part| is_text(part));
                if let Some(part) = part {
                    *part = stand_in;
                }
                Document::Twin { text, string }
            }
            (Some(nth), _) => Document::SameAs { nth, string: None },
            (None, only) => {
                let mut texts = blocks.iter().filter_map(Block::text);
                let nth = only
                    .as_ref()
                    .and_then(|(_, value)| texts.position(|text| text == *value));
                let (string, text) = match only {
                    Some((path, value)) => (Some(path), value.to_owned()),
                    None => (None, structured.json().to_string()),
                };
                match nth {
                    Some(nth) => Document::SameAs { nth, string },
                    None => {
                        parts.push(Part::Text(text.clone()));
                        Document::Alone { text, string }
                    }
                }
            }
        },
    };
    let output = ToolOutput {
        body: Body::Parts(parts),
        is_error: is_error.and_then(View::as_bool) == Some(true),
    };
    Ok((output, document))
}

/// The index of the text that repeats the structured content.
fn twin(blocks: &[Block<'_>], structured: Node<'_>) -> Option<usize> {
    let texts = blocks.iter().filter_map(Block::text);
    let is_twin = |text: &str| {
        let begins = text.trim_start().starts_with(['{', '[']);
        let parsed = begins.then(|| JsonText::parse_within(text, MAX_VALUES).ok()?);
        let parsed = parsed.flatten();
        parsed.is_some_and(|text| text.is_plain() && same(Node::root(&text), structured))
    };
    texts.into_iter().position(is_twin)
}

struct Replaced {
    /// The new list of blocks.
    content: String,
    structured: Structured,
}

enum Structured {
    /// It stays as it is.
    Whole,
    Short(String),
    LeftOut,
}

/// Puts the parts that are to be shown in place of the result's own. `None` if nothing has changed.
fn put_together(
    result: &JsonText,
    mut shown: Vec<Part>,
    document: &Document,
    schema: &OutputSchema,
) -> Option<Replaced> {
    let [content, structured] = Node::root(result).pick(["content", "structuredContent"]);
    let blocks = Block::all(content);
    let texts: Vec<&str> = blocks.iter().filter_map(Block::text).collect();
    let is_alone = matches!(document, Document::Alone { .. });
    // With fewer texts than blocks, several have been joined into one.
    let are_joined =
        shown.iter().filter(|part| is_text(part)).count() != texts.len() + usize::from(is_alone);

    // The text that stands for the structured content, if it has changed.
    let standing = structured.zip(match document {
        _ if are_joined => shown.iter().find_map(text).map(str::to_owned),
        Document::Missing => None,
        Document::SameAs { nth, .. } => {
            let text = shown.iter().filter_map(text).nth(*nth);
            text.filter(|text| texts.get(*nth) != Some(text))
                .map(str::to_owned)
        }
        Document::Alone { text: own, .. } | Document::Twin { text: own, .. } => {
            let text = shown.iter().filter_map(text).next_back();
            text.filter(|text| own != text).map(str::to_owned)
        }
    });
    let in_shape = |schema: &OutputSchema| match (document, &standing) {
        (Document::Missing, _) | (_, None) => Structured::Whole,
        (_, Some((structured, standing))) => {
            shortened(result, *structured, standing, schema, document.string())
        }
    };
    let structured = in_shape(schema);
    if matches!(document, Document::Twin { .. })
        && !are_joined
        && let Some(part) = shown.iter_mut().find(|part| is_text(part))
    {
        // All else in it is stored nowhere. No schema binds a text.
        *part = Part::Text(match in_shape(&OutputSchema::None) {
            Structured::Short(text) => text,
            _ => texts.concat(),
        });
    }
    // Without a text that repeats it, the content became a text only to be stored. It is shown as one
    // only if nothing else shows it.
    if is_alone
        && !are_joined
        && !matches!(structured, Structured::LeftOut)
        && let Some(last) = shown.iter().rposition(is_text)
    {
        shown.remove(last);
    }
    let spelled: Vec<String> = blocks.iter().map(Block::spelled).collect();
    let new = blocks::put_together(&blocks, shown, are_joined);
    if new == spelled && matches!(structured, Structured::Whole) {
        return None;
    }
    let content = match (content, new == spelled) {
        // So a field that is not a list keeps its spelling too.
        (Some(content), true) => content.json().to_string(),
        _ => format!("[{}]", new.join(",")),
    };
    Some(Replaced {
        content,
        structured,
    })
}

fn is_text(part: &Part) -> bool {
    matches!(part, Part::Text(_))
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        _ => None,
    }
}

/// Shortens structured content for which the text `standing` is shown.
fn shortened(
    result: &JsonText,
    structured: Node<'_>,
    standing: &str,
    schema: &OutputSchema,
    string: Option<&str>,
) -> Structured {
    let room = standing.len().max(MIN_ROOM);
    let hint = Hint::parse(standing).filter(|_| result.is_plain());
    match hint.and_then(|hint| shorten(structured, &hint, room, schema, string)) {
        Some(text) => Structured::Short(text),
        // The rest of it is not stored.
        None if schema.is_none() && string.is_none() => Structured::LeftOut,
        None => Structured::Whole,
    }
}
