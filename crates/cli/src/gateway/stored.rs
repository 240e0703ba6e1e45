//! Pages of stored content that agents on this machine read with tools of their own.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agents::hook::Surroundings;
use async_trait::async_trait;
use memchr::memmem::Finder;
use offcut::Settings;
use offcut::handler::{Action, HandlerError, ToolOutcome, TruncHandler};

/// The longest arguments of a call that are parsed.
const LONGEST: usize = 64 * 1024;

/// Keeps the results of calls that name a store whole: cut again, they would lead the model in a circle.
///
/// Only the call's arguments count, which are in the history, so every process decides the same.
#[derive(Clone, Debug)]
pub(crate) struct Pages {
    stores: Arc<[Surroundings]>,
    /// The ends of their paths, as JSON has them inside of a string.
    spelled: Arc<[Finder<'static>]>,
}

impl Pages {
    /// The pages of the stores in `settings`; `None` if agents on this machine can't open all of them as files.
    pub(crate) fn of(settings: &Settings) -> Option<Self> {
        let stores = crate::stores::named_in(settings).map(|url| {
            Some(Surroundings {
                store: Some(std::path::absolute(url.directory()?).ok()?),
                ..Surroundings::default()
            })
        });
        let stores: Arc<[Surroundings]> = stores.collect::<Option<_>>()?;
        let names: BTreeSet<String> = stores.iter().flat_map(Surroundings::names).collect();
        let spelled = names.iter().filter_map(|name| {
            let name = serde_json::to_string(name).ok()?;
            Some(Finder::new(name.trim_matches('"')).into_owned())
        });
        Some(Self {
            spelled: spelled.collect(),
            stores,
        })
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
