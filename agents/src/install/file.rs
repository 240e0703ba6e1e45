//! Files of agents: read, and replaced in one step.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::InstallError;

/// A file of an agent, as it is before a change.
#[derive(Debug)]
pub(crate) struct AgentFile {
    /// The file as the agent knows it.
    path: PathBuf,
    /// The file itself, symbolic links followed.
    target: PathBuf,
    /// The bytes; `None` if there is no file.
    bytes: Option<Vec<u8>>,
}

impl AgentFile {
    /// Reads the file at `path`, which may be missing.
    pub(crate) fn read(path: &Path) -> Result<Self, InstallError> {
        let unreadable = |error| InstallError::because(path, "it can't be read", error);
        let target = match path.canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(error)),
            // A link that leads nowhere is here too.
            Err(_) if path.is_symlink() => {
                let problem = "it is a link that leads nowhere; create the file that it names";
                return Err(InstallError::new(path, problem));
            }
            Err(_) => path.to_owned(),
        };
        let bytes = match fs::read(&target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(unreadable(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            target,
            bytes,
        })
    }

    /// The bytes; `None` if there is no file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// The text, and whether a byte order mark stands before it.
    pub(crate) fn text(&self) -> Result<(&str, bool), InstallError> {
        let text = str::from_utf8(self.bytes().unwrap_or_default())
            .map_err(|error| InstallError::because(&self.path, "it is not UTF-8", error))?;
        let unmarked = text.strip_prefix('\u{feff}');
        Ok((unmarked.unwrap_or(text), unmarked.is_some()))
    }

    /// Replaces the file's content, or removes the file. Its mode stays, and a link stays a link.
    pub(crate) fn replace(&self, bytes: Option<&[u8]>) -> Result<(), InstallError> {
        if bytes == self.bytes() {
            return Ok(());
        }
        let failed = |error| InstallError::because(&self.path, "it can't be changed", error);
        let mode = fs::metadata(&self.target).ok();
        if mode
            .as_ref()
            .is_some_and(|mode| mode.permissions().readonly())
        {
            let problem =
                "it is read-only; make it writable, or add the lines of docs/agents.md yourself";
            return Err(InstallError::new(&self.path, problem));
        }
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let Some(bytes) = bytes else {
            self.expect_unchanged()?;
            return fs::remove_file(&self.target).map_err(failed);
        };
        fs::create_dir_all(folder).map_err(failed)?;
        let mut staged = tempfile::Builder::new()
            .prefix(".offcut-")
            .tempfile_in(folder)
            .map_err(failed)?;
        let write = staged.write_all(bytes);
        write
            .and_then(|()| staged.as_file().sync_all())
            .map_err(failed)?;
        if let Some(mode) = mode {
            let set = staged.as_file().set_permissions(mode.permissions());
            set.map_err(failed)?;
        }
        self.expect_unchanged()?;
        staged
            .persist(&self.target)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }

    /// Refuses if somebody has changed the file after it was read.
    fn expect_unchanged(&self) -> Result<(), InstallError> {
        let now = fs::read(&self.target).ok();
        if now == self.bytes {
            return Ok(());
        }
        let problem = "somebody changed it at the same moment; try again";
        Err(InstallError::new(&self.path, problem))
    }
}
