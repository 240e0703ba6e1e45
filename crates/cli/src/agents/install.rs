//! Puts Offcut around an agent's tools by the agent's own settings, and takes it out again.

mod content;
mod error;
mod file;
mod installation;
mod jsonc;
mod record;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use offcut::backend::Fs;
use serde::Serialize;
use serde_json::Value;

use crate::agents::Agent;
use crate::agents::layout::Home;
use crate::failure::Failure;
use content::Content;
pub(crate) use content::{command_of_plugin, commands_in, words};
use error::because;
pub(crate) use error::refused;
pub(crate) use file::AgentFile;
use file::MARK;
use jsonc::Addition;
pub(crate) use jsonc::is_strict;
use record::{Record, StoredRecord};
pub(crate) use record::{read_json, write_json};

pub use installation::{Installation, Scope};

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changed {
    /// The changed file.
    pub path: PathBuf,
    /// The outcome.
    pub outcome: Outcome,
    /// A copy of the file as it was before Offcut was installed, if there was one and it is still kept.
    pub backup: Option<PathBuf>,
    /// The added or removed values, in words. Empty if the whole file is Offcut's.
    pub values: Vec<String>,
}

/// The bytes of a file; `None` without a file.
type FileBytes = Option<Vec<u8>>;

/// The outcome of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The file was created.
    Created,
    /// Values were added, or a file of Offcut's was replaced.
    Added,
    /// Nothing had to change.
    Unchanged,
    /// The file is as it was before the installation, byte for byte; a new one is removed.
    Restored,
    /// The file was changed by others since: only the added values were removed.
    Removed,
}

