//! Reduction of a tool's result.

use std::borrow::Cow;

use offcut::hint::Hint;
use offcut::json::{Edit, JsonText, Kind, New, Node, View, put_into_text};
use offcut::{Body, OffloadError, Part, Report, ToolCall, ToolOutput, ToolReduction};

use crate::blocks::{self, Block};
use crate::same::same;
use crate::schema::OutputSchema;
use crate::structured::{only_string, shorten, with_string};

/// Minimum room in bytes for shortened structured content.
const MIN_ROOM: usize = 1024;

/// A result can't be shortened. It should then be passed on unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReduceError {
    /// The result is not an object, has a key twice, a text that is not valid Unicode, or over 1 000
    /// blocks without text, so that what it means is not certain.
    #[error(
        "the result is not plain JSON (an object without duplicate keys, with valid Unicode), so it stays as it is"
    )]
    Ambiguous,
    /// The store failed, and `on_offload_error` is `Fail`.
    #[error("the result could not be stored")]
    Offload(#[from] OffloadError),
}

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
    let edits = put_together(&result, shown, document.as_ref(), schema);
    let Some(edits) = edits else {
        return Ok((None, report));
    };
    put_into_text(&mut result, |_| Some(edits));
    Ok((Some(result.into_string()), report))
}

/// The part that stands for the structured content of a result, which is for programs. Servers often repeat it as text
/// for clients that can't read it.
#[derive(Debug)]
struct Document<'r> {
    /// The number of texts before the part: of all blocks', if it is a part of its own.
    nth: usize,
    /// The part's text. If it is another than its block's, the block repeats all, and the part is the string alone.
    text: Cow<'r, str>,
    /// The only long string, if that is all that the part holds. All else has to stay.
    string: Option<Node<'r>>,
}

/// Maximum number of values in a message, or in a text that may repeat structured content, that is read: each takes
/// up to a hundred bytes while a result is shortened.
pub(crate) const MAX_VALUES: usize = 1 << 20;
/// The most blocks without a text that a result may have.
const MAX_OTHERS: usize = 1_000;

fn take_apart(result: &JsonText) -> Result<(ToolOutput, Option<Document<'_>>), ReduceError> {
    let root = Node::root(result);
    let [content, structured, is_error] = root.pick(["content", "structuredContent", "isError"]);
    let blocks = Block::all(content);
    if !root.is_object() || !result.is_plain() {
        return Err(ReduceError::Ambiguous);
    }
    let texts: Vec<&str> = blocks.iter().filter_map(Block::text).collect();
    // A value takes a hundred times the memory of its shortest text.
    if blocks.len() - texts.len() > MAX_OTHERS {
        return Err(ReduceError::Ambiguous);
    }
    let mut parts: Vec<Part> = blocks.iter().map(Block::part).collect();
    let structured =
        structured.filter(|node| matches!(node.kind(), Kind::Array | Kind::Object | Kind::String));
    let document = structured.map(|structured| {
        let only = only_string(structured).and_then(|string| Some((string, string.as_str()?)));
        let (nth, text, string) = match (twin(&texts, structured), only) {
            (Some(0), Some((string, value))) if texts.len() == 1 => {
                if let Some(part) = parts.iter_mut().find(|part| text(part).is_some()) {
                    *part = Part::Text(value.to_owned());
                }
                (0, value.into(), Some(string))
            }
            (Some(nth), _) => (nth, texts[nth].into(), None),
            (None, only) => {
                let (string, text): (_, Cow<'_, str>) = match only {
                    Some((string, value)) => (Some(string), value.into()),
                    None => (None, structured.json().to_string().into()),
                };
                let nth = texts.iter().position(|one| *one == text);
                if nth.is_none() {
                    parts.push(Part::Text(text.clone().into_owned()));
                }
                (nth.unwrap_or(texts.len()), text, string)
            }
        };
        Document { nth, text, string }
    });
    let output = ToolOutput {
        body: Body::Parts(parts),
        is_error: is_error.and_then(View::as_bool) == Some(true),
    };
    Ok((output, document))
}

