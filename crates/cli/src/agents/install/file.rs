//! Files of agents: read, changed in memory, and written in one step.

use std::error::Error;
use std::fmt;
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use offcut::config::read_file;
use serde_json::Value;
use tempfile::NamedTempFile;

use super::jsonc;
use crate::failure::{Failure, chain};

/// A byte order mark.
const MARK: &str = "\u{feff}";

/// A file of an agent, with a change that may still have to be written.
#[derive(Debug)]
pub(crate) struct AgentFile {
    /// The file as the agent knows it.
    path: PathBuf,
    /// The file itself, symbolic links followed.
    target: PathBuf,
    /// The bytes that it was found with; `None` if there is no file.
    found: Option<Vec<u8>>,
    /// The bytes that it is to have.
    bytes: Option<Vec<u8>>,
}

impl AgentFile {
    /// Reads the file at `path`, which may be missing.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let unreadable = because(path, "it can't be read");
        let target = match path.canonicalize() {
            Ok(target) => target,
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(unreadable(error)),
            // A link that leads nowhere is here too.
            Err(_) if path.is_symlink() => {
                let problem = "it is a link that leads nowhere; create the file that it names";
                return Err(refused(path, problem));
            }
            Err(_) => path.to_owned(),
        };
        let bytes = match read_file(&target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                return Err(refused(path, error));
            }
            Err(error) => return Err(unreadable(error)),
        };
        Ok(Self {
            path: path.to_owned(),
            target,
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
        jsonc::parse(self.text()?).map_err(|problem| self.refused(problem))
    }

    /// The error about a problem with the file.
    pub(crate) fn refused(&self, problem: impl fmt::Display) -> Failure {
        refused(&self.path, problem)
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

    /// Gives the file `new` bytes in place of the `old` ones in one step, or removes it. Its mode stays, and a link stays a
    /// link. A file with something that a new one would not have, such as another owner, is written in place.
    fn replace(&self, old: Option<&[u8]>, new: Option<&[u8]>) -> Result<(), Failure> {
        if old == new {
            return Ok(());
        }
        let failed = because(&self.path, "it can't be changed");
        let staged = new.map(|bytes| self.stage(bytes));
        let staged = staged.transpose().map_err(&failed)?;
        if read_file(&self.target).ok().as_deref() != old {
            return Err(self.refused("somebody changed it at the same moment; try again"));
        }
        let replaced = match (new, staged.flatten()) {
            (None, _) => fs::remove_file(&self.target),
            (Some(_), Some(staged)) => staged
                .persist(&self.target)
                .map(drop)
                .map_err(|error| error.error),
            (Some(bytes), None) => self.write_in_place(old.unwrap_or_default(), bytes),
        };
        replaced.map_err(failed)
    }

    /// A new file beside the other one, with its mode. `None` if it can't take its place.
    fn stage(&self, bytes: &[u8]) -> io::Result<Option<NamedTempFile>> {
        let folder = self.target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let staged = tempfile::Builder::new()
            .prefix(".offcut-")
            .tempfile_in(folder);
        let mut staged = staged?;
        staged.write_all(bytes)?;
        staged.as_file().sync_all()?;
        let Ok(found) = fs::metadata(&self.target) else {
            return Ok(Some(staged));
        };
        staged.as_file().set_permissions(found.permissions())?;
        let is_alike = is_alike(&found, &self.target, staged.path())?;
        Ok(is_alike.then_some(staged))
    }

    fn write_in_place(&self, old: &[u8], new: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).open(&self.target)?;
        let mut write = |bytes: &[u8]| {
            file.rewind()?;
            file.write_all(bytes)?;
            file.set_len(bytes.len() as u64)?;
            file.sync_all()
        };
        write(new).inspect_err(|_| {
            // The disk may be full; there was room for this.
            _ = write(old);
        })
    }
}

/// Writes the changes of all files, in this order, or none.
pub(super) fn write_all(files: &[&AgentFile]) -> Result<(), Failure> {
    for file in files.iter().filter(|file| file.bytes != file.found) {
        let found = fs::metadata(&file.target);
        if found.is_ok_and(|found| found.permissions().readonly()) {
            return Err(file.refused(
                "it is read-only; make it writable, or add the lines of docs/agents.md yourself",
            ));
        }
    }
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