impl Installation {
    /// Waits, after calling `on_wait`, for other installations of this user to be made or taken out. They wait until
    /// the file is dropped.
    pub(crate) fn lock(&self, on_wait: impl FnOnce()) -> Result<File, Failure> {
        let path = self.home.installed().join("lock");
        let opened = std::fs::create_dir_all(self.home.installed())
            .and_then(|()| File::options().append(true).create(true).open(&path));
        let file = opened.map_err(because(&path, "it can't be opened"))?;
        // Some file systems have no locks.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            on_wait();
            _ = file.lock();
        }
        Ok(file)
    }

    /// Fails where [`install`](Self::install) would, and changes nothing of the agent's.
    pub(crate) fn expect_installable(&self) -> Result<(), Failure> {
        let (file, stored) = self.found()?;
        match self.wanted(&file, stored.as_ref())? {
            (_, Some(_)) => file.expect_writable(),
            _ => Ok(()),
        }
    }

    /// Fails where [`uninstall`](Self::uninstall) would, and changes nothing. Returns true if there is something to
    /// take out.
    pub(crate) fn expect_removable(&self) -> Result<bool, Failure> {
        let (file, stored) = self.found()?;
        let (outcome, ..) = self.taken_out(&file, stored.as_ref())?;
        let is_in = outcome != Outcome::Unchanged;
        if is_in {
            file.expect_writable()?;
        }
        Ok(is_in)
    }

    /// Adds Offcut to the agent's settings. A second time, nothing changes.
    ///
    /// Creates the user's store, because the agent gets the right to read it.
    ///
    /// # Errors
    ///
    /// The agent can't be set up like this, or a file can't be changed. Files are then unchanged.
    pub fn install(&self) -> Result<Changed, Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let (file, stored) = self.found()?;
        let stored = stored.as_ref();
        let (values, wanted) = self.wanted(&file, stored)?;
        let Some(wanted) = wanted else {
            return Ok(Changed {
                path,
                outcome: Outcome::Unchanged,
                backup: stored.and_then(StoredRecord::backup),
                values,
            });
        };
        let original = wanted.original.as_deref();
        let record = Record {
            file: path.clone(),
            additions: wanted.additions,
            had_file: original.is_some(),
            folders: created(&path, stored),
            written: wanted.text,
        };
        // Before the file: without its record, the change could not be taken back.
        let backup = record::write(&self.records(), &record, original)?;
        if let Err(error) = file.replace(Some(record.written.as_bytes())) {
            if stored.is_none()
                && let Some(new) = record::find(&self.records(), &path)?
            {
                new.remove()?;
            }
            return Err(error);
        }
        let outcome = match file.bytes() {
            None => Outcome::Created,
            Some(_) => Outcome::Added,
        };
        Ok(Changed {
            path,
            outcome,
            backup,
            values,
        })
    }

    /// Takes Offcut out of the agent's settings. If nobody else has changed the file since, it is as it was
    /// before, byte for byte. Stored results stay.
    ///
    /// # Errors
    ///
    /// A file can't be changed, or a file of Offcut's was changed by others. It is then unchanged.
    pub fn uninstall(&self) -> Result<Changed, Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let (file, stored) = self.found()?;
        let (outcome, bytes, values) = self.taken_out(&file, stored.as_ref())?;
        file.replace(bytes.as_deref())?;
        if let Some(stored) = stored {
            stored.remove()?;
            for folder in &stored.record.folders {
                // One that holds something else stays.
                _ = std::fs::remove_dir(folder);
            }
        }
        Ok(Changed {
            path,
            outcome,
            backup: None,
            values,
        })
    }

    /// The agent's file, and the record of its change.
    fn found(&self) -> Result<(AgentFile, Option<StoredRecord>), Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let stored = record::find(&self.records(), &path)?;
        Ok((AgentFile::read(&path)?, stored))
    }

    /// The values of an installation in words, and the text with them; `None` if `file` has it.
    fn wanted(
        &self,
        file: &AgentFile,
        stored: Option<&StoredRecord>,
    ) -> Result<(Vec<String>, Option<Wanted>), Failure> {
        Fs::open(&self.store).map_err(because(&self.store, "the store can't be used"))?;
        Ok(match content::of(self)? {
            Content::Values(additions) => {
                let values = content::in_words(&additions);
                (values, self.added(file, stored, additions)?)
            }
            Content::Whole(text) => (Vec::new(), placed(file, stored, text)?),
        })
    }

    /// The bytes of `file` without Offcut; and the values that are taken out, in words.
    fn taken_out(
        &self,
        file: &AgentFile,
        stored: Option<&StoredRecord>,
    ) -> Result<(Outcome, FileBytes, Vec<String>), Failure> {
        let restored = |bytes| Ok((Outcome::Restored, bytes, Vec::new()));
        match (stored, content::of(self)?) {
            (Some(stored), _) if stored.undoes(file) => restored(stored.original()?),
            _ if file.bytes().is_none() => Ok((Outcome::Unchanged, None, Vec::new())),
            (_, Content::Values(wanted)) => {
                let text = file.text()?;
                let settings = jsonc::parse(text).map_err(|problem| file.refused(problem))?;
                let known = known(&wanted, stored);
                let mut additions = content::hooks_in(&settings, self.agent, &known);
                additions.extend(stored.map_or(wanted, |one| one.record.additions.clone()));
                let is_there = |one: &Addition| {
                    let without = jsonc::remove(text, std::slice::from_ref(one), None);
                    without.as_deref() != Ok(text)
                };
                additions.retain(is_there);
                let mut values = content::in_words(&additions);
                // A hook is found by its command too.
                values.dedup();
                let removed = remove(file, stored, &additions)?;
                self.check_rest(file, text_of(&removed), &known)?;
                let outcome = match Some(&*removed) == file.bytes() {
                    true => Outcome::Unchanged,
                    false => Outcome::Removed,
                };
                Ok((outcome, Some(removed), values))
            }
            // Without its backup.
            (Some(stored), Content::Whole(_)) if stored.is_in(file) => restored(None),
            (Some(_), Content::Whole(_)) => Err(file.refused(TOUCHED)),
            (None, Content::Whole(text)) if file.bytes() == Some(text.as_bytes()) => restored(None),
            (None, Content::Whole(_)) => {
                let bytes = file.bytes().map(<[u8]>::to_vec);
                Ok((Outcome::Unchanged, bytes, Vec::new()))
            }
        }
    }

    /// Returns true if the agent's file has what an installation would give it.
    ///
    /// # Errors
    ///
    /// The file can't be read or understood.
    pub(crate) fn is_up_to_date(&self) -> Result<bool, Failure> {
        let path = installed_path(self.agent, &self.scope)?;
        let file = AgentFile::read(&path)?;
        match content::of(self)? {
            Content::Values(additions) => {
                let settings = self.settings_in(&file)?;
                Ok(additions.iter().all(|addition| addition.is_in(&settings)))
            }
            Content::Whole(text) => Ok(file.bytes() == Some(text.as_bytes())),
        }
    }

    /// The settings in `file`, which are refused if a replaced result would be an error under them.
    fn settings_in(&self, file: &AgentFile) -> Result<Value, Failure> {
        let settings = jsonc::parse(file.text()?);
        let checked = settings.and_then(|settings| content::checked(self.agent, settings));
        checked.map_err(|problem| file.refused(problem))
    }

    /// The settings with `additions`; `None` if they have them.
    fn added(
        &self,
        file: &AgentFile,
        stored: Option<&StoredRecord>,
        additions: Vec<Addition>,
    ) -> Result<Option<Wanted>, Failure> {
        let current = self.settings_in(file)?;
        let is_there = additions.iter().all(|addition| addition.is_in(&current));
        let mut of_record = stored.iter().flat_map(|stored| &stored.record.additions);
        if is_there && of_record.all(|addition| additions.contains(addition)) {
            return Ok(None);
        }

        let known = known(&additions, stored);
        // Values of an earlier installation go first: its program may have been another one.
        let original = match stored {
            Some(stored) if stored.undoes(file) => stored.original()?,
            _ if file.bytes().is_none() => None,
            _ => {
                let mut earlier = content::hooks_in(&current, self.agent, &known);
                match stored {
                    Some(one) => earlier.extend(one.record.additions.clone()),
                    // The record is lost.
                    None if !earlier.is_empty() => earlier.extend(additions.clone()),
                    None => {}
                }
                Some(remove(file, stored, &earlier)?)
            }
        };
        let base = original.as_deref().map(text_of).unwrap_or_default();
        // Values that were there before are not ours to remove.
        let refuse = |problem: String| file.refused(problem);
        let before = jsonc::parse(base).map_err(refuse)?;
        self.check_rest(file, base, &known)?;
        let mut missing = additions;
        missing.retain(|addition| !addition.is_in(&before));
        let text = jsonc::add(base, &missing).map_err(refuse)?;
        Ok(Some(Wanted {
            text: file.marked(&text),
            additions: missing,
            original,
        }))
    }

    /// Refuses settings that name Offcut without the values of an installation: somebody has changed these.
    fn check_rest(&self, file: &AgentFile, rest: &str, known: &[Addition]) -> Result<(), Failure> {
        let rest = jsonc::parse(rest).unwrap_or_default();
        match content::own_commands_in(&rest, self.agent, known).first() {
            None => Ok(()),
            Some(command) => Err(file.refused(format_args!(
                "a hook in it with the command `{command}` was changed; take it out by hand, and try again"
            ))),
        }
    }

    /// The files in which the agent has Offcut by this user's records, whatever the scope.
    ///
    /// # Errors
    ///
    /// The records can't be read.
    pub fn installed_paths(&self) -> Result<Vec<PathBuf>, Failure> {
        let all = record::all(&self.records())?;
        Ok(all.into_iter().map(|stored| stored.record.file).collect())
    }

    /// Returns true if the user's folder knows what was installed in the agent.
    pub(crate) fn has_records(&self) -> bool {
        self.records().exists()
    }

    fn records(&self) -> PathBuf {
        records(&self.home, self.agent)
    }
}

