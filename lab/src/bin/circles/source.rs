//! Reads the names that a file uses and defines from its tokens.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A path such as `crate::hint::Draft`, as segments.
pub(crate) type Segments = Vec<String>;

/// Everything in a file that arrows are made of.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// Path of each import, by its name in this file.
    pub(crate) imports: BTreeMap<String, Segments>,
    /// Paths that its code names, with their lines.
    pub(crate) named: Vec<(Segments, usize)>,
    /// Methods of inherent `impl`s, each with the path of its type.
    pub(crate) methods: Vec<(Segments, String)>,
    /// Methods that its code calls, with their lines.
    pub(crate) called: Vec<(String, usize)>,
    /// Child modules that have files.
    pub(crate) children: BTreeSet<String>,
    /// Child modules that are tests.
    pub(crate) tests: BTreeSet<String>,
    /// Number of inline modules around the current position.
    inline: usize,
}

impl Source {
    pub(crate) fn read(tokens: TokenStream) -> Self {
        let mut source = Self::default();
        source.walk(&tokens.into_iter().collect::<Vec<_>>());
        source
    }

    fn walk(&mut self, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            at = match &tokens[at] {
                TokenTree::Punct(hash) if hash.as_char() == '#' => self.attribute(tokens, at),
                TokenTree::Group(group) => {
                    self.walk_inside(group.stream());
                    at + 1
                }
                TokenTree::Ident(word) => match word.to_string().as_str() {
                    "use" if !is_punct(tokens.get(at + 1), '<') => self.import(tokens, at),
                    "impl" => self.inherent_impl(tokens, at),
                    "mod" => self.module(tokens, at),
                    _ => self.path(tokens, at),
                },
                _ => at + 1,
            };
        }
    }

    fn walk_inside(&mut self, tokens: TokenStream) {
        self.walk(&tokens.into_iter().collect::<Vec<_>>());
    }

    /// Skips doc comments and test items.
    fn attribute(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let at = at + 1 + usize::from(is_punct(tokens.get(at + 1), '!'));
        let Some(TokenTree::Group(group)) = tokens.get(at) else {
            return at;
        };
        let text = group.stream().to_string();
        if text.starts_with("doc") {
            return at + 1;
        }
        if text.starts_with("cfg") && words(group.stream()).any(|word| word == "test") {
            let end = end_of_item(tokens, at + 1);
            let item = &tokens[at + 1..end];
            if let [.., TokenTree::Ident(name), TokenTree::Punct(_)] = item
                && item.iter().any(|token| is_word(Some(token), "mod"))
            {
                self.tests.insert(name.to_string());
            }
            return end;
        }
        self.walk_inside(group.stream());
        at + 1
    }

    fn import(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let end = at
            + tokens[at..]
                .iter()
                .take_while(|token| !is_punct(Some(token), ';'))
                .count();
        let is_public = match &tokens[..at] {
            [.., before, TokenTree::Group(_)] => is_word(Some(before), "pub"),
            [.., before] => is_word(Some(before), "pub"),
            [] => false,
        };
        let mut leaves = Vec::new();
        use_tree(&tokens[at + 1..end], &[], &mut leaves);
        for (name, path) in leaves {
            if !is_public {
                self.name(path.clone(), tokens[at].span().start().line);
            }
            self.imports.insert(name, path);
        }
        end + 1
    }

    /// Records the methods of `impl Type { … }`; the walk then continues inside it.
    fn inherent_impl(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let rest = &tokens[at + 1..];
        let Some(body) = rest.iter().position(is_braces) else {
            return at + 1;
        };
        let head = &rest[..body];
        let has_for = |token: &TokenTree| is_word(Some(token), "for");
        if !head.iter().any(has_for)
            && let TokenTree::Group(group) = &rest[body]
        {
            let inside = group.stream().into_iter().collect::<Vec<_>>();
            for pair in inside.windows(2) {
                if is_word(Some(&pair[0]), "fn") {
                    self.methods.push((type_path(head), pair[1].to_string()));
                }
            }
        }
        at + 1
    }

    fn module(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        if let Some(TokenTree::Group(inside)) = tokens.get(at + 2) {
            self.inline += 1;
            self.walk_inside(inside.stream());
            self.inline -= 1;
        } else {
            self.children
                .extend(tokens.get(at + 1).map(ToString::to_string));
        }
        at + 3
    }

    fn path(&mut self, tokens: &[TokenTree], at: usize) -> usize {
        let mut path = vec![tokens[at].to_string()];
        let mut end = at + 1;
        while let Some(TokenTree::Ident(word)) = after_colons(tokens, end) {
            path.push(word.to_string());
            end += 3;
        }
        let line = tokens[at].span().start().line;
        let before = |steps| at.checked_sub(steps).and_then(|before| tokens.get(before));
        let is_called = is_punct(tokens.get(end), '!') || is_parentheses(tokens.get(end));
        if is_punct(before(1), '.') && !is_punct(before(2), '.') {
            if is_called || is_punct(tokens.get(end), ':') {
                self.called.push((path.swap_remove(0), line));
            }
        } else if path.len() > 1
            || (is_called || path[0].starts_with(char::is_uppercase)) && !is_defined(before(1))
        {
            self.name(path, line);
        }
        end
    }

    fn name(&mut self, mut path: Segments, line: usize) {
        let supers = path.iter().take_while(|word| *word == "super").count();
        path.drain(..supers.min(self.inline));
        self.named.push((path, line));
    }
}

