//! Output schemas of the wrapped server's tools.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use offcut_mcp::OutputSchema;
use rmcp::model::{JsonObject, Tool};
use serde_json::Value;

/// The schemas of listed tools, by the tools' names.
#[derive(Clone, Default)]
pub(crate) struct Schemas {
    known: Arc<Mutex<HashMap<String, OutputSchema>>>,
    dropped: HashSet<String>,
}

impl Schemas {
    /// Hides the schemas of `tools`.
    pub(crate) fn drop_for(&mut self, tools: impl IntoIterator<Item = impl Into<String>>) {
        self.dropped.extend(tools.into_iter().map(Into::into));
    }

    /// Learns the schema of a tool. Returns the tool as clients see it.
    pub(crate) fn listed(&self, mut tool: Tool) -> Tool {
        if self.dropped.contains(&*tool.name) {
            tool.output_schema = None;
        }
        let schema = compiled(tool.output_schema.as_deref());
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(tool.name.clone().into_owned(), schema);
        tool
    }

    /// The schema of a tool; `None` if the tool has not been listed.
    pub(crate) fn of(&self, tool: &str) -> Option<OutputSchema> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(tool).cloned()
    }
}

fn compiled(schema: Option<&JsonObject>) -> OutputSchema {
    schema.map_or(OutputSchema::None, |schema| {
        OutputSchema::new(&Value::Object(schema.clone()))
    })
}
