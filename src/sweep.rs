//! Removes what Offcut has stored and no conversation names any more, and never anything that a
//! live conversation names.
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
//! let policy = SweepPolicy::new().max_age(Duration::from_secs(30 * 86_400)).quota_bytes(10 << 30);
//! let report = sweep(&reduction, &live, &policy, now).await?; // a dry run
//! println!("{} bytes would go", report.moved.bytes);
//! sweep(&reduction, &live, &policy.apply(), now).await?;
//! # Ok(()) }
//! ```
//!
//! Run one program that calls [`sweep`] from time to time, such as once a day; `offcut sweep` does
//! it from a shell. Agents may keep running. They never remove anything.
//!
//! # Guarantees
//!
//! - **Nothing that is named is removed.** That includes what [`Live`] names, what live arguments,
//!   rounds and other cleared content name in turn, and anything that was stored within the grace.
//! - **Removal takes two steps.** Content is first moved below `swept/`, from where reading brings
//!   it back. A later sweep removes it if the grace is over and nothing has named it since: an
//!   agent may just have stored the same content again.
//! - **Nothing is overwritten, or read as something else.** While swept content is there, no other
//!   content can take its name.
//! - **A crash is harmless,** at any step, and so is dropping the future. The next sweep continues;
//!   until the grace is over, it reports that another sweep may be running.
//! - **One at a time.** A second sweep of a store is refused. A sweep that has run for half the
//!   grace ends itself. A sweep that can't write its lease, such as on a full disk, only removes
//!   what has waited for the grace.
//!
//! `docs/sweeping.md` in the repository says what is not promised.

mod act;
mod file;
mod folder;
mod holdings;
mod index;
mod lease;
mod live;
mod live_error;
mod names;
mod paths;
mod plan;
mod policy;
mod report;
mod rows;
mod run;
mod spelling;

pub use live::Live;
pub use live_error::LiveError;
pub use policy::SweepPolicy;
pub use report::{SweepError, SweepFailure, SweepReport, Tally};
pub use run::sweep;

/// Compiles the example of docs/sweeping.md.
#[cfg(all(doctest, feature = "fs"))]
#[doc = include_str!("../docs/sweeping.md")]
struct Page;
