//! Settings from files, or from the policies that come with this program, and the stores that they name.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use offcut::backend::{self, Backend};
use offcut::{Settings, ToolReduction};

use tokio::runtime::Runtime;

use crate::failure::{Failure, chain};
use crate::{args, output};

/// The policies that come with this program, by name.
pub(crate) const READY: [(&str, &str); 5] = [
    ("eino", include_str!("../policies/eino.toml")),
    ("anthropic", include_str!("../policies/anthropic.toml")),
    ("aggressive", include_str!("../policies/aggressive.toml")),
    ("gentle", include_str!("../policies/gentle.toml")),
    ("cache-friendly", include_str!("../policies/cache-friendly.toml")),
];

/// What helps with settings that are wrong.
const HELP: &str = "`offcut config default` prints every option; `offcut config check FILE` checks a file";

/// Reads a settings file, or the ready policy of that name where there is no such file.
pub(crate) fn load(name: &str) -> Result<Settings, Failure> {
    let ready = READY.iter().find(|(ready, _)| *ready == name && !Path::new(name).exists());
    let settings = ready.map_or_else(|| Settings::load(name), |(_, text)| Settings::from_toml(text));
    settings.map_err(|error| {
        let is_unreadable = error.line.is_none() && error.field.is_empty();
        let names: Vec<_> = READY.iter().map(|(ready, _)| *ready).collect();
        let ready = format!("name a .toml or .json file, or a ready policy: {}", names.join(", "));
        Failure::usage(error.to_string(), if is_unreadable { &ready } else { HELP })
    })
}

/// Builds the reduction that `settings` describe. Where they name no store, `or_else` is used, if there is one.
pub(crate) fn build(
    settings: &Settings,
    origin: &str,
    or_else: Option<Arc<dyn Backend>>,
) -> Result<ToolReduction, Failure> {
    let builder = ToolReduction::builder().settings(settings.clone(), open);
    let builder = match or_else {
        Some(backend) if settings.backend_url.is_none() => builder.backend(backend),
        _ => builder,
    };
    builder.build().map_err(|error| Failure::usage(format!("{origin}: {}", chain(&error)), HELP))
}

/// Opens the store that `url` names: `memory:`, a path, or, with the feature, `s3://bucket/prefix`.
fn open(url: &str) -> Result<Arc<dyn Backend>, Box<dyn Error + Send + Sync>> {
    #[cfg(feature = "s3")]
    if url.starts_with("s3://") {
        return Ok(Arc::new(offcut_object_store::Objects::open(url)?));
    }
    if cfg!(not(feature = "s3")) && url.starts_with("s3://") {
        return Err("object stores were left out when this program was built: build it with `--features s3`".into());
    }
    Ok(backend::open(url)?)
}

/// Opens the store that a command is to look into, and so has to be there: opening makes a directory.
pub(crate) fn existing(url: &str) -> Result<Arc<dyn Backend>, Failure> {
    let path = url.strip_prefix("file://").unwrap_or(url);
    if !path.contains("://") && !Path::new(path).is_dir() {
        return Err(Failure::usage(
            format!("there is no store in {url}"),
            "name the directory that the agents' settings name as `backend`, or s3://bucket/prefix",
        ));
    }
    open(url).map_err(|error| {
        Failure::usage(format!("the store {url} does not open: {}", chain(&*error)), "name it as settings do")
    })
}

/// Builds what a command is told to use.
pub(crate) fn reduction(args: &args::Reduction) -> Result<ToolReduction, Failure> {
    let mut settings = load(&args.config)?;
    if args.backend.is_some() {
        settings.backend_url.clone_from(&args.backend);
    }
    match &settings.backend_url {
        None => output::warn("there is no backend, so what is cleared is gone; --backend names a place to keep it"),
        Some(url) if url.starts_with("memory:") => {
            output::note(
                "note: what is stored in memory is gone when this command ends; --backend names a place to keep it",
            );
        }
        Some(_) => {}
    }
    let reduction = build(&settings, &args.config, None)?;
    Ok(match &args.session {
        Some(id) => reduction.session(id),
        None => reduction,
    })
}

/// The runtime that stores need.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(format!("the runtime does not start: {error}")))
}
