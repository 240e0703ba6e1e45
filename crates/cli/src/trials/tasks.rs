//! A directory of tasks.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::trials::file;
use crate::units;

/// A task: a folder with `prompt.md`, an executable `check`, and, if it needs them, `files/` and an executable
/// `setup`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Task {
    /// Name of the folder.
    pub(crate) name: String,
    /// The folder, which may be another when the trial goes on.
    #[serde(skip)]
    pub(crate) folder: PathBuf,
    /// Digest of all that is in the folder.
    pub(crate) digest: String,
}

impl Task {
    /// The prompt, which is the agent's stdin.
    pub(crate) fn prompt(&self) -> PathBuf {
        self.folder.join("prompt.md")
    }

    /// The program that exits with 0 if the task is solved.
    pub(crate) fn check(&self) -> PathBuf {
        self.folder.join("check")
    }

    /// The files that each run begins with, if there are any.
    pub(crate) fn files(&self) -> Option<PathBuf> {
        Some(self.folder.join("files")).filter(|files| files.is_dir())
    }

    /// The program that prepares a run's folder, if there is one.
    pub(crate) fn setup(&self) -> Option<PathBuf> {
        Some(self.folder.join("setup")).filter(|setup| setup.is_file())
    }
}

/// Reads the tasks in `folder`, by name. Folders whose names begin with a dot are left out.
///
/// # Errors
///
/// The folder can't be read, has no task, or has a folder without `prompt.md` or `check`.
pub(crate) fn tasks(folder: &Path) -> Result<Vec<Task>, Failure> {
    let folder = std::path::absolute(folder).map_err(file(folder))?;
    let mut tasks = Vec::new();
    for path in entries(&folder)? {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with('.') || !path.is_dir() {
            continue;
        }
        let task = Task {
            digest: digest(&path)?,
            folder: path,
            name,
        };
        for needed in [task.prompt(), task.check()] {
            if !needed.is_file() {
                return Err(not_tasks(format!("{} is missing", needed.display())));
            }
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        return Err(not_tasks(format!("{} has no tasks", folder.display())));
    }
    Ok(tasks)
}

fn not_tasks(message: String) -> Failure {
    Failure::usage(
        message,
        "a task is a folder with a `prompt.md` and an executable `check` that exits with 0 if the task is solved",
    )
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let read = fs::read_dir(folder).map_err(file(folder))?;
    let entries: Result<Vec<PathBuf>, _> =
        read.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(file(folder))?;
    entries.sort();
    Ok(entries)
}

/// The digest of everything below `folder`: names, kinds and content.
fn digest(folder: &Path) -> Result<String, Failure> {
    let mut digest = Sha256::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let kind = fs::symlink_metadata(&path).map_err(file(&path))?;
        let (kind, content) = if kind.is_dir() {
            open.extend(entries(&path)?);
            (b'd', Vec::new())
        } else if kind.is_symlink() {
            let target = fs::read_link(&path).map_err(file(&path))?;
            (b'l', target.to_string_lossy().into_owned().into_bytes())
        } else {
            (b'f', fs::read(&path).map_err(file(&path))?)
        };
        let name = path.strip_prefix(folder).unwrap_or(&path);
        let name = name.to_string_lossy();
        for part in [name.as_bytes(), &[kind], &content] {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
    }
    Ok(units::hex(&digest.finalize()[..16]))
}

/// Copies everything below `from` into `to`, which exists.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    for path in entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        let kind = fs::symlink_metadata(&path).map_err(file(&path))?;
        if kind.is_dir() {
            fs::create_dir(&target).map_err(file(&target))?;
            copy(&path, &target)?;
        } else if kind.is_symlink() {
            let to = fs::read_link(&path).map_err(file(&path))?;
            symlink(to, &target).map_err(file(&target))?;
        } else {
            fs::copy(&path, &target).map_err(file(&target))?;
        }
    }
    Ok(())
}
