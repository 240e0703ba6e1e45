//! Opens stores by URL, and checks that they exist.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use offcut::Settings;
use offcut::backend::{self, Backend, Fs, Key, Location, StoreUrl};

use crate::failure::{Failure, OrFail as _};

pub(crate) type OpenedStore = Result<Arc<dyn Backend>, Box<dyn Error + Send + Sync>>;

/// Opens the store at `url`: `memory:`, a path, or, with the feature, `s3://bucket/prefix`.
pub(crate) fn open(url: &str) -> OpenedStore {
    #[cfg(feature = "s3")]
    if url.starts_with("s3://") {
        return Ok(Arc::new(offcut_object_store::Objects::open(url)?));
    }
    if let Some((scheme, _)) = url.split_once("://")
        && !["memory", "file"].contains(&scheme)
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
    {
        let problem = format!(
            "this program opens no `{scheme}:` stores: use a path or `memory:`; `s3://bucket/prefix` needs a build with `--features s3`"
        );
        return Err(problem.into());
    }
    Ok(backend::open(url)?)
}

/// Opens the store at `url` for a server, which makes failed calls again itself.
#[cfg(feature = "serve")]
pub(crate) fn open_for_server(url: &str) -> OpenedStore {
    if !url.starts_with("s3://") || url.contains("retries=") {
        return open(url);
    }
    let joint = if url.contains('?') { '&' } else { '?' };
    open(&format!("{url}{joint}retries=0"))
}

/// Tests whether the store at `url` can store. Leaves nothing behind except, in a bucket, the
/// object that proves that nothing is overwritten.
pub(crate) async fn check(url: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    #[cfg(feature = "s3")]
    if url.starts_with("s3://") {
        return Ok(offcut_object_store::Objects::open(url)?.check().await?);
    }
    match StoreUrl::from(url).directory() {
        Some(path) => Ok(Fs::open(path)?.check().await?),
        None => Ok(()),
    }
}

/// Lists the locations that `named` may mean: a location as a hint shows it, a path relative to the
/// working directory, or a key alone.
pub(crate) fn meanings(stores: &[Arc<dyn Backend>], named: &str) -> Vec<Location> {
    let absolute = std::path::absolute(named).ok();
    let absolute = absolute.as_deref().and_then(Path::to_str);
    let is_known = |text: &&str| stores.iter().any(|store| store.resolve(text).is_some());
    let locations = [Some(named), absolute].into_iter().flatten();
    let locations = locations.filter(is_known).map(Location::new);
    let key = Key::new(named).ok();
    let keyed = stores
        .iter()
        .filter_map(|store| Some(store.locate(key.as_ref()?)));
    locations.chain(keyed).collect()
}

/// The store around a file: the nearest folder that may be one.
pub(crate) fn around(file: &str) -> Option<StoreUrl> {
    let file = std::path::absolute(file)
        .ok()
        .filter(|file| file.is_file())?;
    let folders = file.ancestors().skip(1).filter_map(Path::to_str);
    folders.map(StoreUrl::from).find(may_be_store)
}

/// Lists the URLs of all stores that `settings` name.
pub(crate) fn named_in(settings: &Settings) -> impl Iterator<Item = &StoreUrl> {
    let of_tools = settings.tool_config.values().map(|tool| &tool.backend_url);
    of_tools
        .chain([&settings.backend_url])
        .filter_map(Option::as_ref)
}

/// Fails if `url` names a directory that does not exist: a command that reads a store must not
/// create it.
pub(crate) fn expect(url: &StoreUrl) -> Result<(), Failure> {
    match url.directory() {
        Some(path) if !path.is_dir() => Err(Failure::usage(
            format!("there is no store at {url}"),
            "pass the `backend` of the agents' settings",
        )),
        _ => Ok(()),
    }
}

/// Returns true if `url` may name a store, as far as can be told: a directory has a folder
/// `.staging` from its first content on.
pub(crate) fn may_be_store(url: &StoreUrl) -> bool {
    url.directory()
        .is_none_or(|root| root.join(".staging").is_dir())
}

/// Returns true if `url` names an empty directory: a store without content.
pub(crate) fn is_empty(url: &StoreUrl) -> bool {
    url.directory()
        .and_then(|root| root.read_dir().ok())
        .is_some_and(|mut entries| entries.next().is_none())
}

/// Opens an existing store for a command that reads it.
pub(crate) fn existing(url: &StoreUrl) -> Result<Arc<dyn Backend>, Failure> {
    expect(url)?;
    if url.as_str().starts_with("memory:") {
        return Err(Failure::usage(
            format!("there is no store at {url}"),
            "a store in memory lasts only as long as its program",
        ));
    }
    let what = format_args!("the store {url} can't be opened");
    open(url.as_str()).or_refuse(what, "write the URL as in settings")
}
