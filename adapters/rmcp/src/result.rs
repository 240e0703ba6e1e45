//! Reduction of a tool's result.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::vec::IntoIter;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::{Body, OffloadError, Part, ToolCall, ToolOutput, ToolReduction};
use rmcp::model::{CallToolResult, ContentBlock, EmbeddedResource, Resource, ResourceContents};
use serde_json::Value;

/// Stores and replaces the parts of `result` over the limit. Within the limit it is unchanged.
pub(crate) async fn reduce(
    reduction: &ToolReduction,
    call: &ToolCall,
    mut result: CallToolResult,
) -> Result<CallToolResult, OffloadError> {
    let structured = result.structured_content.take();
    let (parts, taken) = take_apart(std::mem::take(&mut result.content), structured);
    let is_error = result.is_error == Some(true);
    let shown = reduction
        .truncate(
            call,
            ToolOutput {
                body: Body::Parts(parts),
                is_error,
            },
        )
        .await?;
    (result.content, result.structured_content) = taken.put_together(shown.parts);
    Ok(result)
}

/// The rest of a result while its texts are processed.
struct Taken {
    /// The blocks that held the texts, in order.
    shells: Vec<Shell>,
    structured: Structured,
}

/// A block without its text.
struct Shell {
    block: ContentBlock,
    /// Length of the text in bytes.
    length: usize,
    /// Fingerprint of the text.
    print: u64,
}

/// The structured content of a result, for programs. Servers often repeat it as text for clients
/// that can't read it.
enum Structured {
    None,
    /// Equals the text with this index.
    SameAs(usize, Value),
    /// A separate part, the last one.
    Alone,
}

fn take_apart(content: Vec<ContentBlock>, structured: Option<Value>) -> (Vec<Part>, Taken) {
    let mut taken = Taken {
        shells: Vec::new(),
        structured: Structured::None,
    };
    let mut parts = Vec::with_capacity(content.len() + 1);
    for mut block in content {
        match text_of(&mut block).map(std::mem::take) {
            Some(text) => {
                taken.shells.push(Shell {
                    block,
                    length: text.len(),
                    print: print(&text),
                });
                parts.push(Part::Text(text));
            }
            // Passed on as its own JSON, which `from_part` parses again.
            None => parts.push(Part::Opaque(
                serde_json::to_value(&block).unwrap_or_default(),
            )),
        }
    }
    if let Some(value) = structured {
        let mut texts = parts.iter().filter_map(|part| {
            if let Part::Text(text) = part {
                Some(text)
            } else {
                None
            }
        });
        match texts
            .position(|text| serde_json::from_str::<Value>(text).is_ok_and(|said| said == value))
        {
            Some(text) => taken.structured = Structured::SameAs(text, value),
            None => {
                taken.structured = Structured::Alone;
                parts.push(Part::Json(value));
            }
        }
    }
    (parts, taken)
}

impl Taken {
    fn put_together(self, shown: Vec<Part>) -> (Vec<ContentBlock>, Option<Value>) {
        let has_document = shown.iter().any(|part| matches!(part, Part::Json(_)));
        let texts = shown
            .iter()
            .filter(|part| matches!(part, Part::Text(_)))
            .count();
        let replaced_document =
            usize::from(matches!(self.structured, Structured::Alone) && !has_document);
        // With fewer texts than blocks, several have been joined into one.
        let are_joined = texts != self.shells.len() + replaced_document;

        let mut twin = match self.structured {
            Structured::SameAs(text, value) => Some((text, value)),
            Structured::None | Structured::Alone => None,
        };
        let mut shells = self.shells.into_iter();
        let (mut content, mut document, mut seen) = (Vec::with_capacity(shown.len()), None, 0);
        for part in shown {
            match part {
                Part::Text(text) => {
                    let shell = if are_joined { None } else { shells.next() };
                    let is_changed = shell
                        .as_ref()
                        .is_none_or(|shell| shell.print != print(&text));
                    twin.take_if(|(text, _)| is_changed && (are_joined || *text == seen));
                    seen += 1;
                    content.push(fill(shell.map(|shell| shell.block), text, is_changed));
                }
                Part::Json(value) => document = Some(value),
                part => content.push(from_part(part)),
            }
        }
        content.extend(left_out(shells));
        (content, document.or(twin.map(|(_, value)| value)))
    }
}

/// Detects changed texts, since a handler may change a text without changing its length.
fn print(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Converts `part` to a separate block.
pub(crate) fn from_part(part: Part) -> ContentBlock {
    match part {
        Part::Text(text) => ContentBlock::text(text),
        Part::Media { mime, data } if mime.starts_with("audio/") => {
            ContentBlock::audio(STANDARD.encode(data), mime)
        }
        Part::Media { mime, data } => ContentBlock::image(STANDARD.encode(data), mime),
        Part::Link { url, .. } => ContentBlock::resource_link(Resource::new(url.clone(), url)),
        Part::Json(value) => ContentBlock::text(value.to_string()),
        Part::Opaque(value) => serde_json::from_value(value.clone())
            .unwrap_or_else(|_| ContentBlock::text(value.to_string())),
    }
}

/// Returns the text of a plain text block or of a text resource.
fn text_of(block: &mut ContentBlock) -> Option<&mut String> {
    match block {
        ContentBlock::Text(block) => Some(&mut block.text),
        ContentBlock::Resource(EmbeddedResource {
            resource: ResourceContents::TextResourceContents { text, .. },
            ..
        }) => Some(text),
        _ => None,
    }
}

/// Puts a text, perhaps a new one, into its block.
fn fill(shell: Option<ContentBlock>, text: String, is_changed: bool) -> ContentBlock {
    let Some(mut block) = shell else {
        return ContentBlock::text(text);
    };
    if let Some(place) = text_of(&mut block) {
        *place = text;
    }
    if is_changed
        && let ContentBlock::Resource(EmbeddedResource {
            resource: ResourceContents::TextResourceContents { mime_type, .. },
            ..
        }) = &mut block
    {
        // A hint is plain text, whatever type the resource had.
        *mime_type = Some("text/plain".into());
    }
    block
}

/// Links to the resources whose texts have been joined with others.
fn left_out(shells: IntoIter<Shell>) -> impl Iterator<Item = ContentBlock> {
    shells.filter_map(|Shell { block, length, .. }| match block {
        ContentBlock::Resource(EmbeddedResource {
            resource:
                ResourceContents::TextResourceContents {
                    uri,
                    mime_type,
                    meta,
                    ..
                },
            annotations,
            ..
        }) => {
            let mut link = Resource::new(uri.clone(), uri).with_size(length as u64);
            (link.mime_type, link.meta, link.annotations) = (mime_type, meta, annotations);
            Some(ContentBlock::resource_link(link))
        }
        _ => None,
    })
}