/// Returns true if the word after this one is defined here, not named.
fn is_defined(before: Option<&TokenTree>) -> bool {
    [
        "fn", "struct", "enum", "union", "trait", "type", "const", "static",
    ]
    .iter()
    .any(|keyword| is_word(before, keyword))
}

/// Collects the leaves of a `use` tree: the name in this file, and the path.
fn use_tree(tokens: &[TokenTree], prefix: &[String], leaves: &mut Vec<(String, Segments)>) {
    let mut path = prefix.to_vec();
    let mut name = None;
    let mut tokens = tokens.iter();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Group(group) => {
                let inside = group.stream().into_iter().collect::<Vec<_>>();
                for tree in inside.split(|token| is_punct(Some(token), ',')) {
                    use_tree(tree, &path, leaves);
                }
                return;
            }
            TokenTree::Ident(word) if word == "as" => {
                name = tokens.next().map(ToString::to_string);
            }
            TokenTree::Ident(word) if word == "self" && !path.is_empty() => {}
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Punct(star) if star.as_char() == '*' => path.push("*".to_owned()),
            _ => {}
        }
    }
    if let Some(last) = path.last() {
        leaves.push((name.unwrap_or_else(|| last.clone()), path));
    }
}

/// Finds `path::to::Type` in `<'a, T: Debug> path::to::Type<'a, T> where …`.
fn type_path(head: &[TokenTree]) -> Segments {
    let mut depth = 0;
    let mut path = Vec::new();
    for (at, token) in head.iter().enumerate() {
        let is_arrow = at > 0 && is_punct(head.get(at - 1), '-');
        match token {
            TokenTree::Punct(open) if open.as_char() == '<' => depth += 1,
            TokenTree::Punct(close) if close.as_char() == '>' && !is_arrow => depth -= 1,
            TokenTree::Ident(word) if word == "where" => break,
            TokenTree::Ident(word) if depth == 0 => path.push(word.to_string()),
            _ => {}
        }
    }
    path
}

/// Returns the end of an item: after its `;` or its body, or after the `,` of a field.
fn end_of_item(tokens: &[TokenTree], start: usize) -> usize {
    let is_use = tokens[start..]
        .iter()
        .take(3)
        .any(|token| is_word(Some(token), "use"));
    let ends = |token: &TokenTree| {
        is_punct(Some(token), ';') || !is_use && (is_braces(token) || is_punct(Some(token), ','))
    };
    tokens[start..]
        .iter()
        .position(ends)
        .map_or(tokens.len(), |at| start + at + 1)
}

fn after_colons(tokens: &[TokenTree], at: usize) -> Option<&TokenTree> {
    let colons = is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':');
    tokens.get(at + 2).filter(|_| colons)
}

fn words(tokens: TokenStream) -> Box<dyn Iterator<Item = String>> {
    Box::new(tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => words(group.stream()),
        other => Box::new(std::iter::once(other.to_string())),
    }))
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if *word == wanted)
}

fn is_braces(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

fn is_parentheses(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis)
}
