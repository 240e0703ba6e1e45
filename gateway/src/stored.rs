//! Pages of stored content that agents on this machine read with tools of their own.

use std::sync::Arc;

use async_trait::async_trait;
use offcut::Settings;
use offcut::handler::{Action, HandlerError, ToolOutcome, TruncHandler};
use offcut_agents::hook::Surroundings;

/// Keeps the results of calls that name a store whole: cut again, they would lead the model in a circle.
///
/// Only the call's arguments count, which are in the history, so every process decides the same.
#[derive(Clone, Debug)]
pub(crate) struct Pages(Arc<[Surroundings]>);

impl Pages {
    /// The pages of the stores in `settings` that are directories.
    pub(crate) fn of(settings: &Settings) -> Self {
        let of_tools = settings.tool_config.values().map(|tool| &tool.backend_url);
        let urls = of_tools.chain([&settings.backend_url]).flatten();
        let directories = urls.filter_map(|url| std::path::absolute(url.directory()?).ok());
        let surroundings = directories.map(|directory| Surroundings {
            store: Some(directory),
            ..Surroundings::default()
        });
        Self(surroundings.collect())
    }

    fn has(&self, outcome: &ToolOutcome) -> bool {
        let arguments = &outcome.call.arguments;
        self.0.iter().any(|store| store.is_named_in(arguments))
    }
}

#[async_trait]
impl TruncHandler for Pages {
    async fn handle(&self, outcome: ToolOutcome) -> Result<Action, HandlerError> {
        let is_page = self.has(&outcome);
        Ok(if is_page {
            Action::Keep
        } else {
            Action::Default
        })
    }
}
