//! Texts with placeholders.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::backend::debug_as_chain;
use crate::preview::pattern::pattern;

/// A brace, two of them, or a placeholder.
static BRACES: LazyLock<Regex> = LazyLock::new(|| pattern(r"\{\{|\}\}|\{[^{}]*\}|[{}]"));

/// A text with placeholders: `{name}` stands for a value, `{{` and `}}` for braces. Placeholders
/// inside values are not replaced.
///
/// ```
/// use offcut::template::Template;
///
/// let template = Template::parse("{greeting}, {{you}}!")?;
/// let text = template.render(|key| (key == "greeting").then(|| "Hello {x}".into()));
/// assert_eq!(text, Ok("Hello {x}, {you}!".to_owned()));
/// # Ok::<(), offcut::template::TemplateError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Key(String),
}

/// A text that is not a template.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("invalid template at byte {at}: {problem}")]
#[non_exhaustive]
pub struct TemplateError {
    /// The offset of the problem, in bytes from 0.
    pub at: usize,
    /// The problem, and what to write instead.
    pub problem: &'static str,
}

debug_as_chain!(TemplateError);

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    ///
    /// A brace is not closed or not opened, or a placeholder has no name.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let (mut pieces, mut plain, mut done) = (Vec::new(), String::new(), 0);
        for found in BRACES.find_iter(text) {
            plain += &text[done..found.start()];
            done = found.end();
            let problem = match found.as_str() {
                "{{" | "}}" => {
                    plain += &found.as_str()[1..];
                    continue;
                }
                "}" => "a closing brace without an opening one: write `}}` for a brace",
                "{" => "an opening brace that nothing closes: write `{{` for a brace",
                "{}" => "a placeholder without a name: write `{key}`, or `{{}}` for braces",
                key => {
                    pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    pieces.push(Piece::Key(key[1..key.len() - 1].to_owned()));
                    continue;
                }
            };
            let at = found.start();
            return Err(TemplateError { at, problem });
        }
        pieces.push(Piece::Text(plain + &text[done..]));
        Ok(Self(pieces))
    }

    /// Names of the placeholders, in order, including repeated ones.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Key(key) => Some(key.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// Returns the text with all values filled in.
    ///
    /// # Errors
    ///
    /// The first placeholder without a value.
    pub fn render<'s>(&self, value: impl Fn(&str) -> Option<Cow<'s, str>>) -> Result<String, &str> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Key(key) => out.push_str(&value(key).ok_or(key.as_str())?),
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(template: &str, values: &[(&str, &str)]) -> String {
        let value = |key: &str| {
            values
                .iter()
                .find(|(known, _)| *known == key)
                .map(|(_, value)| Cow::from(*value))
        };
        Template::parse(template).unwrap().render(value).unwrap()
    }

    #[test]
    fn n4_doubled_braces_are_literal() {
        let values = [("a", "{b} }} {{"), ("b", "1"), ("k e.y[0]", "x")];
        assert_eq!(
            render("{a}|{b}|{{a}}|{{{b}}}|}}{{", &values),
            "{b} }} {{|1|{a}|{1}|}{"
        );
        assert_eq!(render("{k e.y[0]}", &values), "x");
        assert_eq!(render("no key: ü", &values), "no key: ü");
    }

    #[test]
    fn n4_wrong_templates_are_refused_with_their_place() {
        for (text, place) in [
            ("a {", 2),
            ("ü{", 2),
            ("}", 0),
            ("a }b", 2),
            ("{}", 0),
            ("{a{b}}", 0),
            ("{{}", 2),
            ("{a", 0),
        ] {
            assert_eq!(
                Template::parse(text).map_err(|wrong| wrong.at),
                Err(place),
                "{text}"
            );
        }
    }

    #[test]
    fn n1_the_first_missing_key_is_named() {
        let template = Template::parse("{a} {b} {c}").unwrap();
        assert_eq!(
            template.render(|key| (key == "a").then(|| "1".into())),
            Err("b")
        );
        assert_eq!(template.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