/// The folder of the records of an agent's changed files.
pub(crate) fn records(home: &Home, agent: Agent) -> PathBuf {
    home.installed().join(agent.facts().name)
}

/// The file that an installation changes: the agent's settings, or a plug-in of ours.
pub(crate) fn installed_path(agent: Agent, scope: &Scope) -> Result<PathBuf, Failure> {
    let [of_user, of_project] = agent.facts().installed;
    scope.place(agent, agent.facts().settings.join(of_user), of_project)
}

/// The user's folder of the installation that is in the agent's file, whatever the environment names. `None` if it has
/// none that tells.
pub(crate) fn installed_home(agent: Agent, scope: &Scope) -> Option<Home> {
    let path = installed_path(agent, scope).ok()?;
    let file = AgentFile::read(&path).ok()?;
    content::named_home(file.text().ok()?, agent).or_else(|| {
        let home = Home::by_default()?;
        let record = record::find(&records(&home, agent), &path).ok()?;
        record.map(|_| home)
    })
}

/// The values of a new installation, and those of an earlier one.
fn known(wanted: &[Addition], stored: Option<&StoredRecord>) -> Vec<Addition> {
    let recorded = stored.map_or(&[][..], |stored| &stored.record.additions);
    [wanted, recorded].concat()
}

/// The problem with a file of ours that somebody else has changed.
const TOUCHED: &str =
    "it was changed after Offcut placed it; remove it if you do not need the change, and try again";

