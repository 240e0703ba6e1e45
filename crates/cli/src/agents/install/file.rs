//! Files of agents: read, and replaced in one step.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use offcut::config::read_file;

use super::error::InstallError;

/// A byte order mark.
pub(super) const MARK: &str = "\u{feff}";
/// Beginning of the names of new files before they take the place of others.
const STAGED: &str = ".offcut-";
/// Age after which nobody writes such a file any more: it takes milliseconds.
const ABANDONED: Duration = Duration::from_secs(60);

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
        let bytes = match read_file(&target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(InstallError::new(path, error.to_string()));
            }
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

    /// The text, without a byte order mark.
    pub(crate) fn text(&self) -> Result<&str, InstallError> {
        let text = str::from_utf8(self.bytes().unwrap_or_default())
            .map_err(|error| InstallError::because(&self.path, "it is not UTF-8", error))?;
        Ok(text.strip_prefix(MARK).unwrap_or(text))
    }

    /// The error about a problem with the file.
    pub(crate) fn refused(&self, problem: impl Into<String>) -> InstallError {
        InstallError::new(&self.path, problem)
    }

    /// A new text for the file, with the byte order mark that it has.
    pub(crate) fn marked(&self, text: &str) -> String {
        let is_marked = self
            .bytes()
            .unwrap_or_default()
            .starts_with(MARK.as_bytes());
        [if is_marked { MARK } else { "" }, text].concat()
    }

    /// Replaces the file's content in one step, or removes the file. Its mode stays, and a link stays a link. A
    /// file with something that a new one would not have, such as another owner, is written in place.
    pub(crate) fn replace(&self, bytes: Option<&[u8]>) -> Result<(), InstallError> {
        if bytes == self.bytes() {
            return Ok(());
        }
        let failed = |error| InstallError::because(&self.path, "it can't be changed", error);
        let found = fs::metadata(&self.target).ok();
        if found
            .as_ref()
            .is_some_and(|found| found.permissions().readonly())
        {
            return Err(self.refused(
                "it is read-only; make it writable, or add the lines of docs/agents.md yourself",
            ));
        }
        let folder = self.target.parent().unwrap_or(Path::new("."));
        let Some(bytes) = bytes else {
            self.expect_unchanged()?;
            return fs::remove_file(&self.target).map_err(failed);
        };
        fs::create_dir_all(folder).map_err(failed)?;
        remove_abandoned(folder);
        let mut staged = tempfile::Builder::new()
            .prefix(STAGED)
            .tempfile_in(folder)
            .map_err(failed)?;
        let write = staged.write_all(bytes);
        write
            .and_then(|()| staged.as_file().sync_all())
            .map_err(failed)?;
        if let Some(found) = &found {
            let set = staged.as_file().set_permissions(found.permissions());
            set.map_err(failed)?;
        }
        self.expect_unchanged()?;
        if let Some(found) = &found
            && !is_alike(found, &self.target, staged.path()).map_err(failed)?
        {
            return self.write_in_place(bytes).map_err(failed);
        }
        staged
            .persist(&self.target)
            .map_err(|error| failed(error.error))?;
        Ok(())
    }

    fn write_in_place(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.target)?;
        let mut write = |bytes: &[u8]| {
            file.rewind()?;
            file.write_all(bytes)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        };
        write(bytes).inspect_err(|_| {
            // The disk may be full; there was room for this.
            _ = write(self.bytes().unwrap_or_default());
        })
    }

    /// Refuses if somebody has changed the file after it was read.
    fn expect_unchanged(&self) -> Result<(), InstallError> {
        let now = read_file(&self.target).ok();
        if now == self.bytes {
            return Ok(());
        }
        Err(self.refused("somebody changed it at the same moment; try again"))
    }
}

/// Removes what installations that were killed have left.
fn remove_abandoned(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| {
        entry
            .file_name()
            .as_encoded_bytes()
            .starts_with(STAGED.as_bytes())
    }) {
        let age = entry.metadata().and_then(|found| found.modified());
        let age = age.ok().and_then(|time| time.elapsed().ok());
        if age.is_some_and(|age| age > ABANDONED) {
            _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns true if the file at `staged` can take the place of the one at `target`, described by `found`:
/// nothing but the content would differ.
#[cfg(unix)]
fn is_alike(found: &Metadata, target: &Path, staged: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let new = fs::metadata(staged)?;
    let is_owned_alike = (found.uid(), found.gid()) == (new.uid(), new.gid());
    Ok(found.nlink() == 1 && is_owned_alike && attributes(target)? == attributes(staged)?)
}

#[cfg(not(unix))]
fn is_alike(_: &Metadata, _: &Path, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The names of a file's extended attributes, which hold access lists too.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn attributes(path: &Path) -> io::Result<Vec<u8>> {
    // No system allows more.
    let mut names = vec![0; 64 * 1024];
    match rustix::fs::listxattr(path, &mut names[..]) {
        Ok(length) => names.truncate(length),
        Err(rustix::io::Errno::NOTSUP) => names.clear(),
        Err(error) => return Err(error.into()),
    }
    Ok(names)
}

#[cfg(all(
    unix,
    not(any(target_os = "linux", target_os = "android", target_vendor = "apple"))
))]
fn attributes(_: &Path) -> io::Result<Vec<u8>> {
    Ok(Vec::new())
}
