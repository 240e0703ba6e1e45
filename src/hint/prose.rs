//! Hints without a location yet, and composition of their sentences.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::backend::Location;
use crate::preview::text::lines::Position;

use crate::hint::envelope::{Hint, Kind};
use crate::hint::sentence::{Language, Sentence};
use crate::hint::template::Template;
use crate::report::Subject;

/// A hint of truncation or clearing, before its location and its sentence are known.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// The hint without location, and without a sentence unless it keeps the one that it has.
    pub hint: Hint,
    /// The tool that returned the result or was given the arguments.
    pub tool: String,
    /// Media type of the cleared content, if it was not text.
    pub mime: Option<String>,
    /// The kind of content that was cleared.
    pub subject: Subject,
    /// Number of texts joined, once known.
    pub parts: usize,
}

impl Draft {
    /// A draft for a text of `bytes` bytes from `tool`, with the given preview.
    pub(crate) fn new(kind: Kind, bytes: u64, tool: &str, preview: String) -> Self {
        Self {
            hint: Hint {
                preview,
                ..Hint::new(kind, bytes)
            },
            tool: tool.to_owned(),
            mime: None,
            subject: Subject::Result,
            parts: 0,
        }
    }
}

/// All sentences of one language, built-in or replaced by templates.
#[derive(Clone, Debug)]
pub(crate) struct Prose {
    language: Language,
    /// In the order of [`Sentence::ALL`].
    sentences: Vec<Template>,
    /// Bytes of the templates that replace built-in sentences.
    of_templates: usize,
}

/// An invalid template of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`templates.{}.{}` {problem}", .language.name(), .sentence.name())]
pub struct WrongTemplate {
    /// The language.
    pub language: Language,
    /// The sentence.
    pub sentence: Sentence,
    /// The problem, and what to write instead.
    pub problem: String,
}

/// Length in bytes at which hints cut names of tools and media types, since a model or a tool wrote
/// them.
pub(crate) const MAX_NAME: usize = 64;

/// Bytes of a hint's built-in sentences with the longest names, and of names in as many templates.
const MAX_BUILT_IN: usize = 1024;

/// Words in place of a tool's missing name and of a missing media type, and the separator of sentences, in the
/// order of [`Language::ALL`].
const UNNAMED: [&str; Language::ALL.len()] = ["an unnamed tool", "未命名工具"];
const MEDIA: [&str; Language::ALL.len()] = ["media", "媒体"];
const SPACE: [&str; Language::ALL.len()] = [" ", ""];

/// Maximum number of sentences in a hint.
const MAX_SENTENCES: usize = 5;

impl Prose {
    /// The built-in sentences.
    pub(crate) fn of(language: Language) -> Self {
        let built_in = Sentence::ALL.iter().map(|one| language.sentence(*one));
        Self {
            language,
            sentences: built_in
                .map(|text| Template::parse(text).unwrap_or_default())
                .collect(),
            of_templates: 0,
        }
    }

    /// The built-in sentences, some replaced by templates.
    pub(crate) fn with(
        language: Language,
        templates: &BTreeMap<Sentence, String>,
    ) -> Result<Self, WrongTemplate> {
        let mut prose = Self::of(language);
        for (sentence, text) in templates {
            prose.of_templates += text.len();
            let checked = check(*sentence, text);
            prose.sentences[*sentence as usize] = checked.map_err(|problem| WrongTemplate {
                language,
                sentence: *sentence,
                problem,
            })?;
        }
        Ok(prose)
    }

    /// Completes a hint with its location; `None` means that nothing is stored.
    pub(crate) fn complete(
        &self,
        mut draft: Draft,
        location: Option<Location>,
        reader: Option<&str>,
    ) -> Hint {
        draft.hint.location = location;
        if draft.hint.prose.is_empty() {
            draft.hint.prose = self.of_hint(&draft, reader);
        }
        draft.hint
    }

    /// The sentences for a hint of truncation or clearing, which has its location. `reader` is the tool that
    /// can read the content, if hints name one.
    pub(crate) fn of_hint(&self, draft: &Draft, reader: Option<&str>) -> String {
        let (hint, language) = (&draft.hint, self.language as usize);
        let tool = head(&draft.tool, UNNAMED[language]);
        let mime = head(draft.mime.as_deref().unwrap_or_default(), MEDIA[language]);
        let (parts, bytes) = (draft.parts.to_string(), hint.bytes.to_string());
        let location = hint.location.as_ref();
        let values = [
            ("tool", &*tool),
            ("mime", &mime),
            ("reader", reader.unwrap_or_default()),
            ("parts", &parts),
            ("bytes", &bytes),
            ("location", location.map_or("-", Location::as_str)),
        ];
        let is_stored = hint.location.is_some();
        let first = match hint.kind {
            Kind::Link => Sentence::ClearedLink,
            Kind::Cleared if !is_stored => Sentence::Gone,
            Kind::Cleared if draft.subject == Subject::Arguments => Sentence::ClearedArguments,
            Kind::Cleared if draft.subject == Subject::UserText => Sentence::ClearedUserText,
            Kind::Cleared if draft.mime.is_some() => Sentence::ClearedMedia,
            Kind::Cleared => Sentence::Cleared,
            _ if !is_stored => Sentence::Unsaved,
            _ => Sentence::Truncated,
        };
        let is_readable = is_stored && hint.kind != Kind::Link && reader.is_some();
        let said = [
            (first, true),
            (Sentence::Joined, hint.flags.joined),
            (Sentence::Interrupted, hint.flags.interrupted),
            (Sentence::NotUtf8, hint.flags.not_utf8),
            (Sentence::Reader, is_readable),
        ];
        let said = said.into_iter().filter(|(_, is_said)| *is_said);
        let said: Vec<Sentence> = said.map(|(sentence, _)| sentence).collect();
        self.join(&said, &values)
    }

