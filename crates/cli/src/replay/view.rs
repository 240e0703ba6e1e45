//! Views of a message that became shorter: its texts as the model sees them, and the originals
//! that its hints lead to.

use std::collections::HashSet;
use std::sync::Arc;

use offcut::ToolReduction;
use offcut::backend::Location;
use offcut::format::Message;
use offcut::hint::Hint;

use crate::evidence::{Kind, Need, argued, names, parts, quotable, text_of, unnumbered};
use crate::measure::{self, key};

/// Text that is shown instead of a message's own.
#[derive(Clone, Debug)]
pub(super) struct ReplacedText {
    pub(super) text: String,
    /// Keys of its names, lines and values.
    keys: HashSet<u64>,
    /// The text without line numbers, then the sentences of hints.
    plain: String,
    /// Originals behind its hints.
    pub(super) originals: Vec<(Location, Arc<str>)>,
}

impl ReplacedText {
    /// The view of a text that leads nowhere.
    pub(super) fn of_text(text: String) -> Self {
        let plain = unnumbered(&text);
        let mut keys = measure::values(&plain);
        keys.extend(names(&text).into_keys().map(|name| key(Kind::Name, name)));
        keys.extend(
            quotable(&text)
                .into_iter()
                .map(|line| key(Kind::Quote, line)),
        );
        Self {
            text,
            keys,
            plain,
            originals: Vec::new(),
        }
    }

    /// The view of a message in which nothing is a hint.
    pub(super) fn of_message(message: &Message) -> Self {
        Self::of_text(texts_of(message).join("\n"))
    }

    /// Collects what is still shown of a message: the previews of its hints, and text that is not a
    /// hint.
    pub(super) async fn of(message: &Message, reduction: &ToolReduction) -> Self {
        let (mut shown, mut said, mut originals) = (Vec::new(), Vec::new(), Vec::new());
        for text in texts_of(message) {
            let Some(hints) = Hint::parse_all(&text) else {
                shown.push(text);
                continue;
            };
            for hint in hints {
                said.push(hint.prose);
                if let Some(location) = hint.location
                    && let Some(Ok(original)) = reduction.read_original(&location).await
                {
                    let original = Arc::from(String::from_utf8_lossy(&original));
                    originals.push((location, original));
                }
                shown.push(with_paths(&hint.preview));
            }
        }
        let mut view = Self::of_text(shown.join("\n"));
        view.originals = originals;
        let said = said.join("\n");
        view.keys.extend(measure::values(&said));
        view.plain.extend(["\n", &said]);
        view
    }

    /// Returns true if `need` stands in what is shown.
    pub(super) fn holds(&self, need: &Need) -> bool {
        let text = &need.text;
        match need.kind {
            Kind::Own => self.has_words(text),
            // A verdict has one or two pieces, each in a line.
            Kind::Verdict => text.split('\n').all(|piece| self.plain.contains(piece)),
            Kind::Failing | Kind::Edit => self.plain.contains(text),
            kind => self.keys.contains(&key(kind, text)),
        }
    }

    /// Returns true if `text` is a name or a line of what is shown.
    pub(super) fn has_words(&self, text: &str) -> bool {
        let mut kinds = [Kind::Name, Kind::Quote].into_iter();
        kinds.any(|kind| self.keys.contains(&key(kind, text)))
    }

    /// The stored original that holds `text`.
    pub(super) fn source_of(&self, text: &str) -> Option<&(Location, Arc<str>)> {
        self.originals
            .iter()
            .find(|(_, original)| position(original, text).is_some())
    }
}

/// The texts that a message shows: its parts, and the strings in arguments of its calls.
fn texts_of(message: &Message) -> Vec<String> {
    let (content, calls) = parts(message);
    let mut texts: Vec<String> = match message {
        Message::Tool { .. } => content.chunks(1).map(text_of).collect(),
        _ => vec![text_of(content)],
    };
    texts.extend(calls.iter().flat_map(|call| argued(&call.arguments)));
    texts
}

/// The offset of `text` in stored content, or of the line in which it begins. Stored arguments spell
/// it as JSON does, and a file reader's result has numbers before its lines.
pub(super) fn position(original: &str, text: &str) -> Option<usize> {
    let spelled = || {
        let spelled = serde_json::to_string(text).ok()?;
        let spelled = &spelled[1..spelled.len() - 1];
        (spelled != text).then(|| original.find(spelled)).flatten()
    };
    let among_numbers = || {
        if !text.contains('\n') {
            return None;
        }
        let plain = unnumbered(original);
        let line = plain[..plain.find(text)?].matches('\n').count();
        let before = original.split_inclusive('\n').take(line);
        Some(before.map(str::len).sum())
    };
    let found = original.find(text).or_else(spelled);
    found.or_else(among_numbers)
}

/// A preview with the path before each match, as the search wrote it: a preview by file names it once.
fn with_paths(preview: &str) -> String {
    let is_by_file = preview.starts_with('[') && preview.contains(" matches in ");
    let (mut path, mut rows) = ("", Vec::new());
    for row in preview.split('\n') {
        let behind = row.trim_start_matches(|sign: char| sign.is_ascii_digit());
        if is_by_file && behind.len() < row.len() && behind.starts_with([':', '-']) {
            rows.push(format!("{path}{}{row}", &behind[..1]));
            continue;
        }
        let head = row.strip_suffix(')');
        let head = head.and_then(|head| head.rsplit_once(" ("));
        path = head.map_or(path, |(head, _)| head);
        rows.push(row.to_owned());
    }
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_by_file_are_seen_with_their_paths() {
        let preview =
            "[3 matches in 2 files]\n1|a (b)\na/b.rs (2)\n7:f() (x)\n9-g()\nc.rs:1:h()\n[… more …]";
        let seen = "[3 matches in 2 files]\n1|a (b)\na/b.rs (2)\na/b.rs:7:f() (x)\na/b.rs-9-g()\nc.rs:1:h()\n[… more …]";
        assert_eq!(with_paths(preview), seen);
        assert_eq!(with_paths("a (2)\n7:f()"), "a (2)\n7:f()");
    }

    #[test]
    fn a_text_is_found_as_it_is_stored() {
        assert_eq!(position("a\nb c\n", "c"), Some(4));
        assert_eq!(position(r#"{"a": "x\ny"}"#, "x\ny"), Some(7));
        let numbered = "  9→fn f() {\n 10→    g();\n 11→}\n";
        assert_eq!(position(numbered, "    g();\n}"), numbered.find(" 10"));
        assert_eq!(position(numbered, "f() {\n    g();"), Some(0));
        assert_eq!(position(numbered, "    g();\n    h();"), None);
    }
}
