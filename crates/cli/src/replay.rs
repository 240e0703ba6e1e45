//! Replays: what a policy would have done to an agent's transcripts, what that would have cost, and
//! what the model could still have seen.

mod agent;
mod call;
mod card;
mod figures;
mod follow;
mod look;
#[cfg(test)]
mod naive_tests;
mod pages;
#[cfg(test)]
mod places_tests;
#[cfg(test)]
mod planted_tests;
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
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use offcut::Settings;
use offcut::backend::{Backend, Memory};
use offcut::format::Message;
use serde::Serialize;

use crate::evidence::Read;
use crate::failure::{Failure, OrFail as _};
use crate::lock::locked;
use crate::settings;
use crate::stores;
use crate::transcript::Source;
pub(crate) use card::Prices;
pub(crate) use figures::Figures;
pub(crate) use replayed::{Change, Miss, NONE, Replay, Replayed};
use script::{Ruler, Script};
pub(crate) use words::{LEGEND, money, sentence, tables, wrapped};

/// A policy to replay under.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) by: RequestSource,
}

/// The source of a policy's requests.
#[derive(Clone, Debug)]
pub(crate) enum RequestSource {
    /// The library, with these settings.
    Settings(Box<Settings>),
    /// Another program, which has written them into this folder.
    Requests(PathBuf),
}

/// A transcript that could not be replayed, with the reason.
#[derive(Debug, Serialize)]
pub(crate) struct Skipped {
    pub(crate) name: String,
    pub(crate) why: String,
}

/// Replays all `sources` under all `policies`, one thread for each processor. Calls `progress`
/// after each source. Returns those that were replayed, and those that were not.
pub(crate) fn all(
    sources: &[Source],
    policies: &[Policy],
    progress: impl Fn(usize) + Sync,
) -> Result<(Vec<Replayed>, Vec<Skipped>), Failure> {
    let ruler = Ruler::new().or_fail("tokens can't be counted")?;
    // Largest first, so that the threads finish at about the same time.
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(sources[*index].size()));
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> Result<(), Failure> {
        let runtime = settings::runtime()?;
        while let Some(index) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let source = &sources[*index];
            let replayed = match source.read() {
                Ok(transcripts) => {
                    let name = source.name();
                    Ok(runtime.block_on(each(&name, transcripts, policies, &ruler))?)
                }
                Err(why) => Err(Skipped {
                    name: source.name(),
                    why,
                }),
            };
            let mut done = locked(&done);
            done.push((*index, replayed));
            progress(done.len());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism()
            .map_or(2, usize::from)
            .min(sources.len());
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| {
                Err(Failure::new(
                    "a replay panicked: please report it with the transcript",
                ))
            })
        })
    })?;
    let mut done = std::mem::take(&mut *locked(&done));
    done.sort_by_key(|(index, _)| *index);
    let (mut replayed, mut skipped) = (Vec::new(), Vec::new());
    for (_, outcome) in done {
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
        let name = if is_one {
            name.to_owned()
        } else {
            format!("{name}#{}", index + 1)
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
        let settings = match &policy.by {
            RequestSource::Settings(settings) => settings,
            RequestSource::Requests(folder) => {
                let requests = requests::read(folder, &name, &script)?;
                replays.push(follow::follow(&script, &requests).await);
                continue;
            }
        };
        let reduction = settings::build(settings, &policy.name, Some(scratch()), stores::open)?;
        // In a lasting store, each policy and transcript gets its own place. In our own store they
        // do not: figures must not depend on names.
        let reduction = if stores::named_in(settings).next().is_some() {
            reduction.session(&format!("{} {name}", policy.name))
        } else {
            reduction
        };
        let replayed = agent::replay(&script, Some(&reduction)).await;
        replays.push(replayed.or_fail(&name)?);
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

/// A store for policies that name none.
pub(crate) fn scratch() -> Arc<dyn Backend> {
    Arc::new(Memory::new())
}
