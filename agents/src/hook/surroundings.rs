//! The places that a hook has to know.

use std::path::{Path, PathBuf};

use offcut::hint::Hint;
use serde_json::Value;

/// Length in bytes that no hint exceeds with its preview.
const LONGEST_HINT: u64 = 16 * 1024;

/// The surroundings of a hook.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The directory of the store, if it is one: results that an agent reads from it pass unchanged.
    pub store: Option<PathBuf>,
    /// The agent's own folder, such as `~/.claude`: long output may be taken from files in it. `None`
    /// if it is unknown.
    pub agent_home: Option<PathBuf>,
    /// The folder for temporary files, in which some agents write long output. `None` if it is unknown.
    pub temporary: Option<PathBuf>,
}

impl Surroundings {
    /// Returns true if a call with this `input` has read content of the store: an argument called as one
    /// of `paths` is a path inside it, relative to `directory`, or one called as one of `commands` is a
    /// line of a shell that names it. Symbolic links are followed.
    pub(super) fn reads_store(
        &self,
        directory: &Path,
        input: &Value,
        paths: &[&str],
        commands: &[&str],
    ) -> bool {
        let argument = |name: &&str| input.get(*name).and_then(Value::as_str);
        let is_stored = |path: &str| inside(self.store.as_deref(), &directory.join(path)).is_some();
        paths.iter().filter_map(argument).any(is_stored)
            || commands
                .iter()
                .filter_map(argument)
                .any(|line| self.names_store(line))
    }

    /// Returns true if `text` is a hint of ours with its preview, of any conversation of this user: an agent that
    /// forks or resumes a conversation may show it again as a result.
    pub(super) fn is_own_hint(&self, text: &str) -> bool {
        let location = Hint::parse(text).and_then(|hint| hint.location);
        let stored = location.and_then(|at| inside(self.store.as_deref(), Path::new(at.as_str())));
        let stored = stored.and_then(|stored| stored.metadata().ok());
        // Anybody can write a hint, but none of ours is long, or longer than its content.
        stored.is_some_and(|stored| {
            let length = text.len() as u64;
            length <= LONGEST_HINT && length < stored.len()
        })
    }

    /// Returns true if the `command` of a shell names the store.
    fn names_store(&self, command: &str) -> bool {
        let names = |path: &Path| path.to_str().is_some_and(|path| command.contains(path));
        self.store.as_deref().is_some_and(|store| {
            names(store) || store.canonicalize().is_ok_and(|resolved| names(&resolved))
        })
    }

    /// Resolves `path`. `None` unless it is a file inside `folder` of the agent's own folder,
    /// symbolic links followed.
    pub(super) fn file_of_agent(&self, folder: &str, path: &Path) -> Option<PathBuf> {
        let folder = self.agent_home.as_deref()?.join(folder);
        inside(Some(&folder), path).filter(|file| file.is_file())
    }

    /// Resolves `path`. `None` unless it is a directory inside `folder` of the agent's own folder,
    /// symbolic links followed.
    pub(super) fn folder_of_agent(&self, folder: &str, path: &Path) -> Option<PathBuf> {
        let folder = self.agent_home.as_deref()?.join(folder);
        inside(Some(&folder), path).filter(|path| path.is_dir())
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
