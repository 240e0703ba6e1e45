//! The places that a hook has to know.

use std::path::{Path, PathBuf};

use offcut::backend::Location;
use offcut::hint::Hint;
use serde_json::Value;

use crate::evidence::argued;

/// Length in bytes that no hint exceeds with its preview.
const LONGEST_HINT: u64 = 16 * 1024;

/// The names of arguments in which the tools of agents take paths.
const PATHS: [&str; 5] = ["path", "file_path", "filePath", "dir_path", "notebook_path"];

/// Maximum number of hints in a text that are looked for.
const MAX_HINTS: usize = 64;

/// Maximum number of words of a command that are looked up as paths.
const MAX_WORDS: usize = 64;

/// The surroundings of a hook.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The directory of the store, if it is one: results that an agent reads from it pass unchanged.
    pub store: Option<PathBuf>,
    /// The user's store, where `offcut run` and `offcut mcp` put theirs.
    pub user_store: Option<PathBuf>,
    /// The agent's own folder, such as `~/.claude`: long output may be taken from files in it. `None`
    /// if it is unknown.
    pub agent_home: Option<PathBuf>,
    /// The folder for temporary files, in which some agents write long output. `None` if it is unknown.
    pub temporary: Option<PathBuf>,
}

impl Surroundings {
    /// Returns true if a call with this `input` has read content of the store: an argument called as one of
    /// [`PATHS`] is a path inside it, relative to `directory`, or `command` is a line of a shell that names it or
    /// has a word that is such a path. Symbolic links are followed.
    pub(super) fn reads_store(&self, directory: &Path, input: &Value) -> bool {
        let argument = |name: &str| input.get(name).and_then(Value::as_str);
        let store = self
            .store
            .as_deref()
            .and_then(|store| store.canonicalize().ok());
        let is_stored = |path: &str| {
            let path = directory.join(path).canonicalize();
            store
                .as_ref()
                .is_some_and(|store| path.is_ok_and(|path| path.starts_with(store)))
        };
        let is_between = |c: char| c.is_whitespace() || "\"'`;|&<>()=,".contains(c);
        let mut paths = PATHS.into_iter().filter_map(argument);
        let is_expanded = |path: &str| path.starts_with('~') || path.contains("://");
        paths.any(|path| is_stored(path) || is_expanded(path) && self.names_store(path))
            || argument("command").is_some_and(|line| {
                let words = line.split(is_between).filter(|word| !word.is_empty());
                let is_named = words.take(MAX_WORDS).any(is_stored);
                self.names_store(line) || is_named || is_stored("")
            })
    }

    /// Returns true if `text` is hints of ours with their previews, of any conversation of this user: an agent that
    /// forks or resumes a conversation may show one again as a result. `offcut mcp` puts one into a string
    /// of structured content, and `offcut run` shows a beginning before it.
    pub(super) fn is_own_hint(&self, text: &str) -> bool {
        let stored = |at: Location| {
            let mut stores = [&self.store, &self.user_store].into_iter();
            stores.find_map(|store| inside(store.as_deref(), Path::new(at.as_str())))
        };
        let files = locations_in(text).into_iter().filter_map(stored);
        let lengths = files.filter_map(|file| Some(file.metadata().ok()?.len()));
        let lengths: Vec<u64> = lengths.collect();
        // Anybody can write a hint, but none of ours is long, or longer than its content.
        let shown = text.len() as u64;
        shown <= LONGEST_HINT * lengths.len() as u64 && shown < lengths.iter().sum()
    }

    /// Returns true if a string in the JSON `arguments` of a call names the store by one of its
    /// [names](Self::names). Arguments that are not JSON are one string.
    ///
    /// Such a call reads stored content, as far as its arguments tell. A model that names the store in a
    /// call of another kind only keeps that call's result whole.
    pub fn is_named_in(&self, arguments: &str) -> bool {
        argued(arguments).iter().any(|text| self.names_store(text))
    }

    /// Returns true if `text`, such as the command of a shell, names the store.
    fn names_store(&self, text: &str) -> bool {
        self.names().iter().any(|name| has_path(text, name))
    }

    /// The end that paths of the store have in common, however they begin (`~`, `$HOME`, `..`, `file://`, a
    /// link): its last two segments, as written and with symbolic links resolved.
    pub fn names(&self) -> Vec<String> {
        let Some(store) = &self.store else {
            return Vec::new();
        };
        let resolved = store.canonicalize().ok();
        let paths = [Some(store), resolved.as_ref()].into_iter().flatten();
        let mut names: Vec<String> = paths.filter_map(|path| end_of(path)).collect();
        names.dedup();
        names
    }

    /// Resolves `path`. `None` unless there is something inside `folder` of the agent's own folder,
    /// symbolic links followed.
    pub(super) fn in_agent_home(&self, folder: &str, path: &Path) -> Option<PathBuf> {
        inside(Some(&self.agent_home.as_deref()?.join(folder)), path)
    }

    /// Resolves the path of a file in the same way.
    pub(super) fn file_of_agent(&self, folder: &str, path: &Path) -> Option<PathBuf> {
        self.in_agent_home(folder, path)
            .filter(|file| file.is_file())
    }

