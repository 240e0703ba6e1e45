//! A document with its strings and lists cut.

use std::collections::HashSet;
use std::ops::Range;

use offcut::json::{Kind, Node, View};
use serde_json::Value;

/// The field that carries the hint where no string can, if the schema allows another field.
pub(super) const FIELD: &str = "offcut";
/// Maximum depth of a document that is cut.
const MAX_DEPTH: usize = 100;
/// Number of bytes by which a cut must make a string shorter.
const MIN_GAIN: usize = 40;
/// Maximum number of strings of each kind that are tried as carriers.
const MAX_CARRIERS: usize = 4;
/// Maximum number of lists whose lengths are told.
const MAX_LISTS: usize = 5;
/// Maximum length in bytes of a list's path, as it is told.
const MAX_PATH: usize = 64;

/// Limits of a string in bytes, and of a list in items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits(pub(super) usize, pub(super) usize);

/// A string that may carry the hint.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    /// JSON pointer to it, and to the whole document for a new field.
    pub(super) path: String,
    /// Its place in the drawing; `None` for a new field at the end of the document.
    pub(super) range: Option<Range<usize>>,
    /// The text beside the hint.
    pub(super) value: String,
}

/// A document as it is shown, and the strings in it that may carry the hint.
#[derive(Debug)]
pub(super) struct Drawing<'m> {
    document: Node<'m>,
    pub(super) text: String,
    path: String,
    /// The longest of the strings that are cut, and of the texts that are not, longest first, with the lengths that
    /// they had.
    cut: Vec<(usize, Carrier)>,
    whole: Vec<(usize, Carrier)>,
    /// The lists that are cut: path, items shown and items.
    pub(super) lists: Vec<(String, usize, usize)>,
}

/// The limits of a drawing.
#[derive(Clone, Copy)]
pub(super) struct DrawingTask<'t> {
    pub(super) limits: Limits,
    /// Maximum number of bytes.
    pub(super) most: usize,
    /// Paths at which everything stays as it is.
    pub(super) kept: &'t HashSet<String>,
    /// The path of the only string that is cut, if all else stays.
    pub(super) only: Option<&'t str>,
}

impl DrawingTask<'_> {
    /// Draws `document`. `None` if that takes too many bytes.
    pub(super) fn draw<'m>(&self, document: Node<'m>) -> Option<Drawing<'m>> {
        let mut drawing = Drawing {
            document,
            text: String::new(),
            path: String::new(),
            cut: Vec::new(),
            whole: Vec::new(),
            lists: Vec::new(),
        };
        drawing.value(document, self, 0)?;
        Some(drawing)
    }
}

impl Drawing<'_> {
    /// The strings that may carry the hint, best first: cut strings by length, a new field, and other
    /// texts by length.
    pub(super) fn carriers(&self) -> impl Iterator<Item = Carrier> {
        let field = (self.document.is_object() && !self.document.has(FIELD)).then(|| Carrier {
            path: String::new(),
            range: None,
            value: String::new(),
        });
        fn strings(all: &[(usize, Carrier)]) -> impl Iterator<Item = Carrier> {
            all.iter().map(|(_, one)| one.clone())
        }
        strings(&self.cut).chain(field).chain(strings(&self.whole))
    }

    fn value(&mut self, node: Node<'_>, task: &DrawingTask<'_>, depth: usize) -> Option<()> {
        if depth > MAX_DEPTH {
            return None;
        }
        match node.kind() {
            _ if task.kept.contains(&self.path) => self.copy(node),
            Kind::String if task.only.is_none_or(|only| only == self.path) => {
                self.string(node.as_str()?, node, task.limits.0);
            }
            Kind::Array => self.list(node, task, depth)?,
            Kind::Object => self.object(node, task, depth)?,
            Kind::Null | Kind::Bool | Kind::Number | Kind::String => self.copy(node),
        }
        (self.text.len() <= task.most).then_some(())
    }

    fn copy(&mut self, node: Node<'_>) {
        self.text += &node.json().to_string();
    }

    fn string(&mut self, value: &str, node: Node<'_>, limit: usize) {
        let start = self.text.len();
        let is_cut = value.len() > limit + MIN_GAIN;
        let shown = is_cut.then(|| cut(value, limit));
        match &shown {
            Some(shown) => self.text += &Value::from(&**shown).to_string(),
            None => self.copy(node),
        }
        let all = if is_cut {
            &mut self.cut
        } else if is_prose(&self.path, value) {
            &mut self.whole
        } else {
            return;
        };
        let at = all.partition_point(|(length, _)| *length >= value.len());
        if at < MAX_CARRIERS {
            let carrier = Carrier {
                path: self.path.clone(),
                range: Some(start..self.text.len()),
                value: shown.unwrap_or_else(|| value.to_owned()),
            };
            all.insert(at, (value.len(), carrier));
            all.truncate(MAX_CARRIERS);
        }
    }

    fn list(&mut self, node: Node<'_>, task: &DrawingTask<'_>, depth: usize) -> Option<()> {
        let all = node.items().count();
        let shown = match task.only {
            Some(_) => all,
            None => all.min(task.limits.1),
        };
        self.text.push('[');
        for (nth, item) in node.items().take(shown).enumerate() {
            if nth > 0 {
                self.text.push(',');
            }
            self.inside(&nth.to_string(), item, task, depth)?;
        }
        self.text.push(']');
        if shown < all && self.lists.len() < MAX_LISTS {
            self.lists.push((told(&self.path), shown, all));
        }
        Some(())
    }

    fn object(&mut self, node: Node<'_>, task: &DrawingTask<'_>, depth: usize) -> Option<()> {
        self.text.push('{');
        for (nth, (name, value)) in node.fields().enumerate() {
            if nth > 0 {
                self.text.push(',');
            }
            self.text += &Value::from(name).to_string();
            self.text.push(':');
            self.inside(&pointed(name), value, task, depth)?;
        }
        self.text.push('}');
        Some(())
    }

    fn inside(
        &mut self,
        step: &str,
        node: Node<'_>,
        task: &DrawingTask<'_>,
        depth: usize,
    ) -> Option<()> {
        let length = self.path.len();
        self.path.push('/');
        self.path += step;
        self.value(node, task, depth + 1)?;
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
pub(super) fn pointed(name: &str) -> String {
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

/// A path as a model is told: without control characters, and not long.
fn told(path: &str) -> String {
    let short = &path[..path.floor_char_boundary(MAX_PATH)];
    let visible = |character: char| {
        if character.is_control() {
            '?'
        } else {
            character
        }
    };
    short.chars().map(visible).collect()
}
