//! A declaration as it was read: JSON's shapes, with lines where there are any and every key that
//! was written, repeated ones too.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::schema_error::{Place, SchemaError};
use crate::value::kind;

#[derive(Debug)]
pub(super) struct Node {
    /// From 1; `None` in JSON.
    pub(super) line: Option<usize>,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar(Value),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn unplaced(shape: Shape) -> Self {
        Self { line: None, shape }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Scalar(Value::Null))
    }

    /// What it is, with its article.
    pub(super) fn described(&self) -> &'static str {
        match &self.shape {
            Shape::Scalar(value) => kind(value),
            Shape::List(_) => "a list",
            Shape::Map(_) => "a map",
        }
    }

    pub(super) fn into_value(self) -> Value {
        match self.shape {
            Shape::Scalar(value) => value,
            Shape::List(items) => items.into_iter().map(Self::into_value).collect(),
            Shape::Map(entries) => Value::Object(
                entries
                    .into_iter()
                    .map(|(key, node)| (key, node.into_value()))
                    .collect::<Map<_, _>>(),
            ),
        }
    }

    /// The text that it is.
    pub(super) fn string(self, place: &Place) -> Result<String, SchemaError> {
        match self.shape {
            Shape::Scalar(Value::String(text)) => Ok(text),
            _ => Err(SchemaError::declaration(
                place.clone().on_line(self.line),
                format!("this is {}: write a string", self.described()),
            )),
        }
    }

    /// What its word stands for.
    pub(super) fn one_of<T: Copy>(
        self,
        place: &Place,
        words: &[(&str, T)],
    ) -> Result<T, SchemaError> {
        let place = place.clone().on_line(self.line);
        let word = self.string(&place)?;
        words
            .iter()
            .find_map(|(known, is)| (*known == word).then_some(*is))
            .ok_or_else(|| {
                let known: Vec<_> = words
                    .iter()
                    .map(|(known, _)| format!("`{known}`"))
                    .collect();
                SchemaError::declaration(
                    place,
                    format!("there is no `{word}` here; there are {}", known.join(", ")),
                )
            })
    }

    /// The entries of a map that has these keys and no others, each at most once.
    pub(super) fn entries<const N: usize>(
        self,
        place: &Place,
        keys: [&str; N],
    ) -> Result<[Option<Self>; N], SchemaError> {
        let Shape::Map(entries) = self.shape else {
            return Err(SchemaError::declaration(
                place.clone(),
                format!("this is {}: write a map", self.described()),
            ));
        };
        let mut found = [const { None }; N];
        for (key, node) in entries {
            let here = place.at(&key).on_line(node.line);
            let Some(at) = keys.iter().position(|known| *known == key) else {
                let known = keys.map(|known| format!("`{known}`")).join(", ");
                return Err(SchemaError::declaration(
                    here,
                    format!("there is no `{key}` here; there are {known}"),
                ));
            };
            if found[at].is_some() {
                return Err(SchemaError::declaration(
                    here,
                    format!("`{key}` is there twice"),
                ));
            }
            found[at] = Some(node);
        }
        Ok(found)
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(value.into())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(value.into())))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(value.into())))
    }

    fn visit_unit<E>(self) -> Result<Node, E> {
        Ok(Node::unplaced(Shape::Scalar(Value::Null)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(Node::unplaced(Shape::List(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Node, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = from.next_entry()? {
            entries.push(entry);
        }
        Ok(Node::unplaced(Shape::Map(entries)))
    }
}
