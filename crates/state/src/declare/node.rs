//! A parsed declaration: the shapes of JSON, with line numbers if known, and with repeated keys
//! kept.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::schema_error::{Place, SchemaError};
use crate::value::kind;

#[derive(Debug)]
pub(super) struct DeclaredNode {
    /// The line, unknown for JSON, and the path, set by the parent when the node is taken out.
    pub(super) place: Place,
    pub(super) shape: Shape,
}

#[derive(Debug)]
pub(super) enum Shape {
    Scalar(Value),
    List(Vec<DeclaredNode>),
    Map(Vec<(String, DeclaredNode)>),
}

impl DeclaredNode {
    /// A null, for parameters that were left out.
    pub(super) fn null(place: Place) -> Self {
        let shape = Shape::Scalar(Value::Null);
        Self { place, shape }
    }

    /// Sets the place but keeps the node's own line.
    pub(super) fn at(self, place: Place) -> Self {
        Self {
            place: place.on_line(self.place.line),
            ..self
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.shape, Shape::Scalar(Value::Null))
    }

    /// Describes the node's type, with its article.
    pub(super) fn described(&self) -> &'static str {
        match &self.shape {
            Shape::Scalar(value) => kind(value),
            Shape::List(_) => "a list",
            Shape::Map(_) => "a map",
        }
    }

    /// Creates an error that says the node has the wrong type.
    pub(super) fn wrong(&self, instead: &str) -> SchemaError {
        let message = format!("this is {}: {instead}", self.described());
        SchemaError::declaration(self.place.clone(), message)
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

    /// Returns the string.
    pub(super) fn string(self) -> Result<String, SchemaError> {
        match self.shape {
            Shape::Scalar(Value::String(text)) => Ok(text),
            _ => Err(self.wrong("write a string")),
        }
    }

    /// Looks up the value that the word stands for.
    pub(super) fn one_of<T: Copy>(self, words: &[(&str, T)]) -> Result<T, SchemaError> {
        let place = self.place.clone();
        let word = self.string()?;
        let found = words.iter().find(|(known, _)| *known == word);
        found.map(|(_, is)| *is).ok_or_else(|| {
            let known = listed(words.iter().map(|(known, _)| *known));
            let message = format!("unknown value `{word}`: use one of {known}");
            SchemaError::declaration(place, message)
        })
    }

    /// Returns the items of a list.
    pub(super) fn items(self, instead: &str) -> Result<Vec<Self>, SchemaError> {
        let Shape::List(items) = self.shape else {
            return Err(self.wrong(instead));
        };
        let items = items.into_iter().enumerate();
        Ok(items
            .map(|(at, item)| item.at(self.place.item(at)))
            .collect())
    }

    /// Returns the entries of a map, which may have only these keys, each at most once.
    pub(super) fn entries<const N: usize>(
        self,
        keys: [&str; N],
    ) -> Result<[Option<Self>; N], SchemaError> {
        let Shape::Map(entries) = self.shape else {
            return Err(self.wrong("write a map"));
        };
        let mut found = [const { None }; N];
        for (key, node) in entries {
            let node = node.at(self.place.at(&key));
            let Some(at) = keys.iter().position(|known| *known == key) else {
                let message = format!("unknown key `{key}`; allowed here: {}", listed(keys));
                return Err(SchemaError::declaration(node.place, message));
            };
            if found[at].is_some() {
                let message = format!("duplicate key `{key}`: remove one");
                return Err(SchemaError::declaration(node.place, message));
            }
            found[at] = Some(node);
        }
        Ok(found)
    }
}

/// Joins the words, each in backticks, for a message.
pub(super) fn listed<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.into_iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}

impl<'de> Deserialize<'de> for DeclaredNode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Reader)
    }
}

fn unplaced(shape: Shape) -> DeclaredNode {
    let place = Place::default();
    DeclaredNode { place, shape }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = DeclaredNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(value.into())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(value.into())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(value.into())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(value.into())))
    }

    fn visit_str<E>(self, value: &str) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(value.into())))
    }

    fn visit_unit<E>(self) -> Result<DeclaredNode, E> {
        Ok(unplaced(Shape::Scalar(Value::Null)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<DeclaredNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = from.next_element()? {
            items.push(item);
        }
        Ok(unplaced(Shape::List(items)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<DeclaredNode, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = from.next_entry()? {
            entries.push(entry);
        }
        Ok(unplaced(Shape::Map(entries)))
    }
}
