//! A process that truncates, streams and clears is killed at random moments, and another one
//! continues its work.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use lexopt::ValueExt;
use offcut::OnOffloadError;
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::conversation::{Conversation, PATIENCE, Script, reduction, verify_all};
use crate::originals::{Numbers, Originals};
use crate::result::Result;
use crate::store;
use crate::tally::Tally;

/// Argument that makes `main` a child that drives one conversation.
pub(crate) const LIVE: &str = "live";

const STEPS: u64 = 30;

/// A conversation in a child process: its store, transcript and script.
#[derive(Debug)]
struct Life {
    store: String,
    transcript: PathBuf,
    script: Script,
}

impl Life {
    fn arguments(&self) -> [String; 4] {
        let Script {
            originals: Originals { seed },
            first,
            ..
        } = self.script;
        [
            self.store.clone(),
            self.transcript.display().to_string(),
            seed.to_string(),
            first.to_string(),
        ]
    }

    fn spawn(&self) -> Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        Ok(command
            .arg(LIVE)
            .args(self.arguments())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()?)
    }

    /// The conversation as the transcript has it now.
    fn conversation(&self) -> Result<Conversation> {
        let messages = match std::fs::read(&self.transcript) {
            Ok(bytes) => serde_json::from_slice::<Vec<Value>>(&bytes)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        Ok(Conversation::new(self.script, messages))
    }
}

/// The child: continues the transcript to its end and writes it durably after each step.
pub(crate) async fn live(arguments: &mut lexopt::Parser) -> Result<()> {
    let store = arguments.value()?.string()?;
    let transcript = PathBuf::from(arguments.value()?);
    let originals = Originals {
        seed: arguments.value()?.parse()?,
    };
    let life = Life {
        store,
        transcript,
        script: Script::new(originals, arguments.value()?.parse()?, STEPS),
    };
    let reduction = reduction(store::open(&life.store)?, OnOffloadError::Fail)?;
    let mut conversation = life.conversation()?;
    while !conversation.is_over() {
        conversation.go_on(&reduction, PATIENCE, |_, _| ()).await?;
        write_durably(&life.transcript, &conversation.messages)?;
    }
    Ok(())
}

/// Replaces the file so that it holds the old messages or the new ones, even after a crash.
fn write_durably(path: &Path, messages: &[Value]) -> Result<()> {
    let next = path.with_extension("next");
    let mut file = File::create(&next)?;
    file.write_all(&serde_json::to_vec(messages)?)?;
    file.sync_all()?;
    std::fs::rename(&next, path)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// Kills `kills` processes. `place` returns an empty store for each conversation, by its number.
pub(crate) async fn run(
    kills: u64,
    seed: u64,
    place: impl AsyncFn(u64) -> Result<String>,
) -> Result<Tally> {
    let home = tempfile::tempdir()?;
    let originals = Originals { seed };
    let mut numbers = Numbers::new(seed);
    let mut all = Tally::default();
    let mut a_whole_life = Duration::ZERO;
    for n in 0.. {
        let transcript = home.path().join(format!("{n}.json"));
        let life = Life {
            store: place(n).await?,
            transcript,
            script: Script::new(originals, n * 1_000, STEPS),
        };
        let mut is_resumed = false;
        loop {
            // The first process is not killed: its duration is the range of the random delays.
            let may_be_killed = n > 0 && all.kills < kills;
            let (begun, mut child) = (Instant::now(), life.spawn()?);
            let delay = Duration::from_nanos(numbers.below(a_whole_life.as_nanos() as u64));
            let delay = if may_be_killed { delay } else { PATIENCE };
            if tokio::time::timeout(delay, child.wait()).await.is_err() {
                child.start_kill()?; // SIGKILL
            }
            let status = child.wait().await?;
            // A process that has just ended can't be killed any more. Other failures are problems.
            let is_killed = status.code().is_none();
            match status.success() {
                true if !is_resumed => a_whole_life = begun.elapsed(),
                true => {}
                false if is_killed && may_be_killed => all.kills += 1,
                false => all.problem(format!("a process ended with {status}")),
            }
            check(&life, &mut all, !is_killed).await?;
            if !is_killed || !all.problems.is_empty() {
                break;
            }
            is_resumed = true;
        }
        if all.kills >= kills || !all.problems.is_empty() {
            return Ok(all);
        }
    }
    Ok(all)
}

/// Checks as a new process that all visible content is whole and that every hint in the transcript
/// leads to its original.
async fn check(life: &Life, all: &mut Tally, is_over: bool) -> Result<()> {
    let store = store::open(&life.store)?;
    let mut tally = Tally::default();
    verify_all(&store, life.script.originals, &mut tally).await?;
    let mut conversation = life.conversation()?;
    conversation
        .verify(&reduction(store, OnOffloadError::Fail)?)
        .await;
    tally += conversation.tally.clone();
    if is_over {
        tally.results += conversation.step();
        if !conversation.is_over() {
            tally.problem("a process ended before its conversation");
        }
    }
    *all += tally;
    Ok(())
}