/// The text that a file is to have.
struct Wanted {
    text: String,
    /// The values in it that are new; none if the whole file is ours.
    additions: Vec<Addition>,
    /// The bytes without Offcut; `None` if there was no file.
    original: Option<Vec<u8>>,
}

/// A file of ours; `None` if it is there as it is.
fn placed(
    file: &AgentFile,
    stored: Option<&StoredRecord>,
    text: String,
) -> Result<Option<Wanted>, Failure> {
    let untouched = stored.filter(|stored| stored.is_in(file));
    if stored.is_some() && untouched.is_none() && file.bytes().is_some() {
        return Err(file.refused(TOUCHED));
    }
    if file.bytes() == Some(text.as_bytes()) {
        return Ok(None);
    }
    let original = match untouched {
        Some(stored) => stored.original()?,
        None => file.bytes().map(<[u8]>::to_vec),
    };
    Ok(Some(Wanted {
        text,
        additions: Vec::new(),
        original,
    }))
}

/// The folders that are missing for a file at `path`, the innermost first, and those that an earlier installation
/// created.
fn created(path: &Path, stored: Option<&StoredRecord>) -> Vec<PathBuf> {
    let missing = path
        .ancestors()
        .skip(1)
        .take_while(|folder| !folder.exists());
    let missing = missing.map(Path::to_owned);
    let earlier = stored
        .iter()
        .flat_map(|stored| stored.record.folders.clone());
    missing.chain(earlier).collect()
}

/// The settings in `file` without `additions`.
fn remove(
    file: &AgentFile,
    stored: Option<&StoredRecord>,
    additions: &[Addition],
) -> Result<Vec<u8>, Failure> {
    let original = stored.map(StoredRecord::original).transpose()?.flatten();
    let original = original.as_deref().map(text_of);
    let before = original.and_then(|text| jsonc::parse(text).ok());
    let text = file.text()?;
    let removed =
        jsonc::remove(text, additions, before.as_ref()).map_err(|problem| file.refused(problem))?;
    let written = stored.map(|stored| text_of(stored.record.written.as_bytes()));
    let undone = written
        .zip(original)
        .and_then(|(written, original)| undone(text, written, original))
        .filter(|undone| jsonc::parse(undone) == jsonc::parse(&removed));
    Ok(file.marked(&undone.unwrap_or(removed)).into_bytes())
}

/// The text without the change that made `written` of `original`, if that is there as it was: whatever is around it
/// keeps its bytes.
fn undone(text: &str, written: &str, original: &str) -> Option<String> {
    let alike = |(a, b): &(char, char)| a == b;
    let common = written.chars().zip(original.chars()).take_while(alike);
    let start: usize = common.map(|(one, _)| one.len_utf8()).sum();
    let (written, original) = (&written[start..], &original[start..]);
    let common = written.chars().rev().zip(original.chars().rev());
    let end: usize = common
        .take_while(alike)
        .map(|(one, _)| one.len_utf8())
        .sum();
    let written = &written[..written.len() - end];
    let (before, after) = text.split_once(written)?;
    (!after.contains(written)).then(|| [before, &original[..original.len() - end], after].concat())
}

/// Parses a settings file; a missing one is empty.
pub(crate) fn parse_settings(path: &Path) -> Result<Value, Failure> {
    let file = AgentFile::read(path)?;
    jsonc::parse(file.text()?).map_err(|problem| file.refused(problem))
}

/// Reads the text of a settings file; a missing one is empty.
pub(crate) fn read_text(path: &Path) -> Result<String, Failure> {
    Ok(AgentFile::read(path)?.text()?.to_owned())
}

/// The text of a settings file, without a byte order mark.
fn text_of(bytes: &[u8]) -> &str {
    let text = str::from_utf8(bytes).unwrap_or_default();
    text.strip_prefix(MARK).unwrap_or(text)
}
