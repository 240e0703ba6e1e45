//! Output schemas of the wrapped server's tools.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use offcut_mcp::OutputSchema;
use rmcp::model::Tool;
use serde_json::Value;

/// The schemas of listed tools, by the tools' names.
#[derive(Clone, Default)]
pub(crate) struct Schemas(Arc<Mutex<HashMap<String, OutputSchema>>>);

impl Schemas {
    /// Learns the schema of a tool.
    pub(crate) fn learn(&self, tool: &Tool) {
        let schema = tool.output_schema.as_deref();
        let schema = schema.map_or(OutputSchema::None, |schema| {
            OutputSchema::new(&Value::Object(schema.clone()))
        });
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(tool.name.clone().into_owned(), schema);
    }

    /// The schema of a tool; `None` if the tool has not been listed.
    pub(crate) fn of(&self, tool: &str) -> Option<OutputSchema> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(tool).cloned()
    }
}
