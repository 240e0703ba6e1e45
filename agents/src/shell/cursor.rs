//! A position in a line.

use super::facts::Facts;
use super::kind::Shell;

/// The number of substitutions and subshells that may be inside each other.
const MAX_DEPTH: usize = 50;

/// A here-document.
#[derive(Debug)]
pub(super) struct Document {
    pub(super) delimiter: String,
    /// Tabs at the beginning of its lines are removed.
    pub(super) without_tabs: bool,
    /// A backslash hides the line feed after it.
    pub(super) has_escapes: bool,
}

/// A line that is being read.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    pub(super) shell: Shell,
    pub(super) facts: Facts,
    /// Reads the commands of a substitution, up to its `)`.
    substitution: fn(&mut Cursor<'a>) -> Option<()>,
    line: &'a str,
    at: usize,
    depth: usize,
    /// Here-documents that begin after this line.
    documents: Vec<Document>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(
        line: &'a str,
        shell: Shell,
        substitution: fn(&mut Cursor<'a>) -> Option<()>,
    ) -> Self {
        Self {
            shell,
            facts: Facts::default(),
            substitution,
            line,
            at: 0,
            depth: 0,
            documents: Vec::new(),
        }
    }

    /// The next byte.
    pub(super) fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    /// The text that comes next.
    pub(super) fn rest(&self) -> &'a str {
        // After a word, so never inside a character.
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Returns true if `text` comes next.
    pub(super) fn is_next(&self, text: &str) -> bool {
        self.line.as_bytes()[self.at..].starts_with(text.as_bytes())
    }

    /// Passes over `text` if it comes next.
    pub(super) fn take(&mut self, text: &str) -> bool {
        let is_next = self.is_next(text);
        if is_next {
            self.at += text.len();
        }
        is_next
    }

    /// Takes the next byte.
    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    /// Passes over spaces, tabs, and line feeds that a backslash hides.
    pub(super) fn skip_blanks(&mut self) {
        while self.take(" ") || self.take("\t") || self.take("\\\n") {}
    }

    /// Passes over blanks, line feeds and comments.
    pub(super) fn skip_lines(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b'\n') => self.end_line()?,
                Some(b'#') => self.skip_comment(),
                _ => return Some(()),
            }
        }
    }

    /// Passes over a comment, up to the line feed after it.
    pub(super) fn skip_comment(&mut self) {
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// Takes note of a here-document.
    pub(super) fn expect_document(&mut self, document: Document) {
        self.documents.push(document);
    }

    /// Returns true if a here-document has not begun.
    pub(super) fn expects_document(&self) -> bool {
        !self.documents.is_empty()
    }

    /// Passes over a line feed, and over the here-documents that begin after it. `None` if one does
    /// not end, or if its end is not certain.
    pub(super) fn end_line(&mut self) -> Option<()> {
        self.at += 1;
        for document in std::mem::take(&mut self.documents) {
            loop {
                let rest = self.line.get(self.at..).filter(|rest| !rest.is_empty())?;
                let text = rest.split('\n').next()?;
                // The last line has no line feed, which the end of the rewritten line adds.
                self.at += (text.len() + 1).min(rest.len());
                let text = if document.without_tabs {
                    text.trim_start_matches('\t')
                } else {
                    text
                };
                if text == document.delimiter {
                    break;
                }
                if document.has_escapes && text.ends_with('\\') {
                    return None;
                }
            }
        }
        Some(())
    }

    /// Reads the commands of a substitution or a subshell, and its `)`.
    pub(super) fn substitution(&mut self) -> Option<()> {
        self.nested(self.substitution)
    }

    /// Reads something that is inside something else of its kind. `None` if there is too much of it.
    pub(super) fn nested(&mut self, read: impl FnOnce(&mut Self) -> Option<()>) -> Option<()> {
        if self.depth == MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Some(())
    }
}
