//! Pages of the list of tools.

use std::collections::HashSet;

use offcut::json::{Edit, JsonText, New, Node, Step, View, put_into_text};
use serde_json::Value;

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

    pub(super) fn tools(&self) -> impl Iterator<Item = Node<'_>> {
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
                let kept = tools.items().map(|tool| New::Kept(tool.json()));
                let reader = New::Value(reader.clone());
                let list = New::List(kept.chain([reader]).collect());
                Some(vec![Edit::set(Vec::new(), "tools", list)])
            });
        }
        self.0.into_string()
    }
}
