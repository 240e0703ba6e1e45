//! The user's own folder: one store for everything that this user runs, settings and a log.

use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The folder of one user: `OFFCUT_HOME`, else `offcut` in `XDG_DATA_HOME`, else
/// `~/.local/share/offcut`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home(PathBuf);

impl Home {
    /// The folder that the environment names; `None` if there is no home directory either.
    pub fn from_env() -> Option<Self> {
        if let Some(home) = folder("OFFCUT_HOME") {
            // An agent's hooks run in other directories than the commands of its user.
            return std::path::absolute(home).ok().map(Self);
        }
        let data = folder("XDG_DATA_HOME").filter(|path| path.is_absolute());
        data.map(|data| Self(data.join("offcut")))
            .or_else(Self::by_default)
    }

    /// The folder that the environment names.
    ///
    /// # Errors
    ///
    /// There is no home directory either.
    pub(crate) fn required() -> Result<Self, Failure> {
        Self::from_env().ok_or_else(|| {
            let hint = "set OFFCUT_HOME to a directory for settings and stored results";
            Failure::usage("there is no home directory", hint)
        })
    }

    /// The folder if the environment names none.
    pub fn by_default() -> Option<Self> {
        Some(Self(folder("HOME")?.join(".local/share/offcut")))
    }

    /// The folder at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The user's one store, shared by all agents.
    pub fn store(&self) -> PathBuf {
        self.0.join("store")
    }

    /// The settings of all hooks; the file may be missing.
    pub fn settings(&self) -> PathBuf {
        self.0.join("offcut.toml")
    }

    /// The records and backups of changed settings of agents, a folder for each agent.
    pub fn installed(&self) -> PathBuf {
        self.0.join("installed")
    }

    /// The journal of results that hooks were shown, and of requests that passed through servers.
    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.jsonl")
    }

    /// The folders that have held transcripts, one to a line, as JSON.
    pub fn transcripts(&self) -> PathBuf {
        self.0.join("transcripts.jsonl")
    }

    /// A folder with a file for each server that runs.
    pub fn servers(&self) -> PathBuf {
        self.0.join("servers")
    }

    /// An empty file whose time is that of the last sweep.
    pub fn swept(&self) -> PathBuf {
        self.0.join("swept")
    }

    /// The log of hooks that could not do their work.
    pub fn log(&self) -> PathBuf {
        self.0.join("hook.log")
    }
}

/// The paths in a folder; none if it is missing.
pub(crate) fn paths_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?.map(|entry| Ok(entry?.path())).collect(),
    }
}

/// The folder that a variable of the environment names.
pub(crate) fn folder(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable)
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// The paths that hints may have for a directory: as it is written, and with its links resolved, also where it does not
/// exist yet.
pub(crate) fn spellings(directory: &Path) -> Vec<PathBuf> {
    let resolved = offcut::backend::Fs::open(directory).ok();
    // Without the slash at its end.
    let resolved = resolved.map(|store| store.path().components().collect());
    let mut all = vec![directory.to_owned()];
    all.extend(resolved.filter(|resolved| resolved != directory));
    all
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_directory_below_a_link_has_two_paths() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        std::fs::create_dir(home.join("large")).unwrap();
        std::os::unix::fs::symlink(home.join("large"), home.join("link")).unwrap();
        let paths = spellings(&home.join("link/store"));
        assert_eq!(paths, [home.join("link/store"), home.join("large/store")]);
        assert_eq!(spellings(&home.join("store")), [home.join("store")]);
    }
}
