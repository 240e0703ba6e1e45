//! MCP servers in JSON, with comments or without.

use std::collections::HashSet;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::server::{ArgsPlace, Server, ServerCommand};

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
            collect(root, keys, &mut Vec::new(), &mut servers)?;
        }
    }
    Ok(servers)
}

fn collect(
    object: &Object<'_>,
    keys: &[&str],
    path: &mut Vec<String>,
    all: &mut Vec<Server>,
) -> Result<(), String> {
    no_name_twice(object, path)?;
    let Some((key, rest)) = keys.split_first() else {
        for property in &object.properties {
            if let Value::Object(server) = &property.value {
                path.push(property.name.as_str().to_owned());
                no_name_twice(server, path)?;
                all.extend(server_in(server, path.clone()));
                path.pop();
            }
        }
        return Ok(());
    };
    for property in &object.properties {
        let name = property.name.as_str();
        if let Value::Object(inner) = &property.value
            && (*key == "*" || *key == name)
        {
            path.push(name.to_owned());
            collect(inner, rest, path, all)?;
            path.pop();
        }
    }
    Ok(())
}

/// Fails if an object has a name twice: an agent takes one of the two, and we might change the other.
fn no_name_twice(object: &Object<'_>, path: &[String]) -> Result<(), String> {
    let mut names = HashSet::new();
    let mut all = object.properties.iter().map(|one| one.name.as_str());
    match all.find(|name| !names.insert(name.to_owned())) {
        None => Ok(()),
        Some(twice) => {
            let place = path.iter().map(String::as_str).chain([twice]);
            let place: Vec<&str> = place.collect();
            Err(format!(
                "`{}` is there twice: remove one of them",
                place.join(".")
            ))
        }
    }
}

fn server_in(server: &Object<'_>, path: Vec<String>) -> Option<Server> {
    let is_named = |name: &&str| server.get(name).is_some();
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
    let (command, args) = (server.get("command")?, server.get("args"));
    let (elements, args) = match (&command.value, args.map(|args| &args.value)) {
        (Value::Array(list), _) => (list.elements.iter().collect(), ArgsPlace::Inside),
        (program, None) => {
            let key = ", \"args\": ";
            (vec![program], ArgsPlace::Missing { key })
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
