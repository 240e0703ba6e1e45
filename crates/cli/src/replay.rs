//! Replays: what a policy would have done to an agent's transcripts, what that would have cost, and
//! what the model could still have seen.

mod agent;
mod card;
mod figures;
mod follow;
#[cfg(test)]
mod naive_tests;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod planted_tests;
mod player;
mod replayed;
mod requests;
mod script;
#[cfg(test)]
mod seen_tests;
#[cfg(test)]
mod tests;
mod view;
mod words;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use offcut::Settings;
use offcut::format::Message;
use serde::Serialize;

use crate::evidence::Read;
use crate::failure::{Failure, OrFail as _};
use crate::lock::locked;
use crate::output::{self, Progress};
use crate::settings;
use crate::transcript::Source;
use crate::units::count;
pub(crate) use card::Prices;
pub(crate) use figures::Figures;
pub(crate) use replayed::{Miss, NONE, Replay, Replayed};
use script::{Ruler, Script};
pub(crate) use words::{cheapest, overview, verdict};

/// A policy to replay under.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) by: RequestSource,
}

/// The source of a policy's requests.
#[derive(Clone, Debug)]
pub(crate) enum RequestSource {
    /// The library, with these settings of a file or of a built-in policy.
    Settings(Box<Settings>, String),
    /// Another program, which has written them into this folder.
    Requests(PathBuf),
}

/// A transcript that could not be replayed, with the reason.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) name: String,
    pub(crate) why: String,
}

/// Replays all `sources` under all `policies`, one thread for each processor. Shows the progress.
/// Returns those that were replayed, and those that were not.
pub(crate) fn all(
    sources: &[Source],
    policies: &[Policy],
) -> Result<(Vec<Replayed>, Vec<Skipped>), Failure> {
    let ruler = Ruler::new().or_fail("tokens can't be counted")?;
    // Largest first, so that the threads finish at about the same time.
    let mut order: Vec<(usize, &Source)> = sources.iter().enumerate().collect();
    order.sort_by_key(|(_, source)| std::cmp::Reverse(source.size()));
    let size = |source: &Source| source.size() as f64;
    let total: f64 = sources.iter().map(size).sum();
    let (next, done) = (AtomicUsize::new(0), Mutex::new((0, 0.0)));
    let progress = Progress::new("replayed");
    let work = || -> Result<Vec<_>, Failure> {
        let runtime = settings::runtime()?;
        let mut outcomes = Vec::new();
        while let Some((index, source)) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let name = source.name();
            let outcome = match source.read() {
                Ok(transcripts) => {
                    let found = count(transcripts.len() as u64, "transcript");
                    output::detail(&format!("{found} in {name}"));
                    Ok(runtime.block_on(each(&name, transcripts, policies, &ruler))?)
                }
                Err(why) => Err(Skipped { name, why }),
            };
            outcomes.push((*index, outcome));
            let mut done = locked(&done);
            done.0 += 1;
            done.1 += size(source);
            progress.show(done.0, sources.len(), done.1 / total);
        }
        Ok(outcomes)
    };
    let mut outcomes = Vec::new();
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(2, usize::from);
        let workers: Vec<_> = (0..threads.min(sources.len()))
            .map(|_| scope.spawn(work))
            .collect();
        for worker in workers {
            let problem = "a replay panicked: please report it with the transcript";
            outcomes.extend(worker.join().map_err(|_| Failure::new(problem))??);
        }
        Ok::<(), Failure>(())
    })?;
    outcomes.sort_by_key(|(index, _)| *index);
    let (mut replayed, mut skipped) = (Vec::new(), Vec::new());
    for (_, outcome) in outcomes {
        match outcome {
            Ok(several) => replayed.extend(several),
            Err(one) => skipped.push(one),
        }
    }
    Ok((replayed, skipped))
}

/// Replays the transcripts of one source. Several transcripts get numbers.
async fn each(
    name: &str,
    transcripts: Vec<Vec<Message>>,
    policies: &[Policy],
    ruler: &Ruler,
) -> Result<Vec<Replayed>, Failure> {
    let is_one = transcripts.len() == 1;
    let mut replayed = Vec::new();
    for (index, messages) in transcripts.into_iter().enumerate() {
        let name = match is_one {
            true => name.to_owned(),
            false => format!("{name}#{}", index + 1),
        };
        replayed.push(one(name, messages, policies, ruler).await?);
    }
    Ok(replayed)
}

/// Replays one transcript: first doing nothing, then under each policy with its own store.
async fn one(
    name: String,
    messages: Vec<Message>,
    policies: &[Policy],
    ruler: &Ruler,
) -> Result<Replayed, Failure> {
    let messages = script::with_ids_of_a_provider(messages);
    let (read, ruler) = (Read::of(&messages), ruler.for_another());
    let script = Script::new(&messages, &read, &ruler);
    let mut replays = vec![agent::replay(&script, None).await.or_fail(&name)?];
    for policy in policies {
        replays.push(match &policy.by {
            RequestSource::Settings(settings, _) => {
                let reduction = settings::build(settings, &policy.name)?;
                let replayed = agent::replay(&script, Some(&reduction)).await;
                replayed.or_fail(&name)?
            }
            RequestSource::Requests(folder) => {
                follow::follow(&script, &requests::read(folder, &name, &script)?).await
            }
        });
    }
    Ok(Replayed {
        name,
        messages,
        replays,
    })
}

/// Sums over all transcripts, by policy.
pub(crate) fn totals(replayed: &[Replayed], policies: usize) -> Vec<Figures> {
    let mut totals = vec![Figures::default(); policies + 1];
    for one in replayed {
        for (total, replay) in totals.iter_mut().zip(&one.replays) {
            total.add(&replay.figures);
        }
    }
    totals
}
