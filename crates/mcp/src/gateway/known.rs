//! The server as far as it is known: its tools, and the reader's name among its tools.

use std::collections::HashMap;

use offcut::ToolReduction;
use offcut::json::{Edit, JsonText, New, Node, View, put_into_text};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::settings::McpGateway;
use crate::schema::OutputSchema;

/// The reader's names where the server has a tool of the name that was set.
const OTHER_NAMES: [&str; 2] = ["read_stored_result", "read_stored_result_2"];

/// A server as one client sees it.
#[derive(Debug)]
pub(super) struct KnownServer {
    /// `None` if there is no name for the reader, so that nothing may be shortened.
    pub(super) reduction: Option<ToolReduction>,
    /// Schemas of the tools that the server has listed, each with the room for its bytes and those of the name. Where
    /// there is none, results of further tools count as those of tools that are not known.
    tools: HashMap<String, (OwnedSemaphorePermit, OutputSchema)>,
    /// True from the first request for the list of tools on, unless one fails.
    is_list_asked_for: bool,
}

impl KnownServer {
    pub(super) fn new(gateway: &McpGateway) -> Self {
        Self {
            reduction: gateway.reduction.clone(),
            tools: HashMap::new(),
            is_list_asked_for: false,
        }
    }

    /// The schema of a tool's structured results.
    pub(super) fn schema(&self, tool: &str) -> OutputSchema {
        let found = self.tools.get(tool);
        found.map(|(_, schema)| schema.clone()).unwrap_or_default()
    }

    /// Notes that the list of tools is asked for. Returns true the first time, and after a failure.
    pub(super) fn ask_for_list(&mut self) -> bool {
        !std::mem::replace(&mut self.is_list_asked_for, true)
    }

    /// Notes that a request for the list has failed, so that the next call asks again.
    pub(super) fn list_failed(&mut self) {
        self.is_list_asked_for = false;
    }

    /// Learns the tools of a page, and gives the reader another name if one of them has its name.
    pub(super) fn learn(&mut self, page: &Page, gateway: &McpGateway) {
        for tool in page.tools() {
            let [name, schema] = tool.pick(["name", "outputSchema"]);
            let Some(name) = name.and_then(View::as_str) else {
                continue;
            };
            let length = name.len() + schema.map_or(0, |schema| schema.range().len());
            self.tools.remove(name);
            let length = u32::try_from(length).unwrap_or(u32::MAX);
            let room = gateway.room_for_tools.clone();
            let Ok(room) = room.try_acquire_many_owned(length) else {
                continue;
            };
            let schema = schema.map_or(OutputSchema::None, |schema| {
                let schema = schema.json().to_value();
                schema.map_or(OutputSchema::Unknown, |schema| OutputSchema::new(&schema))
            });
            self.tools.insert(name.to_owned(), (room, schema));
        }
        let taken = self.reduction.as_ref().and_then(reader);
        let taken = taken.filter(|name| self.tools.contains_key(*name) || page.has(name));
        let Some(taken) = taken.map(str::to_owned) else {
            return;
        };
        let mut names = OTHER_NAMES.into_iter();
        let free = names.find(|name| !self.tools.contains_key(*name));
        let reduction = self.reduction.as_ref().zip(free);
        self.reduction =
            reduction.and_then(|(reduction, name)| reduction.with_reader(Some(name)).ok());
        (gateway.log)(&match self.reduction.as_ref().and_then(reader) {
            Some(name) => {
                format!("the server has a tool {taken:?}, so the reader is called {name:?}")
            }
            None => format!(
                "the server has a tool {taken:?}, so results stay whole: give the reader another name with `read_file_tool_name`"
            ),
        });
    }
}

/// The name of a reduction's reader.
pub(super) fn reader(reduction: &ToolReduction) -> Option<&str> {
    reduction.settings().read_file_tool_name.as_deref()
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
    fn has(&self, name: &str) -> bool {
        self.tools().any(|tool| tool.text("name") == name)
    }

    fn tools(&self) -> impl Iterator<Item = Node<'_>> {
        let tools = Node::root(&self.0).get("tools");
        tools.into_iter().flat_map(Node::items)
    }

    /// The page with the `reader` at its end.
    pub(super) fn with(mut self, reader: Value) -> String {
        put_into_text(&mut self.0, |root| {
            let kept = root
                .get("tools")?
                .items()
                .map(|tool| New::Kept(tool.json()));
            let list = New::List(kept.chain([New::Value(reader)]).collect());
            Some(vec![Edit::set(String::new(), "tools", list)])
        });
        self.0.into_string()
    }
}
