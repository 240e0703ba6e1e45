//! The list of tools: schemas are kept, and the reader is added.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use offcut::json::{Edit, JsonText, New, Node, Step, View, put_into_text};
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::schema::OutputSchema;

/// Names and schemas of the tools that the server has listed.
#[derive(Debug)]
pub(super) struct ListedTools {
    /// Schemas, each with the room for its bytes and those of the name.
    by_name: HashMap<String, (OwnedSemaphorePermit, OutputSchema)>,
    /// Room for those of all clients. Where there is none, results of further tools count as those of tools that
    /// are not known.
    room: Arc<Semaphore>,
}

impl ListedTools {
    pub(super) fn new(room: Arc<Semaphore>) -> Self {
        Self {
            by_name: HashMap::new(),
            room,
        }
    }

    /// Returns true if the server has listed a tool of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The schema of a tool's structured results.
    pub(super) fn schema(&self, name: &str) -> OutputSchema {
        let found = self.by_name.get(name);
        found.map(|(_, schema)| schema.clone()).unwrap_or_default()
    }

    /// Learns the tools of a page. Schemas of tools in `dropped` do not count.
    pub(super) fn learn(&mut self, page: &Page, dropped: &HashSet<String>) {
        for tool in page.tools() {
            let [name, schema] = tool.pick(["name", "outputSchema"]);
            let Some(name) = name.and_then(View::as_str) else {
                continue;
            };
            let length = name.len() + schema.map_or(0, |schema| schema.range().len());
            self.by_name.remove(name);
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let Ok(room) = self.room.clone().try_acquire_many_owned(length) else {
                continue;
            };
            let schema = match schema {
                Some(schema) if !dropped.contains(name) => {
                    let schema = schema.json().to_value();
                    schema.map_or(OutputSchema::Unknown, |schema| OutputSchema::new(&schema))
                }
                _ => OutputSchema::None,
            };
            self.by_name.insert(name.to_owned(), (room, schema));
        }
    }
}

/// The result of `tools/list`.
#[derive(Debug)]
pub(super) struct Page(JsonText);

impl Page {
    /// `None` if it is not one.
    pub(super) fn new(result: JsonText) -> Option<Self> {
        let is_page = Node::root(&result).get("tools").is_some_and(View::is_array);
        is_page.then_some(Self(result))
    }

    /// Returns true if a tool of this name is on it.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tools().any(|tool| tool.text("name") == name)
    }

    fn tools(&self) -> impl Iterator<Item = Node<'_>> {
        let tools = Node::root(&self.0).get("tools");
        tools.into_iter().flat_map(Node::items)
    }

    /// The cursor of the next page; `None` on the last.
    pub(super) fn next(&self) -> Option<String> {
        let cursor = Node::root(&self.0).text("nextCursor");
        (!cursor.is_empty()).then(|| cursor.to_owned())
    }

    /// The page without the schemas of tools in `dropped`, and with the `reader` if one is given.
    pub(super) fn shown(mut self, dropped: &HashSet<String>, reader: Option<&Value>) -> String {
        put_into_text(&mut self.0, |root| {
            let tools = root.get("tools").into_iter().flat_map(Node::items);
            let hidden = tools.enumerate().flat_map(|(nth, tool)| {
                let schemas = tool.fields().filter(|(name, _)| *name == "outputSchema");
                let count = schemas
                    .filter(|_| dropped.contains(tool.text("name")))
                    .count();
                // Of two, each removal takes the last.
                (0..count).map(move |_| {
                    Edit::remove(vec![Step::Field("tools"), Step::Item(nth)], "outputSchema")
                })
            });
            Some(hidden.collect())
        });
        if let Some(reader) = reader {
            put_into_text(&mut self.0, |root| {
                let tools = root.get("tools")?;
                let comma = if tools.items().next().is_some() {
                    ","
                } else {
                    ""
                };
                let spelled = tools.json().to_string();
                let list = format!("{}{comma}{reader}]", spelled.strip_suffix(']')?.trim_end());
                Some(vec![Edit::set(Vec::new(), "tools", New::Text(list))])
            });
        }
        self.0.into_string()
    }
}
