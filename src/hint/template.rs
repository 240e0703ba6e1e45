//! Texts with placeholders.

use std::borrow::Cow;

use crate::backend::debug_as_chain;

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
        let mut pieces = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(brace) = rest.find(['{', '}']) {
            let at = text.len() - rest.len() + brace;
            plain.push_str(&rest[..brace]);
            let (found, behind) = rest[brace..].split_at(1);
            if let Some(behind) = behind.strip_prefix(found) {
                plain.push_str(found);
                rest = behind;
                continue;
            }
            let key = match behind.split_once('}') {
                _ if found == "}" => {
                    Err("a closing brace without an opening one: write `}}` for a brace")
                }
                Some(("", _)) => {
                    Err("a placeholder without a name: write `{key}`, or `{{}}` for braces")
                }
                Some((key, behind)) if !key.contains('{') => Ok((key, behind)),
                _ => Err("an opening brace that nothing closes: write `{{` for a brace"),
            };
            let (key, behind) = key.map_err(|problem| TemplateError { at, problem })?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(Piece::Key(key.to_owned()));
            rest = behind;
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
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