    /// Returns true if a hint has the words of ours about what it names, for the `reader` or any other.
    pub(crate) fn is_usual(&self, draft: &Draft, reader: Option<&str>) -> bool {
        let said = &*draft.hint.prose;
        let any = self.of_hint(draft, Some("\0"));
        let named = any.split_once('\0').and_then(|(before, after)| {
            let rest = said.strip_prefix(before)?;
            rest.strip_suffix(after)
        });
        // A longer or freer name may say what is said nowhere else.
        named.is_some_and(|name| is_tool_name(name) || reader == Some(name))
            || said == self.of_hint(draft, None)
    }

    /// A length in bytes that no sentences of a hint reach, in any language.
    pub(crate) fn longest(&self, reader: Option<&str>, location: &str) -> usize {
        MAX_BUILT_IN
            + self.of_templates
            + reader.map_or(0, str::len)
            + MAX_SENTENCES * location.len()
    }

    /// The sentences for a page from `from` up to `next`. `last` is the last line shown at least in
    /// part.
    pub(crate) fn of_page(
        &self,
        from: Position,
        last: u64,
        next: Option<Position>,
        is_empty: bool,
    ) -> String {
        let (first, last_line) = (from.line.to_string(), last.to_string());
        let offset = next.map(|next| next.to_string()).unwrap_or_default();
        let values = [("first", &*first), ("last", &last_line), ("next", &offset)];
        let first = if is_empty {
            Sentence::PageOfNothing
        } else {
            Sentence::Page
        };
        let next = next.map(|_| Sentence::Next);
        let said: Vec<Sentence> = [first].into_iter().chain(next).collect();
        self.join(&said, &values)
    }

    /// The sentences for `count` matching lines; `next` is the offset of more. The number of `matches` is said if
    /// it is larger.
    pub(crate) fn of_matches(&self, count: u64, matches: u64, next: Option<Position>) -> String {
        let is_several = matches > count;
        let [count, matches] = [count, matches].map(|number| number.to_string());
        let offset = next.map(|next| next.to_string()).unwrap_or_default();
        let sentence = match next {
            Some(_) => Sentence::MoreMatches,
            None if is_several => Sentence::SeveralMatches,
            None => Sentence::Matches,
        };
        let values = [("count", &*count), ("matches", &matches), ("next", &offset)];
        self.join(&[sentence], &values)
    }

    fn join(&self, sentences: &[Sentence], values: &[(&str, &str)]) -> String {
        let value = |key: &str| {
            let value = values.iter().find(|(known, _)| *known == key);
            value.map(|(_, value)| Cow::Borrowed(*value))
        };
        let templates = sentences.iter().map(|one| &self.sentences[*one as usize]);
        // The placeholders were checked when the template was set.
        let texts = templates.map(|template| template.render(value).unwrap_or_default());
        let texts: Vec<_> = texts.filter(|text| !text.is_empty()).collect();
        texts.join(SPACE[self.language as usize])
    }
}

/// Parses a template and checks its placeholders.
fn check(sentence: Sentence, text: &str) -> Result<Template, String> {
    let template = Template::parse(text)
        .map_err(|error| format!("is invalid at byte {}: {}", error.at, error.problem))?;
    let (required, optional) = (sentence.required(), sentence.optional());
    let keys: Vec<&str> = template.keys().collect();
    for (at, key) in keys.iter().enumerate() {
        if !required.contains(key) && !optional.contains(key) {
            let known = required.iter().chain(optional);
            let known: Vec<String> = known.map(|known| format!("`{{{known}}}`")).collect();
            return Err(format!(
                "has the unknown placeholder `{{{key}}}` (allowed: {}): write `{{{{` for a brace",
                known.join(", ")
            ));
        }
        if keys[..at].contains(key) {
            return Err(format!("has the placeholder `{{{key}}}` twice: remove one"));
        }
    }
    match required.iter().find(|required| !keys.contains(required)) {
        Some(missing) => Err(format!(
            "lacks the placeholder `{{{missing}}}`: add it where its value belongs"
        )),
        None => Ok(template),
    }
}

/// Cuts a name, which anyone may have written, and puts it on one line.
fn head(name: &str, unnamed: &str) -> String {
    if name.is_empty() {
        return unnamed.to_owned();
    }
    let is_odd = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    name[..name.floor_char_boundary(MAX_NAME)].replace(is_odd, "?")
}

/// Returns true for a name that all providers accept for a tool.
fn is_tool_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(is_of_name)
}

#[cfg(test)]
mod tests;
