//! The way in which the model of a request can read stored content back, and pages of it that agents on this machine
//! read with tools of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use memchr::memmem::Finder;
use offcut::Settings;
use offcut::format::{JsonText, WireFormat};
use offcut::handler::{Action, HandlerError, ToolOutcome, TruncHandler};
use serde_json::Value;

use crate::agents::hook::Surroundings;
use crate::gateway::settings::ServeSettings;

/// Tools of known agents that open a file by its path.
pub(crate) const OPENERS: [&str; 3] = ["Read", "read_file", "read"];

/// Tools of known agents that run a command, which may open a file.
const SHELLS: [&str; 9] = [
    "Bash",
    "bash",
    "exec",
    "exec_command",
    "functions.exec",
    "local_shell",
    "run_shell_command",
    "shell",
    "shell_command",
];

/// The longest item of a conversation that is looked at for tools.
const LONGEST: usize = 1024 * 1024;

/// Finds the reader among the tools of a request, by the name that hints mention; `Some(None)` for a command, where
/// hints give the path and mention no tool.
///
/// `own` is the name that the settings give. Where the agent does not share the machine, only a tool
/// of that name counts that is defined as ours is.
pub(crate) fn find<'a>(
    tools: &'a Tools,
    own: Option<&'a str>,
    shares_machine: bool,
) -> Option<Option<&'a str>> {
    let has = |name: &&str| tools.names.iter().any(|known| known == name);
    if !shares_machine {
        return own.filter(|_| tools.has_our_reader).map(Some);
    }
    let mut openers = own.into_iter().chain(OPENERS);
    let opener = openers.find(has).map(Some);
    opener.or_else(|| SHELLS.iter().any(has).then_some(None))
}

/// The tools of a request.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    /// Their names, each with the namespaces around it left out.
    pub(crate) names: Vec<String>,
    /// True if one of them is the reader as this server defines it.
    pub(crate) has_our_reader: bool,
}

impl Tools {
    /// Reads the definitions in `tools`, and those that an item of the conversation holds.
    pub(crate) fn read(
        definitions: &[Value],
        messages: &[JsonText],
        format: WireFormat,
        own: Option<&str>,
    ) -> Self {
        let mut tools = Self::default();
        for definition in definitions {
            tools.add(definition, own, 0);
        }
        if format == WireFormat::Responses {
            let items = messages.iter().take(4).map(JsonText::as_str);
            let has_tools =
                |item: &&str| item.len() <= LONGEST && item.contains("\"additional_tools\"");
            for item in items.filter(has_tools) {
                if let Ok(item) = serde_json::from_str::<Value>(item) {
                    tools.add(&item, own, 0);
                }
            }
        }
        tools
    }

    fn add(&mut self, definition: &Value, own: Option<&str>, depth: usize) {
        if depth > 4 {
            return;
        }
        let places = ["tools", "functionDeclarations", "function_declarations"];
        let below: Vec<_> = places
            .iter()
            .filter_map(|place| definition.get(place)?.as_array())
            .flatten()
            .collect();
        if !below.is_empty() {
            return below
                .into_iter()
                .for_each(|one| self.add(one, own, depth + 1));
        }
        // A shell in a container of the provider's, or a server that it connects to, opens no file here.
        let kind = definition
            .pointer("/environment/type")
            .and_then(Value::as_str);
        let is_hosted = kind.is_some_and(|kind| kind.starts_with("container"));
        if is_hosted || definition.get("type").is_some_and(|kind| kind == "mcp") {
            return;
        }
        let function = definition.get("function").unwrap_or(definition);
        // Tools that the provider defines have a type alone.
        let name = function.get("name").or_else(|| definition.get("type"));
        let Some(name) = name.and_then(Value::as_str) else {
            return;
        };
        let schemas = [
            "parameters",
            "input_schema",
            "parametersJsonSchema",
            "parameters_json_schema",
        ];
        let mut schemas = schemas.iter().filter_map(|place| function.get(place));
        let is_opener = OPENERS.contains(&name);
        if is_opener && schemas.clone().any(|schema| !takes_path(schema)) {
            return;
        }
        if Some(name) == own {
            self.has_our_reader |= schemas.any(|schema| {
                let has = |field| schema.pointer(&format!("/properties/{field}")).is_some();
                has("path") && has("pattern")
            });
        }
        self.names.push(name.to_owned());
    }
}

/// Returns false if a schema names properties, and none of them can be a path.
fn takes_path(schema: &Value) -> bool {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_path = |name: &String| {
        let name = name.to_ascii_lowercase();
        ["path", "file"].iter().any(|word| name.contains(word))
    };
    properties.is_none_or(|properties| properties.is_empty() || properties.keys().any(is_path))
}

