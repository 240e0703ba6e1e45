//! Structured content, shortened in its own shape.

use std::collections::HashSet;
use std::ops::Range;

use offcut::hint::Hint;
use offcut::json::{Kind, Node, View};
use serde_json::Value;

use crate::schema::OutputSchema;

/// Limits of strings in bytes and of lists in items, from mild to strict.
const LEVELS: [Limits; 5] = [
    Limits(16_384, 256),
    Limits(4_096, 64),
    Limits(1_024, 24),
    Limits(256, 8),
    Limits(32, 1),
];
/// Maximum number of bytes of a document besides the only string that is worth storing.
const MAX_OTHERS: usize = 1024;
/// Maximum number of drawings that are checked against the schema.
const MAX_CHECKS: usize = 24;

/// The field that carries the hint where no string can, if the schema allows another field.
const FIELD: &str = "offcut";
/// Maximum depth of a document that is cut.
const MAX_DEPTH: usize = 100;
/// Number of bytes by which a cut must make a string shorter.
const MIN_GAIN: usize = 40;
/// Maximum number of strings that are tried as carriers.
const MAX_CARRIERS: usize = 4;
/// Maximum number of lists whose lengths are told.
const MAX_LISTS: usize = 5;
/// Maximum length in bytes of a list's path, as it is told.
const MAX_PATH: usize = 64;

/// The string that makes up nearly all of a document.
pub(crate) fn only_string(document: Node<'_>) -> Option<Node<'_>> {
    let mut node = document;
    let length = document.range().len();
    let least = length - (length / 8).min(MAX_OTHERS);
    while node.kind() != Kind::String {
        let values = node.fields().map(|(_, value)| value);
        let mut inner = values.chain(node.items());
        node = inner.find(|value| value.range().len() >= least)?;
    }
    Some(node)
}

/// The document with another text in place of a `string` in it.
pub(crate) fn with_string(document: Node<'_>, string: Node<'_>, new: &str) -> String {
    let mut text = document.json().to_string();
    let (start, range) = (document.range().start, string.range());
    let range = range.start - start..range.end - start;
    text.replace_range(range, &Value::from(new).to_string());
    text
}

/// Shortens `document`, without duplicate keys, so that it takes about `room` bytes: long
/// strings are cut in the middle, long lists after their first items. Keys, numbers and short
/// strings stay, with their spelling. One string carries `hint`, which leads to the original.
///
/// `None` if that can't be done, or if the outcome would violate `schema` or be longer than half of
/// the original.
pub(crate) fn shorten(
    document: Node<'_>,
    hint: &Hint,
    room: usize,
    schema: &OutputSchema,
) -> Option<String> {
    let length = document.range().len();
    let (mut kept, mut refused) = (HashSet::new(), HashSet::new());
    for _ in 0..MAX_CHECKS {
        let drawing = fit(document, hint, room, &kept)?;
        let carrier = drawing.carrier(document, &refused)?;
        let text = with_hint(&drawing, &carrier, hint);
        let violations = schema.violations(&text)?;
        if violations.is_empty() {
            return (text.len() < length).then_some(text);
        }
        // The places of all other violations stay unchanged.
        let before = kept.len();
        kept.extend(violations.into_iter().filter(|path| *path != carrier.path));
        if kept.len() == before {
            refused.insert(carrier.path);
        }
    }
    None
}

/// The mildest drawing within `room`, or the strictest if it is within half of the document.
fn fit<'m>(
    document: Node<'m>,
    hint: &Hint,
    room: usize,
    kept: &'m HashSet<String>,
) -> Option<Drawing<'m>> {
    let mut added = hint.clone();
    added.preview.clear();
    let room = room.saturating_sub(Value::from(added.render()).to_string().len());
    let half = document.range().len() / 2;
    let draw = |limits: &Limits, most| {
        let mut drawing = Drawing {
            limits: *limits,
            most,
            kept,
            text: String::new(),
            path: String::new(),
            strings: Vec::new(),
            lists: Vec::new(),
        };
        drawing.value(document, 0).map(|()| drawing)
    };
    let mild = LEVELS
        .iter()
        .find_map(|limits| draw(limits, room.min(half)));
    mild.or_else(|| draw(LEVELS.last()?, half))
}

/// The text of a drawing in which one string carries the hint.
fn with_hint(drawing: &Drawing<'_>, carrier: &Carrier, hint: &Hint) -> String {
    let mut preview = carrier.value.clone();
    for (path, shown, all) in &drawing.lists {
        if !preview.is_empty() {
            preview.push('\n');
        }
        preview += &format!("[… {path} {shown}/{all} …]");
    }
    let mut hint = hint.clone();
    hint.preview = preview;
    let hint = Value::from(hint.render());
    let mut text = drawing.text.clone();
    match &carrier.range {
        Some(range) => text.replace_range(range.clone(), &hint.to_string()),
        None => {
            let comma = if text == "{}" { "" } else { "," };
            let field = format!("{comma}\"{FIELD}\":{hint}");
            text.insert_str(text.len() - 1, &field);
        }
    }
    text
}

/// Limits of a string in bytes, and of a list in items.
#[derive(Clone, Copy, Debug)]
struct Limits(usize, usize);

