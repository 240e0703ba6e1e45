//! `offcut tidy`: sweeps the user's store, as a process of its own that hooks and servers start at most once a day.

use std::fs::{self, File};
use std::io;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, SystemTime};

use super::sweep::NOT_SWEPT;
use crate::agents::layout::Home;
use crate::agents::{journal, log, transcripts};
use crate::failure::{FAILED, Failure, OrFail as _};
use crate::{args, settings, units};

/// Least time between two sweeps.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Days after which conversations go that no transcript names, and the journal becomes the old one. One that goes
/// through a server stores what it has anew once a day (B6), so it is there for 30 days after its last call.
const IDLE_DAYS: u32 = 31;
/// Bytes that conversations may take up that no transcript names.
const QUOTA: u64 = 10 << 30;
/// Variable that switches these sweeps off.
const OFF: &str = "OFFCUT_NO_SWEEP";

/// Starts a sweep of the store of `home` unless there was one within a day. Does not wait for it.
pub(super) fn start(home: &Home) -> io::Result<Option<Child>> {
    if std::env::var_os(OFF).is_some_and(|value| !value.is_empty()) || !is_due(home)? {
        return Ok(None);
    }
    let mut tidy = Command::new(std::env::current_exe()?);
    tidy.arg("tidy").env("OFFCUT_HOME", home.path());
    tidy.stdin(Stdio::null()).stdout(Stdio::null());
    // The agent must not see it as a part of its hook.
    tidy.stderr(Stdio::null())
        .current_dir("/")
        .spawn()
        .map(Some)
}

/// Has sweeps started for as long as this process runs, if it stores in the user's own store.
#[cfg(feature = "serve")]
pub(super) fn while_serving(settings: &offcut::Settings) {
    /// Time between two looks at the stamp, which other processes may have renewed.
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let store = settings.backend_url.as_ref();
    let store = store.and_then(|url| std::path::absolute(url.directory()?).ok());
    let Some(home) = Home::from_env().filter(|home| Some(home.store()) == store) else {
        return;
    };
    let look = move || {
        loop {
            match start(&home) {
                // Until it is waited for, it takes up a process number.
                Ok(Some(mut sweep)) => match sweep.wait() {
                    Ok(ended) if ended.success() => tracing::info!("the store was swept"),
                    _ => tracing::warn!(log = %home.log().display(), "the store was not swept"),
                },
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "no sweep of the store starts"),
            }
            std::thread::sleep(HOUR);
        }
    };
    // A thread that never ends does not keep the process from ending.
    if let Err(error) = std::thread::Builder::new()
        .name("sweeps".to_owned())
        .spawn(look)
    {
        tracing::warn!(%error, "no sweep of the store will start");
    }
}

/// Returns true if the last sweep was started more than a day ago, and notes that one is started now. A new
/// store gets its first one a day later.
fn is_due(home: &Home) -> io::Result<bool> {
    fs::create_dir_all(home.path())?;
    let stamp = File::options()
        .append(true)
        .create(true)
        .open(home.swept())?;
    // A time in the future was written by a clock that was wrong.
    let age = stamp.metadata()?.modified()?.elapsed();
    let is_due = age.map_or(true, |age| age >= DAY);
    if is_due {
        stamp.set_modified(SystemTime::now())?;
    }
    Ok(is_due)
}

/// Sweeps. Writes nothing but the log.
pub(crate) fn run() -> ExitCode {
    #[cfg(unix)]
    {
        // Signals to the agent are not for the sweep. It is not the first of its group, so this can't fail.
        _ = rustix::process::setsid();
    }
    if let Some(home) = Home::from_env()
        && let Err(failure) = sweep(&home)
    {
        // There is nowhere to report that the log can't be written.
        _ = log::append(&home.log(), &format!("sweep: {failure}"));
        return ExitCode::from(FAILED);
    }
    ExitCode::SUCCESS
}

fn sweep(home: &Home) -> Result<(), Failure> {
    let idle = DAY * IDLE_DAYS;
    let oldest = units::seconds(SystemTime::now() - idle);
    if home.store().is_dir() {
        let folders = transcripts::folders(home).or_fail(NOT_SWEPT)?;
        let sweep = args::Sweep {
            idle,
            quota: Some(QUOTA),
            is_a_store: true,
            apply: true,
            ..args::Sweep::default()
        };
        let live: Vec<_> = folders.into_iter().collect();
        let report = super::sweep::sweep(&sweep, &[settings::user_store()?], &live)?;
        if let Some(failed) = report.failed.first() {
            return Err(Failure::new(format!(
                "{} conversations could not be removed, the first because of: {}",
                report.failed.len(),
                failed.error
            )));
        }
    }
    journal::turn(&home.journal(), oldest).or_fail("the journal can't be swept")
}
