//! `offcut store ls` and `offcut store stat`.

use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use offcut::backend::{BackendError, Entry, ErrorKind, Key, StoreUrl};
use serde::Serialize;

use crate::failure::{Failure, chain};
use crate::{output, settings, stores, units};

#[derive(Serialize)]
struct Listed {
    location: String,
    bytes: u64,
    /// In seconds since 1970.
    stored_at: u64,
}

#[derive(Serialize)]
struct Listing {
    entries: Vec<Listed>,
    bytes: u64,
}

impl Listing {
    /// Adds up lengths, saturating: a store may report any length.
    fn of(entries: Vec<Listed>) -> Self {
        let lengths = entries.iter().map(|entry| entry.bytes);
        Self {
            bytes: lengths.fold(0, u64::saturating_add),
            entries,
        }
    }
}

pub(crate) fn ls(url: &StoreUrl, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let store = stores::existing(url)?;
    let listed = runtime.block_on(store.list().try_collect::<Vec<_>>());
    let mut entries = listed.map_err(|error| match stores::may_be_store(url) {
        true => failed(&error),
        false => Failure::new(chain(&error)).hint(format!(
            "{url} may not be a store, because it has no `.staging` folder: pass the directory that is the `backend` of the agents' settings"
        )),
    })?;
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    if !entries.is_empty() && !stores::may_be_store(url) {
        output::note(&format!(
            "{url} may not be a store: it has files, but no `.staging` folder"
        ));
    }
    let entries: Vec<_> = entries
        .iter()
        .map(
            |Entry {
                 key,
                 bytes,
                 stored_at,
             }| Listed {
                location: store.locate(key).to_string(),
                bytes: *bytes,
                stored_at: seconds(*stored_at),
            },
        )
        .collect();
    let listing = Listing::of(entries);
    if json {
        output::write_json(&listing)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for Listed {
        location,
        bytes,
        stored_at,
    } in &listing.entries
    {
        let age = units::age(UNIX_EPOCH + Duration::from_secs(*stored_at));
        text += &format!("{bytes:>12}  {age:>5}  {location}\n");
    }
    let (count, bytes) = (listing.entries.len(), units::size(listing.bytes));
    text += &format!("{count} in all, {bytes}\n");
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct Stat {
    location: String,
    what: &'static str,
    bytes: u64,
    /// In seconds since 1970.
    stored_at: u64,
}

pub(crate) fn stat(store: &StoreUrl, location: &str, json: bool) -> Result<ExitCode, Failure> {
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let store = stores::existing(store)?;
    let meant = stores::meanings(std::slice::from_ref(&store), location);
    let meant = meant.iter().find_map(|meant| store.resolve(meant.as_str()));
    let key = meant.ok_or_else(|| {
        Failure::usage(
            format!("{location} is not a location in this store"),
            "copy it from a hint or from `offcut store ls`, or pass its key alone, such as trunc/call_1",
        )
    })?;
    let page = runtime
        .block_on(store.read(&key, 0..0))
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => Failure::new(format!("nothing is stored at {location}"))
                .hint("it was never stored here, or a sweep has removed it"),
            _ => failed(&error),
        })?;
    let stat = Stat {
        location: store.locate(&key).to_string(),
        what: what(&key),
        bytes: page.total,
        stored_at: seconds(page.stored_at),
    };
    if json {
        output::write_json(&stat)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Stat {
        location,
        what,
        bytes,
        stored_at: _,
    } = &stat;
    output::write(&format!(
        "{location}\n{what}\n{bytes} bytes, stored {} ago\n",
        units::age(page.stored_at)
    ))?;
    Ok(ExitCode::SUCCESS)
}

/// Describes content by its name.
fn what(key: &Key) -> &'static str {
    let mut segments = key.as_str().rsplit('/');
    let name = segments.next().unwrap_or_default();
    match segments.next() {
        Some("trunc") => "a result that was truncated",
        Some("clear") if name.contains("-args") => "the arguments of a call that was cleared",
        Some("clear") => "a result that was cleared",
        _ => "not something that was offloaded",
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn failed(error: &BackendError) -> Failure {
    Failure::new(chain(error)).hint("the store could not be read: fix the cause, and try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn l7_sums_of_sizes_saturate() {
        let entry = || Listed {
            location: String::new(),
            bytes: u64::MAX,
            stored_at: 0,
        };
        assert_eq!(Listing::of(vec![entry(), entry()]).bytes, u64::MAX);
    }
}
