//! `offcut store ls`.

use std::process::ExitCode;

use futures_util::TryStreamExt;
use offcut::backend::{Entry, StoreUrl};
use serde_json::json;

use crate::failure::{Failure, chain};
use crate::{output, settings, stores, units};

pub(crate) fn ls(url: Option<&StoreUrl>, json: bool) -> Result<ExitCode, Failure> {
    let url = &url.cloned().map_or_else(settings::store_in_use, Ok)?;
    let runtime = settings::runtime()?;
    let _inside = runtime.enter();
    let store = stores::existing(url)?;
    let listed = runtime.block_on(store.list().try_collect::<Vec<_>>());
    let mut entries = listed.map_err(|error| {
        Failure::new(chain(&error))
            .hint("pass the `backend` of the agents' settings, or fix the cause and try again")
    })?;
    entries.sort_by(|a, b| a.key.cmp(&b.key));
    if !entries.is_empty() && !stores::may_be_store(url) {
        output::note(&format!(
            "{url} may not be a store: it has files, but no `.staging` folder"
        ));
    }
    let bytes = sum(&entries);
    if json {
        let entry = |entry: &Entry| {
            let stored_at = units::seconds(entry.stored_at);
            json!({"location": store.locate(&entry.key), "bytes": entry.bytes, "stored_at": stored_at})
        };
        let entries: Vec<_> = entries.iter().map(entry).collect();
        output::write_json(&json!({"entries": entries, "bytes": bytes}))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for entry in &entries {
        let (age, location) = (units::age(entry.stored_at), store.locate(&entry.key));
        text += &format!("{:>12}  {age:>5}  {location}\n", entry.bytes);
    }
    text += &format!("{} in all, {}\n", entries.len(), units::size(bytes));
    output::write(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Adds up lengths, saturating: a store may report any length.
fn sum(entries: &[Entry]) -> u64 {
    let lengths = entries.iter().map(|entry| entry.bytes);
    lengths.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use offcut::backend::Key;

    use super::*;

    #[test]
    fn l7_sums_of_sizes_saturate() {
        let entry = || Entry {
            key: Key::new("trunc/a").unwrap(),
            bytes: u64::MAX,
            stored_at: UNIX_EPOCH,
        };
        assert_eq!(sum(&[entry(), entry()]), u64::MAX);
    }
}