/// A string that may carry the hint.
#[derive(Clone, Debug)]
struct Carrier {
    /// JSON pointer to it, and to the whole document for a new field.
    path: String,
    /// Its place in the drawing; `None` for a new field at the end of the document.
    range: Option<Range<usize>>,
    /// The text beside the hint.
    value: String,
}

/// A document as it is shown, and the strings in it that may carry the hint.
#[derive(Debug)]
struct Drawing<'m> {
    limits: Limits,
    /// Maximum number of bytes.
    most: usize,
    /// Paths at which everything stays as it is.
    kept: &'m HashSet<String>,
    text: String,
    path: String,
    /// The longest strings that are cut or are texts, longest first, with the lengths that they had.
    strings: Vec<(usize, Carrier)>,
    /// The lists that are cut: path, items shown and items.
    lists: Vec<(String, usize, usize)>,
}

impl Drawing<'_> {
    /// The best string to carry the hint that is not `refused`: a new field in `document`, then the longest one.
    fn carrier(&self, document: Node<'_>, refused: &HashSet<String>) -> Option<Carrier> {
        let field = (document.is_object() && !document.has(FIELD)).then(|| Carrier {
            path: String::new(),
            range: None,
            value: String::new(),
        });
        let strings = self.strings.iter().map(|(_, one)| one);
        let mut carriers = field.iter().chain(strings);
        carriers.find(|one| !refused.contains(&one.path)).cloned()
    }

    /// Draws a value. `None` if that takes too many bytes.
    fn value(&mut self, node: Node<'_>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match node.kind() {
            _ if self.kept.contains(&self.path) => self.copy(node),
            Kind::String => self.string(node.as_str()?, node),
            Kind::Array => self.list(node, depth)?,
            Kind::Object => self.object(node, depth)?,
            Kind::Null | Kind::Bool | Kind::Number => self.copy(node),
        }
        (self.text.len() <= self.most).then_some(())
    }

    fn copy(&mut self, node: Node<'_>) {
        self.text += &node.json().to_string();
    }

    fn string(&mut self, value: &str, node: Node<'_>) {
        let limit = self.limits.0;
        let start = self.text.len();
        let is_cut = value.len() > limit + MIN_GAIN;
        let shown = is_cut.then(|| cut(value, limit));
        match &shown {
            Some(shown) => self.text += &Value::from(&**shown).to_string(),
            None => self.copy(node),
        }
        let all = &mut self.strings;
        let at = all.partition_point(|(length, _)| *length >= value.len());
        if at < MAX_CARRIERS && (is_cut || is_prose(&self.path, value)) {
            let carrier = Carrier {
                path: self.path.clone(),
                range: Some(start..self.text.len()),
                value: shown.unwrap_or_else(|| value.to_owned()),
            };
            all.insert(at, (value.len(), carrier));
            all.truncate(MAX_CARRIERS);
        }
    }

    fn list(&mut self, node: Node<'_>, depth: usize) -> Option<()> {
        let all = node.items().count();
        let shown = all.min(self.limits.1);
        self.text.push('[');
        for (nth, item) in node.items().take(shown).enumerate() {
            if nth > 0 {
                self.text.push(',');
            }
            self.inside(&nth.to_string(), item, depth)?;
        }
        self.text.push(']');
        if shown < all && self.lists.len() < MAX_LISTS {
            let told = self.path.floor_char_boundary(MAX_PATH);
            self.lists.push((self.path[..told].to_owned(), shown, all));
        }
        Some(())
    }

    fn object(&mut self, node: Node<'_>, depth: usize) -> Option<()> {
        self.text.push('{');
        for (nth, (name, value)) in node.fields().enumerate() {
            if nth > 0 {
                self.text.push(',');
            }
            self.text += &Value::from(name).to_string();
            self.text.push(':');
            self.inside(&pointed(name), value, depth)?;
        }
        self.text.push('}');
        Some(())
    }

    fn inside(&mut self, step: &str, node: Node<'_>, depth: usize) -> Option<()> {
        let length = self.path.len();
        self.path.push('/');
        self.path += step;
        self.value(node, depth + 1)?;
        self.path.truncate(length);
        Some(())
    }
}

/// Fields by which a program tells one thing from another.
const IDENTITIES: [&str; 14] = [
    "id", "name", "key", "type", "kind", "title", "label", "path", "uri", "url", "from", "to",
    "email", "ref",
];

/// Returns true if the string at `path` is a text for a reader, not a name that a program goes by: it has
/// several words, and no field with a name's name holds it.
fn is_prose(path: &str, value: &str) -> bool {
    let is_index = |step: &&str| step.bytes().all(|byte| byte.is_ascii_digit());
    let field = path.rsplit('/').find(|step| !is_index(step));
    let field = field.unwrap_or_default().to_ascii_lowercase();
    let is_identity = IDENTITIES.iter().any(|name| field.ends_with(name));
    !is_identity && value.split_whitespace().nth(1).is_some()
}

/// A key as a step of a JSON pointer.
fn pointed(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The beginning and the end of a text.
fn cut(text: &str, limit: usize) -> String {
    let head = &text[..text.floor_char_boundary(limit - limit / 3)];
    let tail = &text[text.ceil_char_boundary(text.len() - limit / 3)..];
    format!(
        "{head}[… {}B …]{tail}",
        text.len() - head.len() - tail.len()
    )
}
