//! Content blocks of a result, and the parts that stand for them while the result is truncated.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use offcut::Part;
use offcut::json::{Edit, New, Node, View, put_into_text};
use serde_json::{Value, json};

/// A block of a result's `content`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block<'r> {
    node: Node<'r>,
    text: Option<BlockText<'r>>,
}

/// The text of a block.
#[derive(Clone, Copy, Debug)]
struct BlockText<'r> {
    value: &'r str,
    /// The embedded resource that holds it; `None` for a plain text block.
    resource: Option<Node<'r>>,
}

impl<'r> Block<'r> {
    /// The blocks of a list; none if it is not a list.
    pub(crate) fn all(content: Option<Node<'r>>) -> Vec<Self> {
        let items = content.into_iter().flat_map(Node::items);
        items
            .map(|node| Self {
                node,
                text: text_of(node),
            })
            .collect()
    }

    /// The text of a plain text block or of a text resource.
    pub(crate) fn text(&self) -> Option<&'r str> {
        self.text.map(|text| text.value)
    }

    /// The part that stands for this block.
    pub(crate) fn part(&self) -> Part {
        match self.text {
            Some(text) => Part::Text(text.value.to_owned()),
            None => Part::Opaque(self.opaque()),
        }
    }

    fn opaque(&self) -> Value {
        self.node.json().to_value().unwrap_or_default()
    }

    /// The block as it is.
    pub(crate) fn spelled(&self) -> String {
        self.node.json().to_string()
    }

    /// The block with another text, and everything else as it is. A resource becomes `text/plain`.
    fn with_text(&self, new: &str) -> String {
        let mut block = self.node.to_text();
        let is_resource = self.text.is_some_and(|text| text.resource.is_some());
        put_into_text(&mut block, |_| {
            let path = if is_resource { "/resource" } else { "" };
            let mut edits = vec![Edit::set(path.to_owned(), "text", New::Value(new.into()))];
            // A hint is plain text, whatever type the resource had.
            let kind = || Edit::set(path.to_owned(), "mimeType", New::Value("text/plain".into()));
            edits.extend(is_resource.then(kind));
            Some(edits)
        });
        block.into_string()
    }

    /// A link to the resource whose text was joined with others.
    fn link(&self) -> Option<String> {
        let BlockText {
            value, resource, ..
        } = self.text?;
        let resource = resource?;
        let uri = resource.text("uri");
        let mut link = format!(
            r#"{{"type":"resource_link","uri":{0},"name":{0},"size":{1}"#,
            Value::from(uri),
            value.len()
        );
        let kept = [
            ("mimeType", resource.get("mimeType")),
            ("_meta", resource.get("_meta")),
            ("annotations", self.node.get("annotations")),
        ];
        for (name, value) in kept {
            if let Some(value) = value {
                link += &format!(r#","{name}":{}"#, value.json());
            }
        }
        Some(link + "}")
    }
}

fn text_of(node: Node<'_>) -> Option<BlockText<'_>> {
    let [kind, text, resource] = node.pick(["type", "text", "resource"]);
    let (text, resource) = match kind?.as_str()? {
        "text" => (text?, None),
        "resource" => {
            let resource = resource?;
            (resource.get("text")?, Some(resource))
        }
        _ => return None,
    };
    Some(BlockText {
        value: text.as_str()?,
        resource,
    })
}

/// Puts the `shown` parts in place of `blocks`. With `are_joined`, all texts are in one.
pub(crate) fn put_together(
    blocks: &[Block<'_>],
    shown: Vec<Part>,
    are_joined: bool,
) -> Vec<String> {
    let mut texts = blocks.iter().filter(|block| block.text.is_some());
    let mut others = blocks
        .iter()
        .filter(|block| block.text.is_none())
        .peekable();
    let mut content = Vec::with_capacity(shown.len());
    for part in shown {
        let of_block = match &part {
            Part::Text(_) if are_joined => None,
            Part::Text(text) => texts.next().map(|block| match block.text() {
                Some(old) if old == text => block.spelled(),
                _ => block.with_text(text),
            }),
            Part::Opaque(value) => {
                let other = others.next_if(|block| block.opaque() == *value);
                other.map(Block::spelled)
            }
            _ => None,
        };
        content.push(of_block.unwrap_or_else(|| from_part(part).to_string()));
    }
    content.extend(texts.filter_map(Block::link));
    content
}

/// A plain text block.
pub(crate) fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// Converts `part` to a block of its own.
pub(crate) fn from_part(part: Part) -> Value {
    let media = |kind: &str, mime: String, data: &[u8]| {
        let data = STANDARD.encode(data);
        json!({"type": kind, "data": data, "mimeType": mime})
    };
    match part {
        Part::Text(text) => text_block(&text),
        Part::Media { mime, data } if mime.starts_with("audio/") => media("audio", mime, &data),
        Part::Media { mime, data } => media("image", mime, &data),
        Part::Link { url, .. } => json!({"type": "resource_link", "uri": url, "name": url}),
        Part::Opaque(value) if value.get("type").is_some_and(Value::is_string) => value,
        Part::Json(value) | Part::Opaque(value) => text_block(&value.to_string()),
    }
}
