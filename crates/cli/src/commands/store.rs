//! `offcut store ls`.

use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use futures_util::TryStreamExt;
use offcut::backend::{BackendError, Entry, StoreUrl};
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
                stored_at: units::seconds(*stored_at),
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
