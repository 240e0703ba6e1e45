//! A disk that fills up, becomes read-only or loses its write permission in the middle of a
//! conversation, and is then repaired.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use lexopt::ValueExt;
use offcut::OnOffloadError;
use offcut::backend::Fs;

use crate::conversation::{Conversation, PATIENCE, Script, reduction, verify_all};
use crate::log;
use crate::mount::{AT, again_in_a_mount};
use crate::originals::Originals;
use crate::result::Result;
use crate::tally::Tally;

/// Argument that makes `main` a child with its own disk.
pub(crate) const DISK: &str = "disk";

const STEPS: u64 = 50;

/// The trouble with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Full,
    ReadOnly,
    Denied,
}

impl Trouble {
    pub(crate) const ALL: [Self; 3] = [Self::Full, Self::ReadOnly, Self::Denied];

    pub(crate) fn what(self) -> &'static str {
        match self {
            Self::Full => "the disk is full",
            Self::ReadOnly => "the disk is read-only",
            Self::Denied => "the permission is lost",
        }
    }

    /// The name as a command-line argument.
    fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Denied => "denied",
        }
    }

    fn named(name: &str) -> Result<Self> {
        Ok(Self::ALL
            .into_iter()
            .find(|trouble| trouble.name() == name)
            .ok_or("there is no such trouble")?)
    }

    fn begin(self, home: &Path) -> Result<()> {
        match self {
            Self::Full => {
                let mut filler = File::create(home.join("filler"))?;
                match io::copy(&mut io::repeat(0), &mut filler) {
                    Err(error) if error.kind() == ErrorKind::StorageFull => Ok(()),
                    other => Err(format!("filling the disk ended with {other:?}").into()),
                }
            }
            Self::ReadOnly => remount(home, "ro"),
            Self::Denied => allow(&home.join("store"), 0o000),
        }
    }

    fn end(self, home: &Path) -> Result<()> {
        match self {
            Self::Full => Ok(std::fs::remove_file(home.join("filler"))?),
            Self::ReadOnly => remount(home, "rw"),
            Self::Denied => allow(&home.join("store"), 0o700),
        }
    }
}

/// Size in KiB of a disk for half of `results` results, about 20 KiB each with arguments. The other
/// half comes during the trouble.
fn size(results: u64) -> u64 {
    16 * 1024 + 16 * results
}

fn remount(home: &Path, how: &str) -> Result<()> {
    let status = Command::new("mount")
        .arg("-o")
        .arg(format!("remount,{how}"))
        .arg(home)
        .status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("remounting ended with {status}").into())
    }
}

fn allow(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(
        path,
        PermissionsExt::from_mode(mode),
    )?)
}

/// Runs a child on its own disk. `None` if this machine does not allow that.
pub(crate) fn run(trouble: Trouble, results: u64, seed: u64) -> Result<Option<Tally>> {
    let arguments = [
        DISK,
        trouble.name(),
        &results.to_string(),
        &seed.to_string(),
    ]
    .map(str::to_owned);
    let output = match trouble {
        Trouble::Full | Trouble::ReadOnly => again_in_a_mount(
            &format!("mount -t tmpfs -o size={}k none $AT", size(results)),
            &arguments,
        ),
        Trouble::Denied => as_nobody(&arguments)?,
    };
    let Some(Output {
        status,
        stdout,
        stderr,
    }) = output
    else {
        return Ok(None);
    };
    let last = stdout
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty())
        .unwrap_or_default();
    match serde_json::from_slice(last)
        .ok()
        .as_ref()
        .and_then(Tally::from_json)
    {
        Some(tally) if status.success() => Ok(Some(tally)),
        _ => Err(format!(
            "the child ended with {status}: {}",
            String::from_utf8_lossy(&stderr)
        )
        .into()),
    }
}

/// Runs a child, as the user `nobody` if this process is root, because permissions don't bind root.
/// `None` if that user may not run this program.
fn as_nobody(arguments: &[String]) -> Result<Option<Output>> {
    use std::os::unix::fs::{MetadataExt, chown};
    use std::os::unix::process::CommandExt;
    const NOBODY: u32 = 65_534;
    let home = tempfile::tempdir()?;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(arguments).env(AT, home.path());
    if home.path().metadata()?.uid() == 0 {
        chown(home.path(), Some(NOBODY), Some(NOBODY))?;
        command.uid(NOBODY).gid(NOBODY);
    }
    Ok(command.output().ok())
}

/// The child: the trouble begins in the middle of each conversation and ends with it. The agent
/// restarts when the trouble begins.
pub(crate) async fn suffer(arguments: &mut lexopt::Parser) -> Result<()> {
    log::watch()?;
    let trouble = Trouble::named(&arguments.value()?.string()?)?;
    let (results, seed): (u64, u64) = (arguments.value()?.parse()?, arguments.value()?.parse()?);
    let (home, originals) = (
        PathBuf::from(
            std::env::var_os(AT).ok_or("the variable for the disk's directory is not set")?,
        ),
        Originals { seed },
    );
    let store = Fs::open(home.join("store"))?;
    let begin = |n: u64| -> Result<_> {
        let reduction = reduction(Fs::open(home.join("store"))?, OnOffloadError::KeepOriginal)?;
        Ok(reduction.session(&format!("chat-{n}")))
    };
    let mut all = Tally::default();
    for n in 0..results.div_ceil(STEPS) {
        let mut session = begin(n)?;
        let script = Script::new(originals, n * STEPS, STEPS.min(results - n * STEPS));
        let mut conversation = Conversation::new(script, Vec::new());
        while !conversation.is_over() {
            if conversation.step() == STEPS / 2 {
                trouble.begin(&home)?;
                session = begin(n)?;
            }
            conversation.go_on(&session, PATIENCE, |_, _| ()).await?;
        }
        if script.steps > STEPS / 2 {
            trouble.end(&home)?;
        }
        all.faults += conversation.failures;
        conversation.verify(&session).await;
        all += conversation.tally;
    }
    if log::failures() != all.faults || all.faults == 0 {
        all.hidden += 1;
        all.problem(format!(
            "{} warnings in the log for {} failures in reports",
            log::failures(),
            all.faults
        ));
    }
    verify_all(&store, originals, &mut all).await?;
    println!("{}", all.to_json());
    Ok(())
}