/// The index of the text that repeats the structured content.
fn twin(texts: &[&str], structured: Node<'_>) -> Option<usize> {
    let is_twin = |text: &&str| {
        let begins = text.trim_start().starts_with(['{', '[']);
        let parsed = begins.then(|| JsonText::parse_within(*text, MAX_VALUES).ok()?);
        let parsed = parsed.flatten();
        parsed.is_some_and(|text| text.is_plain() && same(Node::root(&text), structured, 0))
    };
    texts.iter().position(is_twin)
}

/// Puts the parts that are to be shown in place of the result's own. `None` if nothing has changed.
fn put_together(
    result: &JsonText,
    mut shown: Vec<Part>,
    document: Option<&Document<'_>>,
    schema: &OutputSchema,
) -> Option<Vec<Edit<'static>>> {
    let [content, structured] = Node::root(result).pick(["content", "structuredContent"]);
    let blocks = Block::all(content);
    let texts: Vec<&str> = blocks.iter().filter_map(Block::text).collect();
    let is_alone = document.is_some_and(|document| document.nth == texts.len());
    // With fewer texts than blocks, several have been joined into one.
    let are_joined = shown.iter().filter(|part| text(part).is_some()).count()
        != texts.len() + usize::from(is_alone);

    // The text that stands for the structured content, if it has changed.
    let standing = document.and_then(|document| {
        let mut shown = shown.iter().filter_map(text);
        let standing = shown.nth(if are_joined { 0 } else { document.nth })?;
        let is_new = are_joined || *standing != document.text;
        is_new.then(|| (document.string, standing.to_owned()))
    });
    // All else in a text that repeats the content is stored nowhere, and no schema binds a text.
    let with_standing = |structured| match &standing {
        Some((Some(string), standing)) => Some(with_string(structured, *string, standing)),
        _ => None,
    };
    let shortened = || {
        let (string, standing) = standing.as_ref()?;
        let (structured, hint) = (structured?, Hint::parse(standing)?);
        if string.is_none() {
            return shorten(structured, &hint, standing.len().max(MIN_ROOM), schema);
        }
        let new = with_standing(structured)?;
        let is_valid = schema.violations(&new)?.is_empty();
        (is_valid && new.len() < structured.range().len()).then_some(new)
    };
    let edit = match (shortened(), &standing) {
        (Some(text), _) => Some(Edit::set(
            String::new(),
            "structuredContent",
            New::Text(text),
        )),
        (None, Some((None, _))) if matches!(schema, OutputSchema::None) => {
            Some(Edit::remove(String::new(), "structuredContent"))
        }
        // The rest of it is not stored.
        _ => None,
    };
    let is_left_out = edit.as_ref().is_some_and(|edit| edit.value.is_none());
    let repeated = document.and_then(|document| texts.get(document.nth));
    if let (Some(repeated), Some(document)) = (repeated, document)
        && *repeated != document.text
        && !are_joined
        && let Some(part) = shown.iter_mut().find(|part| text(part).is_some())
    {
        let short = structured.and_then(with_standing);
        *part = Part::Text(short.unwrap_or_else(|| (*repeated).to_owned()));
    }
    // Without a text that repeats it, the content became a text only to be stored. It is shown as one
    // only if nothing else shows it.
    if is_alone
        && !are_joined
        && !is_left_out
        && let Some(last) = shown.iter().rposition(|part| text(part).is_some())
    {
        shown.remove(last);
    }
    let spelled: Vec<String> = blocks.iter().map(Block::spelled).collect();
    let new = blocks::put_together(&blocks, shown, are_joined);
    let content = (new != spelled).then(|| {
        let list = New::Text(format!("[{}]", new.join(",")));
        Edit::set(String::new(), "content", list)
    });
    let edits: Vec<Edit<'_>> = content.into_iter().chain(edit).collect();
    (!edits.is_empty()).then_some(edits)
}

fn text(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(text),
        _ => None,
    }
}
