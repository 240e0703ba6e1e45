//! Removes conversations that Offcut has stored and nobody uses any more, and never one that a live
//! transcript names.
//!
//! ```
//! use offcut::ToolReduction;
//! use offcut::backend::Memory;
//! use offcut::sweep::{Live, SweepPolicy, sweep};
//! use std::time::{Duration, SystemTime};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let transcripts = tempfile::tempdir()?;
//! # std::fs::write(transcripts.path().join("chat-1.jsonl"), "{}")?;
//! let reduction = ToolReduction::recommended(Memory::new()).build()?;
//! let now = SystemTime::now(); // before anything live is looked at
//! let live = Live::new().folder(transcripts.path())?;
//! let policy = SweepPolicy::new().idle(Duration::from_secs(30 * 86_400)).quota_bytes(10 << 30);
//! let report = sweep(&reduction, &live, &policy, now).await?; // a dry run
//! println!("{} bytes would go", report.removed.bytes);
//! sweep(&reduction, &live, &policy.apply(), now).await?;
//! # Ok(()) }
//! ```
//!
//! Run one program that calls [`sweep`] from time to time, such as once a day; `offcut sweep` does
//! it from a shell. Agents may keep running. They never remove anything.
//!
//! # Guarantees
//!
//! - **Nothing that is named is removed.** A conversation stays as a whole if [`Live`] names any of
//!   it, or if a live conversation does so in what it has cleared or decided.
//! - **Nothing that is in use is removed.** A conversation stays if anything in it was stored in the
//!   last 48 hours or read in the last 24, or for as long as the policy says. Nobody makes a hint to content that was
//!   stored more than 24 hours before, so every other hint has had 24 hours to get into a transcript.
//! - **Nothing has to wait.** Agents, sweeps and crashes may come in any order. There is no lock,
//!   content is removed at once, and a sweep that was interrupted is continued by the next one.
//!
//! `docs/sweeping.md` in the repository has the proof, and says what is not promised.

mod conversations;
mod folder;
mod index;
mod live;
mod names;
mod policy;
mod report;
mod run;
mod spelling;

pub use live::Live;
pub use policy::SweepPolicy;
pub use report::{SweepError, SweepFailure, SweepReport, Tally};
pub use run::sweep;
