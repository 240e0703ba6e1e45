//! MCP servers in JSON, with comments or without.

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::server::{ArgsPlace, BEGINNINGS, Server, ServerCommand};

/// Reads the servers below `keys`, in one of which `*` stands for any name.
pub(super) fn read(text: &str, keys: &[&[&str]]) -> Result<Vec<Server>, String> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
    // Its message would quote the line, and settings hold secrets.
    let parsed = parsed.map_err(|error| {
        let (line, column) = (error.line_display(), error.column_display());
        format!("it is not JSON: line {line}, column {column}")
    })?;
    let mut servers = Vec::new();
    if let Some(Value::Object(root)) = &parsed.value {
        for keys in keys {
            collect(root, keys, &mut Vec::new(), &mut servers);
        }
    }
    Ok(servers)
}

fn collect(object: &Object<'_>, keys: &[&str], path: &mut Vec<String>, all: &mut Vec<Server>) {
    let Some((key, rest)) = keys.split_first() else {
        for property in &object.properties {
            if let Value::Object(server) = &property.value {
                path.push(property.name.as_str().to_owned());
                all.extend(server_in(server, path.clone()));
                path.pop();
            }
        }
        return;
    };
    for property in &object.properties {
        let name = property.name.as_str();
        if let Value::Object(inner) = &property.value
            && (*key == "*" || *key == name)
        {
            path.push(name.to_owned());
            collect(inner, rest, path, all);
            path.pop();
        }
    }
}

/// The last property called `name`, which is the one that agents take.
fn property<'o, 'a>(object: &'o Object<'a>, name: &str) -> Option<&'o Value<'a>> {
    let mut all = object.properties.iter().rev();
    let found = all.find(|property| property.name.as_str() == name);
    found.map(|property| &property.value)
}

fn server_in(server: &Object<'_>, path: Vec<String>) -> Option<Server> {
    let is_named = |name: &&str| property(server, name).is_some();
    let is_local = is_named(&"command");
    let is_remote = ["url", "httpUrl", "serverUrl"].iter().any(is_named);
    let command = command_in(server);
    (is_local || is_remote).then(|| Server {
        path,
        is_odd: is_local && command.is_none(),
        command,
    })
}

/// The command of a server; `None` if it has none that consists of texts.
fn command_in(server: &Object<'_>) -> Option<ServerCommand> {
    let command = property(server, "command")?;
    let (elements, args) = match (command, property(server, "args")) {
        (Value::Array(list), _) => (list.elements.iter().collect(), ArgsPlace::Inside),
        (program, None) => {
            let beginning = BEGINNINGS[0];
            (vec![program], ArgsPlace::Missing { beginning })
        }
        (program, Some(Value::Array(list))) => {
            let start = list.range().start;
            let all = [program].into_iter().chain(&list.elements);
            (all.collect(), ArgsPlace::List { start })
        }
        _ => return None,
    };
    let word = |value: &&Value<'_>| match value {
        Value::StringLit(word) => {
            Some((word.value.to_string(), word.range().start..word.range().end))
        }
        _ => None,
    };
    let all: Option<Vec<_>> = elements.iter().map(word).collect();
    let (words, places): (Vec<String>, _) = all?.into_iter().unzip();
    let command = ServerCommand {
        words,
        places,
        args,
    };
    (!command.words.is_empty()).then_some(command)
}
