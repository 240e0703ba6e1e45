//! A directory of tasks.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
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
    /// One of the task's files: `prompt.md`, which is the agent's stdin; `check`, a program that exits with 0 if the task
    /// is solved; `files`, with which each run begins; `setup`, a program that prepares a run's folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Reads the tasks in `folder`, by name. Folders whose names begin with a dot are left out.
///
/// # Errors
///
/// The folder can't be read, has no task, or has a folder without `prompt.md` or `check`, or whose programs can't be
/// started.
pub(crate) fn tasks(folder: &Path) -> Result<Vec<Task>, Failure> {
    let folder = std::path::absolute(folder).map_err(file(folder))?;
    let mut tasks = Vec::new();
    for path in entries(&folder).map_err(file(&folder))? {
        let name = path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        if name.starts_with('.') || !path.is_dir() {
            continue;
        }
        let mut content = Sha256::new();
        digest(&path, &mut content).map_err(file(&path))?;
        let task = Task {
            digest: units::hex(&content.finalize()[..16]),
            folder: path,
            name,
        };
        for needed in [task.at("prompt.md"), task.at("check")] {
            if !needed.is_file() {
                return Err(not_tasks(format!("{} is missing", needed.display())));
            }
        }
        expect_program(&task.at("check"))?;
        if task.at("setup").is_file() {
            expect_program(&task.at("setup"))?;
        }
        tasks.push(task);
    }
    if tasks.is_empty() {
        return Err(not_tasks(format!("{} has no tasks", folder.display())));
    }
    Ok(tasks)
}

/// Refuses a program that can't be started, before an agent has run in vain.
fn expect_program(path: &Path) -> Result<(), Failure> {
    let text = fs::read(path).map_err(file(path))?;
    let text = String::from_utf8_lossy(&text);
    let line = text.strip_prefix("#!").unwrap_or_default();
    // A line that ends with a carriage return names another program.
    let mut words = line.split([' ', '\t', '\n']);
    let interpreter = words.find(|word| !word.is_empty()).map(Path::new);
    let missing = interpreter.filter(|named| named.is_absolute() && !named.is_file());
    let problem = match (access(path, Access::EXEC_OK), missing) {
        (Err(_), _) => "is not executable: run `chmod +x` on it".to_owned(),
        (Ok(()), Some(missing)) => format!("asks for {missing:?}, which is missing"),
        (Ok(()), None) => return Ok(()),
    };
    Err(not_tasks(format!("{} {problem}", path.display())))
}

fn not_tasks(message: String) -> Failure {
    Failure::usage(
        message,
        "a task is a folder with a `prompt.md` and an executable `check` that exits with 0 if the task is solved",
    )
}

/// The entries of a folder, by name.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
    let mut entries = entries.collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    Ok(entries)
}

/// The digest of everything below `folder`: names, kinds and content.
fn digest(folder: &Path, into: &mut Sha256) -> io::Result<()> {
    for path in entries(folder)? {
        let kind = fs::symlink_metadata(&path)?;
        let (sign, content) = if kind.is_dir() {
            (b'd', Vec::new())
        } else if kind.is_symlink() {
            let target = fs::read_link(&path)?;
            (b'l', target.into_os_string().into_encoded_bytes())
        } else {
            (b'f', fs::read(&path)?)
        };
        let name = path.file_name().unwrap_or_default();
        for part in [name.as_encoded_bytes(), &[sign], &content] {
            into.update((part.len() as u64).to_le_bytes());
            into.update(part);
        }
        if kind.is_dir() {
            digest(&path, into)?;
            // The end of the folder.
            into.update(u64::MAX.to_le_bytes());
        }
    }
    Ok(())
}

/// Copies everything below `from` into `to`, which exists.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for path in entries(from)? {
        let target = to.join(path.file_name().unwrap_or_default());
        let kind = fs::symlink_metadata(&path)?;
        if kind.is_dir() {
            fs::create_dir(&target)?;
            copy(&path, &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(&path)?, target)?;
        } else {
            fs::copy(&path, target)?;
        }
    }
    Ok(())
}
