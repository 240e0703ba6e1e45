//! Files of agents: read, changed in memory, and written in place.

use std::error::Error;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use offcut::config::read_file;
use serde_json::Value;

use super::jsonc;
use crate::failure::{Failure, chain};

/// A byte order mark.
const MARK: &str = "\u{feff}";

/// A file of an agent, with a change that may still have to be written.
#[derive(Debug)]
pub(crate) struct AgentFile {
    path: PathBuf,
    /// The bytes that it was found with; `None` if there is no file.
    found: Option<Vec<u8>>,
    /// The bytes that it is to have.
    bytes: Option<Vec<u8>>,
}

impl AgentFile {
    /// Reads the file at `path`, which may be missing.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let bytes = match read_file(path) {
            Ok(bytes) => Some(bytes),
            // Not a link that leads nowhere, which would have to go again.
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.is_symlink() => None,
            Err(error) => {
                let problem = "it can't be read; mend it, and try again";
                return Err(because(path, problem)(error));
            }
        };
        Ok(Self {
            path: path.to_owned(),
            found: bytes.clone(),
            bytes,
        })
    }

    /// The file as the agent knows it.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes; `None` if there is no file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The text, without a byte order mark.
    pub(crate) fn text(&self) -> Result<&str, Failure> {
        let text = str::from_utf8(self.bytes().unwrap_or_default());
        let text = text.map_err(because(&self.path, "it is not UTF-8"))?;
        Ok(text.strip_prefix(MARK).unwrap_or(text))
    }

    /// The settings in it, which may have comments.
    pub(super) fn json(&self) -> Result<Value, Failure> {
        jsonc::parse(self.text()?).map_err(|problem| self.unusable(&problem))
    }

    /// The error about a problem with the file.
    pub(crate) fn refused(&self, problem: impl fmt::Display) -> Failure {
        refused(&self.path, problem)
    }

    /// The error about settings that can't be read or changed.
    pub(super) fn unusable(&self, problem: &str) -> Failure {
        self.refused(format_args!("{problem}; mend it, and try again"))
    }

    /// Gives the file other bytes, or removes it, once it is written.
    pub(crate) fn set(&mut self, bytes: Option<Vec<u8>>) {
        self.bytes = bytes;
    }

    /// Gives the file another text, with the byte order mark that it has.
    pub(crate) fn set_text(&mut self, text: &str) {
        let is_marked = self
            .bytes()
            .unwrap_or_default()
            .starts_with(MARK.as_bytes());
        let text = [if is_marked { MARK } else { "" }, text].concat();
        self.bytes = Some(text.into_bytes());
    }

    /// Gives the file `new` bytes in place of the `old` ones, or removes it. It stays the same file, so its mode,
    /// owner, links and attributes stay.
    fn replace(&self, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), Failure> {
        if old == new {
            return Ok(());
        }
        if read_file(&self.path).ok().as_deref() != old {
            return Err(self.refused("somebody changed it at the same moment; try again"));
        }
        let replaced = match new {
            None => fs::remove_file(&self.path),
            Some(new) => self.write(old, new),
        };
        let problem =
            "it can't be changed; make it writable, or add the lines of docs/agents.md yourself";
        replaced.map_err(because(&self.path, problem))
    }

    fn write(&self, old: Option<&[u8]>, new: &[u8]) -> io::Result<()> {
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(old.is_none());
        // Settings hold secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&self.path)?;
        let mut write = |bytes: &[u8]| {
            file.rewind()?;
            file.write_all(bytes)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        };
        write(new).inspect_err(|_| {
            // The disk may be full; there was room for this.
            _ = match old {
                Some(old) => write(old),
                None => fs::remove_file(&self.path),
            };
        })
    }
}

/// Writes the changes of all files, in this order, or none.
pub(super) fn write_all(files: &[&AgentFile]) -> Result<(), Failure> {
    for (nth, file) in files.iter().enumerate() {
        if let Err(error) = file.replace(file.found.as_deref(), file.bytes()) {
            for written in files[..nth].iter().rev() {
                _ = written.replace(written.bytes(), written.found.as_deref());
            }
            return Err(error);
        }
    }
    Ok(())
}

/// The failure of a change, which has left the file at `path` as it was.
pub(crate) fn refused(path: &Path, problem: impl fmt::Display) -> Failure {
    Failure::new(format!("{}: {problem}", path.display())).hint("nothing was changed")
}

/// The same, because of an error.
pub(super) fn because<E: Error>(path: &Path, problem: &str) -> impl Fn(E) -> Failure {
    move |error| refused(path, format_args!("{problem}: {}", chain(&error)))
}
