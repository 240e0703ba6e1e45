//! A server as a file has it.

use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A value of a JSON or TOML file with its place in the text.
pub(super) struct Spot {
    node: Node,
    place: Range<usize>,
}

enum Node {
    Text(String),
    List(Vec<Spot>),
    /// Entries in the order of the file; an agent takes the last one of a name.
    Table(Vec<(String, Spot)>),
    Other,
}

impl Spot {
    /// Reads JSON, with comments or without. No error quotes it, since settings hold secrets.
    pub(super) fn of_json(text: &str) -> Result<Option<Self>, String> {
        fn spot(value: Value<'_>) -> Spot {
            let range = value.range();
            let node = match value {
                Value::StringLit(text) => Node::Text(text.value.into_owned()),
                Value::Array(list) => Node::List(list.elements.into_iter().map(spot).collect()),
                Value::Object(object) => {
                    let entries = object.properties.into_iter();
                    let entries = entries.map(|one| (one.name.into_string(), spot(one.value)));
                    Node::Table(entries.collect())
                }
                _ => Node::Other,
            };
            let place = range.start..range.end;
            Spot { node, place }
        }
        let parsed = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
        let parsed = parsed.map_err(|error| {
            let (line, column) = (error.line_display(), error.column_display());
            format!("it is not JSON: line {line}, column {column}")
        })?;
        Ok(parsed.value.map(spot))
    }

    /// Reads TOML, which no error quotes either.
    pub(super) fn of_toml(text: &str) -> Result<Self, String> {
        fn spot(value: Spanned<DeValue<'_>>) -> Spot {
            let place = value.span();
            let node = match value.into_inner() {
                DeValue::String(text) => Node::Text(text.into_owned()),
                DeValue::Array(list) => Node::List(list.into_iter().map(spot).collect()),
                DeValue::Table(table) => of_table(table),
                _ => Node::Other,
            };
            Spot { node, place }
        }
        fn of_table(table: DeTable<'_>) -> Node {
            let entries = table.into_iter();
            let entries =
                entries.map(|(name, value)| (name.into_inner().into_owned(), spot(value)));
            Node::Table(entries.collect())
        }
        let parsed = DeTable::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() + 1;
            format!("it is not TOML: line {line}")
        })?;
        let place = parsed.span();
        let node = of_table(parsed.into_inner());
        Ok(Self { node, place })
    }

    fn entries(&self) -> &[(String, Self)] {
        match &self.node {
            Node::Table(entries) => entries,
            _ => &[],
        }
    }

    /// Adds the servers below `keys` to `all`. The key `*` stands for any name.
    pub(super) fn collect(&self, keys: &[&str], text: &str, all: &mut Vec<Server>) {
        match keys.split_first() {
            None => {
                let servers = self.entries().iter();
                all.extend(servers.filter_map(|(name, entry)| Server::read(name, entry, text)));
            }
            Some((key, rest)) => {
                let inner = self.entries().iter();
                for (_, inner) in inner.filter(|(name, _)| *key == "*" || key == name) {
                    inner.collect(rest, text, all);
                }
            }
        }
    }
}

/// A server as a file has it.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(super) name: String,
    /// `None` for a server with a URL, or whose command is no text.
    pub(super) command: Option<ServerCommand>,
}

impl Server {
    /// Reads the entry of a server in `text`; `None` if it is something else.
    fn read(name: &str, entry: &Spot, text: &str) -> Option<Self> {
        let field = |name: &str| {
            let mut entries = entry.entries().iter().rev();
            entries.find_map(|(key, value)| (key == name).then_some(value))
        };
        let mut known = ["command", "url", "httpUrl", "serverUrl"].into_iter();
        known.any(|name| field(name).is_some()).then(|| Self {
            name: name.to_owned(),
            command: ServerCommand::read(field("command"), field("args"), text),
        })
    }
}

/// The command of a server.
#[derive(Debug, Clone)]
pub(super) struct ServerCommand {
    /// The program and its arguments. There is at least the program.
    pub(super) words: Vec<String>,
    /// The place of each word.
    pub(super) places: Vec<Range<usize>>,
    pub(super) args: ArgsPlace,
}

/// The place of a command's arguments.
#[derive(Debug, Clone)]
pub(super) enum ArgsPlace {
    /// A list of their own that starts here.
    List { start: usize },
    /// They are in the same list as the command.
    Inside,
    /// There are none. This begins a list of them after the command.
    Missing { beginning: &'static str },
}

/// The texts by which a list of arguments begins where there was none: in JSON, in a table of TOML, and in an inline
/// one. By its space, such a list is told from an empty one that somebody wrote.
pub(super) const BEGINNINGS: [&str; 3] = [", \"args\": [ ", "\nargs = [ ", ", args = [ "];

impl ServerCommand {
    /// Reads the command of a server; `None` if it has none that consists of texts.
    fn read(command: Option<&Spot>, args: Option<&Spot>, text: &str) -> Option<Self> {
        let command = command?;
        let (spots, args): (Vec<&Spot>, _) = match (&command.node, args) {
            (Node::List(all), _) => (all.iter().collect(), ArgsPlace::Inside),
            (_, None) => {
                let beginning = beginning_after(text, command.place.start);
                (vec![command], ArgsPlace::Missing { beginning })
            }
            (_, Some(args)) => {
                let Node::List(rest) = &args.node else {
                    return None;
                };
                let start = args.place.start;
                let all = [command].into_iter().chain(rest).collect();
                (all, ArgsPlace::List { start })
            }
        };
        let words = spots.iter().map(|spot| match &spot.node {
            Node::Text(text) => Some(text.clone()),
            _ => None,
        });
        let command = Self {
            words: words.collect::<Option<_>>()?,
            places: spots.iter().map(|spot| spot.place.clone()).collect(),
            args,
        };
        (!command.words.is_empty()).then_some(command)
    }

    /// The words that run Offcut, if it is in front of the server.
    pub(super) fn offcut(&self) -> Option<&[String]> {
        let at = match &self.words[..] {
            [env, home, ..] if env == "env" && home.starts_with("OFFCUT_HOME=") => 2,
            _ => 0,
        };
        let [program, mcp, ..] = self.words.get(at..)? else {
            return None;
        };
        let name = program.rsplit('/').next().unwrap_or_default();
        (name.starts_with("offcut") && mcp == "mcp").then(|| &self.words[..=at])
    }

    /// The number of words that an installation has put in front of the server: those that run Offcut, `mcp` and `--`.
    /// One with others between these was written by the user.
    pub(super) fn front(&self) -> usize {
        let after = self.offcut().map_or(0, |words| words.len() + 1);
        match &self.words[after..] {
            [dashes, _, ..] if after > 0 && dashes == "--" => after + 1,
            _ => 0,
        }
    }
}

/// The text that begins a list of arguments after the command at `at`: after a colon as in JSON, after an equals sign
/// as in TOML, on a line of its own unless others share the command's.
fn beginning_after(text: &str, at: usize) -> &'static str {
    let before = text[..at].trim_end();
    if !before.ends_with('=') {
        return BEGINNINGS[0];
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let key = line.trim_end_matches('=').trim();
    let is_alone = key.trim_matches(['"', '\'']) == "command";
    BEGINNINGS[if is_alone { 1 } else { 2 }]
}
