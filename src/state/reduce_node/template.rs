//! Prompt templates: `{key}` is a value of the state, `{{` and `}}` are braces.

use serde_json::Value;

use super::error::ReduceNodeBuildError;

#[derive(Clone, Debug, Default)]
pub(super) struct Template(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Key(String),
}

impl Template {
    pub(super) fn parse(text: &str) -> Result<Self, ReduceNodeBuildError> {
        let wrong = |at: usize, problem| Err(ReduceNodeBuildError::Template { at, problem });
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
            if found == "}" {
                return wrong(at, "a closing brace without an opening one: write `}}` for a brace");
            }
            match behind.find(['{', '}']) {
                Some(end) if behind[end..].starts_with('}') => {
                    if behind[..end].is_empty() {
                        return wrong(at, "a placeholder without a name: write `{key}`, or `{{}}` for braces");
                    }
                    if !plain.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut plain)));
                    }
                    pieces.push(Piece::Key(behind[..end].to_owned()));
                    rest = &behind[end + 1..];
                }
                _ => return wrong(at, "an opening brace that nothing closes: write `{{` for a brace"),
            }
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            pieces.push(Piece::Text(plain));
        }
        if pieces.is_empty() {
            return wrong(0, "nothing: write what the model is to do");
        }
        Ok(Self(pieces))
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Key(key) => Some(key.as_str()),
            Piece::Text(_) => None,
        })
    }

    /// The text with every value in its place, or the first key that has none. Values are not looked into again.
    pub(super) fn render<'s>(&self, value: impl Fn(&str) -> Option<&'s Value>) -> Result<String, &str> {
        let mut out = String::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Key(key) => match value(key) {
                    Some(value) => out.push_str(&text_of(value)),
                    None => return Err(key),
                },
            }
        }
        Ok(out)
    }
}

/// A string as it is, anything else as compact JSON.
pub(super) fn text_of(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(template: &str, value: &Value) -> String {
        Template::parse(template).unwrap().render(|key| value.get(key)).unwrap()
    }

    #[test]
    fn n4_braces() {
        let state = json!({"a": "{b} }} {{", "b": 1, "k e.y[0]": [true, null]});
        assert_eq!(render("{a}|{b}|{{a}}|{{{b}}}|}}{{", &state), "{b} }} {{|1|{a}|{1}|}{");
        assert_eq!(render("{k e.y[0]}", &state), "[true,null]");
        assert_eq!(render("no key: ü", &state), "no key: ü");
    }

    #[test]
    fn n4_what_is_no_template() {
        for (text, place) in
            [("", 0), ("a {", 2), ("ü{", 2), ("}", 0), ("a }b", 2), ("{}", 0), ("{a{b}}", 0), ("{{}", 2), ("{a", 0)]
        {
            match Template::parse(text) {
                Err(ReduceNodeBuildError::Template { at, .. }) => assert_eq!(at, place, "{text}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }

    #[test]
    fn n1_the_first_missing_key_is_named() {
        let template = Template::parse("{a} {b} {c}").unwrap();
        let state = json!({"a": 1});
        assert_eq!(template.render(|key| state.get(key)), Err("b"));
        assert_eq!(template.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
    }
}
