//! Pages of stored content that agents on this machine read with tools of their own.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use memchr::memmem::Finder;
use offcut::Settings;
use offcut::handler::{Action, HandlerError, ToolOutcome, TruncHandler};
use offcut_agents::hook::Surroundings;

/// The longest arguments of a call that are parsed.
const LONGEST: usize = 64 * 1024;

/// Keeps the results of calls that name a store whole: cut again, they would lead the model in a circle.
///
/// Only the call's arguments count, which are in the history, so every process decides the same.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    stores: Arc<[Surroundings]>,
    /// Their paths, as JSON has them inside of a string.
    spelled: Arc<[Finder<'static>]>,
}

impl Pages {
    /// The pages of the stores in `settings` that are directories.
    pub(crate) fn of(settings: &Settings) -> Self {
        let of_tools = settings.tool_config.values().map(|tool| &tool.backend_url);
        let urls = of_tools.chain([&settings.backend_url]).flatten();
        let directories = urls.filter_map(|url| std::path::absolute(url.directory()?).ok());
        let directories: Vec<PathBuf> = directories.collect();
        let resolved = directories.iter().filter_map(|at| at.canonicalize().ok());
        let paths: BTreeSet<PathBuf> = directories.iter().cloned().chain(resolved).collect();
        let spelled = paths.iter().filter_map(|path| {
            let path = serde_json::to_string(path.to_str()?).ok()?;
            Some(Finder::new(path.trim_matches('"')).into_owned())
        });
        let stores = directories.into_iter().map(|directory| Surroundings {
            store: Some(directory),
            ..Surroundings::default()
        });
        Self {
            spelled: spelled.collect(),
            stores: stores.collect(),
        }
    }

    /// Returns true if the JSON of a message has the path of one of the stores anywhere.
    pub(crate) fn may_be_named_in(&self, message: &str) -> bool {
        let mut paths = self.spelled.iter();
        paths.any(|path| path.find(message.as_bytes()).is_some())
    }

    /// Returns true if the arguments of a call name one of the stores.
    pub(crate) fn are_named_in(&self, arguments: &str) -> bool {
        if arguments.len() > LONGEST {
            return self.may_be_named_in(arguments);
        }
        self.stores.iter().any(|store| store.is_named_in(arguments))
    }
}

#[async_trait]
impl TruncHandler for Pages {
    async fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError> {
        let is_page = self.are_named_in(&outcome.call.arguments);
        Ok(if is_page {
            Action::Keep
        } else {
            Action::Default
        })
    }
}