    /// Resolves `path`. `None` unless it is a file directly in the folder for temporary files, symbolic
    /// links followed.
    pub(super) fn temporary_file(&self, path: &Path) -> Option<PathBuf> {
        let folder = self.temporary.as_deref()?.canonicalize().ok()?;
        let file = inside(Some(&folder), path)?;
        (file.parent() == Some(&*folder) && file.is_file()).then_some(file)
    }
}

/// The resolved `path`, if it exists and is inside `folder`.
fn inside(folder: Option<&Path>, path: &Path) -> Option<PathBuf> {
    let folder = folder?.canonicalize().ok()?;
    let path = path.canonicalize().ok()?;
    (path != folder && path.starts_with(&folder)).then_some(path)
}

/// The last two segments of `path`.
fn end_of(path: &Path) -> Option<String> {
    let folder = path.parent().and_then(Path::file_name).map(PathBuf::from);
    let end = folder.unwrap_or_default().join(path.file_name()?);
    end.into_os_string().into_string().ok()
}

/// Returns true if `text` has `path`, and not as a part of longer names.
fn has_path(text: &str, path: &str) -> bool {
    let is_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    let mut found = text.match_indices(path);
    found.any(|(at, path)| {
        !text[..at].ends_with(is_of_name) && !text[at + path.len()..].starts_with(is_of_name)
    })
}

/// The locations in the hints at starts of lines of a text, or in one that a string of its JSON carries.
fn locations_in(text: &str) -> Vec<Location> {
    fn inside(value: &Value) -> Option<Location> {
        match value {
            Value::String(text) => Hint::parse(text)?.location,
            Value::Array(items) => items.iter().find_map(inside),
            Value::Object(fields) => fields.values().find_map(inside),
            _ => None,
        }
    }
    if text.len() as u64 <= LONGEST_HINT
        && text.starts_with(['{', '['])
        && let Ok(document) = serde_json::from_str(text)
    {
        return inside(&document).into_iter().collect();
    }
    let locations = Hint::locations_in(text).take(MAX_HINTS);
    locations.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hint_of_ours_is_found_in_structured_content_too() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("1");
        std::fs::write(&file, "x".repeat(9_000)).unwrap();
        let hint = format!("[offcut/1 truncated 9000B/1L 5+4 {file:?}] Read.\nhead");
        let surroundings = Surroundings {
            store: Some(home.path().to_owned()),
            ..Surroundings::default()
        };
        let table = json!({"rows": [{"n": 1}, {"name": hint}]});
        assert!(surroundings.is_own_hint(&hint) && surroundings.is_own_hint(&table.to_string()));
        let of_user = Surroundings {
            user_store: surroundings.store.clone(),
            ..Surroundings::default()
        };
        assert!(of_user.is_own_hint(&hint));
        // Longer than what it leads to: nobody has shortened that.
        let long = json!({"rows": [hint, "y".repeat(10_000)]}).to_string();
        assert!(!surroundings.is_own_hint(&long));
        let elsewhere = table.to_string().replace("/1\\\"", "/2\\\"");
        assert_ne!(elsewhere, table.to_string());
        assert!(!surroundings.is_own_hint(&elsewhere));
        assert!(!surroundings.is_own_hint(r#"{"a":"b"}"#));
    }

    #[test]
    fn a_store_is_named_anywhere_in_the_arguments_of_a_call() {
        let surroundings = Surroundings {
            store: Some("/home/me/.local/share/offcut/store".into()),
            ..Surroundings::default()
        };
        let page = "/home/me/.local/share/offcut/store/local/c-1/trunc/call_1";
        for arguments in [
            json!({"file_path": page, "offset": 1}),
            json!({"command": format!("sed -n 1,200p '{page}' | head -c 8000")}),
            json!({"command": ["bash", "-lc", format!("cat {page}")]}),
            json!({"code": format!("await tools.exec({{cmd: \"cat \\\"{page}\\\"\"}})")}),
            json!({"command": "ls /home/me/.local/share/offcut/store"}),
            json!({"command": "cd ~/.local/share/offcut/store/local/c-1/trunc && cat call_1"}),
            json!({"command": "cat \"$XDG_DATA_HOME/offcut/store/local/c-1/trunc/call_1\""}),
            json!({"file_path": "../.local/share/offcut/store/local/c-1/trunc/call_1"}),
            json!({"url": format!("file://{page}")}),
        ] {
            assert!(
                surroundings.is_named_in(&arguments.to_string()),
                "{arguments}"
            );
        }
        assert!(surroundings.is_named_in(&format!("text(await cat('{page}'))")));
        for arguments in [
            json!({"file_path": "/home/me/.local/share/offcut/store-2/x"}),
            json!({"file_path": "/home/me/my-offcut/store"}),
            json!({"file_path": "/home/me/.local/share/offcut"}),
            json!({"command": "make", "count": 3, "all": null}),
        ] {
            assert!(
                !surroundings.is_named_in(&arguments.to_string()),
                "{arguments}"
            );
        }
        assert!(!Surroundings::default().is_named_in(&json!({"file_path": page}).to_string()));
    }
}