/// Keeps the results of calls that name a store whole: cut again, they would lead the model in a circle.
///
/// Only the call's arguments count, which are in the history, so every process decides the same.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    stores: Arc<[Surroundings]>,
    /// The ends of their paths, as JSON has them inside of a string.
    spelled: Arc<[Finder<'static>]>,
}

impl Pages {
    /// The pages of the stores in `settings`; `None` if agents can't open all of them as files on this machine.
    pub(crate) fn of(serve: &ServeSettings, settings: &Settings) -> Option<Self> {
        if !serve.is_local() {
            return None;
        }
        let stores = crate::stores::named_in(settings).map(|url| {
            Some(Surroundings {
                store: Some(std::path::absolute(url.directory()?).ok()?),
                ..Surroundings::default()
            })
        });
        let stores: Arc<[Surroundings]> = stores.collect::<Option<_>>()?;
        let names: BTreeSet<String> = stores.iter().flat_map(Surroundings::names).collect();
        let spelled = names.iter().filter_map(|name| {
            let name = serde_json::to_string(name).ok()?;
            Some(Finder::new(name.trim_matches('"')).into_owned())
        });
        Some(Self {
            spelled: spelled.collect(),
            stores,
        })
    }

    /// Returns true if the JSON of a message has the path of one of the stores anywhere.
    pub(crate) fn may_be_named_in(&self, message: &str) -> bool {
        let mut paths = self.spelled.iter();
        paths.any(|path| path.find(message.as_bytes()).is_some())
    }

    /// Returns true if the arguments of a call name one of the stores.
    pub(crate) fn are_named_in(&self, arguments: &str) -> bool {
        self.stores.iter().any(|store| store.is_named_in(arguments))
    }
}

#[async_trait]
impl TruncHandler for Pages {
    async fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError> {
        let is_page = self.are_named_in(&outcome.call.arguments);
        Ok(match is_page {
            true => Action::Keep,
            false => Action::Default,
        })
    }
}

#[cfg(test)]
mod tests {
    use offcut::ToolReduction;
    use offcut::backend::Memory;
    use offcut::format::LoopFormat;
    use serde_json::json;

    use super::*;

    fn tools(definitions: &Value) -> Tools {
        let definitions = definitions.as_array().unwrap();
        Tools::read(definitions, &[], WireFormat::OpenAiChat, Some("read_file"))
    }

    #[test]
    fn an_agent_on_this_machine_reads_with_a_tool_of_its_own() {
        let claude = tools(
            &json!([{"name": "Bash", "input_schema": {}}, {"name": "Read", "input_schema": {}}]),
        );
        assert_eq!(find(&claude, Some("read_file"), true), Some(Some("Read")));
        let gemini = tools(&json!([{"functionDeclarations": [{"name": "read_file"}]}]));
        assert_eq!(
            find(&gemini, Some("read_file"), true),
            Some(Some("read_file"))
        );
        let codex = tools(&json!([{"type": "function", "name": "exec_command"}]));
        assert_eq!(find(&codex, Some("read_file"), true), Some(None));
        for other in [
            json!([{"type": "function", "function": {"name": "weather"}}]),
            json!([{"type": "shell", "environment": {"type": "container_auto"}}]),
            json!([{"type": "mcp", "name": "read", "server_url": "https://example.org"}]),
            json!([{"name": "read", "input_schema": {"properties": {"message_id": {}}}}]),
        ] {
            let other_tools = tools(&other);
            assert_eq!(find(&other_tools, Some("read_file"), true), None, "{other}");
        }
        let local = tools(&json!([{"type": "shell", "environment": {"type": "local"}}]));
        assert_eq!(find(&local, Some("read_file"), true), Some(None));
        let items = [JsonText::parse(r#"{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}"#).unwrap()];
        let current = Tools::read(&[], &items, WireFormat::Responses, None);
        assert_eq!(find(&current, Some("read_file"), true), Some(None));
    }

    #[test]
    fn elsewhere_only_our_own_reader_counts() {
        let reduction = ToolReduction::recommended(Memory::new()).build().unwrap();
        let reader = reduction.read_file_tool();
        for format in WireFormat::ALL {
            let definition = format.tool(&reader);
            let definition = if definition.is_array() {
                definition
            } else {
                json!([definition])
            };
            let ours = tools(&definition);
            assert_eq!(
                find(&ours, Some("read_file"), false),
                Some(Some("read_file")),
                "{format}"
            );
        }
        let theirs =
            tools(&json!([{"name": "read_file", "input_schema": {"properties": {"path": {}}}}]));
        assert_eq!(find(&theirs, Some("read_file"), false), None);
    }
}
