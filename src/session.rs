//! State that every part works with: the resolved configuration, and the prefix of one
//! conversation.

use std::collections::{BTreeMap, HashSet};
use std::ops::Deref;
use std::sync::Arc;

use crate::backend::layout::Phase;
use crate::hint::{Draft, Hint, Prose};

use crate::backend::content::{Id, Marks, Roots, Stored, longest_key};
use crate::backend::{Backend, Key, Location};
use crate::config::{Policy, Settings, StoredNames};
use crate::content::ToolCall;
use crate::guard::{Hook, guard};
use crate::handler::{GenId, PostProcess};
use crate::report::{Decision, ErrorSource, Report};
use crate::tokens::Meter;

pub(crate) type OnReport = Hook<dyn Fn(&Report) + Send + Sync>;

/// One conversation's view of a reduction. Clones are cheap and share their state.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) shared: Arc<Shared>,
    pub(crate) roots: Roots,
    pub(crate) meter: Meter,
}

/// State shared by all sessions.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) settings: Settings,
    /// The sentences of hints.
    pub(crate) prose: Prose,
    pub(crate) default: Policy,
    pub(crate) policies: BTreeMap<String, Policy>,
    /// Callbacks that give ids to stored content, by phase.
    pub(crate) gen_ids: [Option<GenId>; 2],
    /// The callback that runs after a pass that changed something.
    pub(crate) post_process: Option<PostProcess>,
    pub(crate) on_report: Option<OnReport>,
    pub(crate) marks: Arc<Marks>,
}

impl Deref for Session {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Session {
    /// The stored content at `location`, if this session stored it.
    pub(crate) fn resolve(&self, location: &str) -> Option<Stored> {
        self.backends().find_map(|backend| {
            let key = backend.resolve(location);
            let key = key.filter(|key| self.roots.owns(key))?;
            Some(self.stored(backend, key))
        })
    }

    /// Returns true if a line of `text` begins a hint into one of the stores, whichever session stored there, such as that of
    /// a program in a tool's command. Believed without a check where it spares a text within the limit its preview.
    pub(crate) fn has_hints(&self, text: &str) -> bool {
        let is_stored = |location: Location| {
            self.backends()
                .any(|backend| backend.resolve(location.as_str()).is_some())
        };
        Hint::locations_in(text).any(is_stored)
    }

    /// The content that this session may have stored as `name` in `folder`, in each of its stores.
    pub(crate) fn named(&self, folder: &str, name: &str) -> Vec<Stored> {
        let key = Key::new(format!("{}{folder}/{name}", self.roots.prefix()));
        let Some(key) = key.ok().filter(|key| self.roots.owns(key)) else {
            return Vec::new();
        };
        let stores = self.stores();
        let stored = stores.iter().map(|store| self.stored(store, key.clone()));
        stored.collect()
    }

    fn stored(&self, backend: &Arc<dyn Backend>, key: Key) -> Stored {
        Stored {
            marks: Some(self.marks.clone()),
            ..Stored::new(backend.clone(), key)
        }
    }

    /// The stores of all policies.
    fn backends(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        let policies = std::iter::once(&self.default).chain(self.policies.values());
        policies.filter_map(Policy::backend)
    }

    /// All stores, each once.
    pub(crate) fn stores(&self) -> Vec<Arc<dyn Backend>> {
        let probe = longest_key(&self.roots, false);
        let mut known = HashSet::new();
        // Two locations may lead to one store.
        let is_new = |store: &&Arc<dyn Backend>| {
            let store_id = store.store_id();
            known.insert((store_id.is_none().then(|| store.locate(&probe)), store_id))
        };
        self.backends().filter(is_new).cloned().collect()
    }

    pub(crate) fn policy(&self, tool: &str) -> &Policy {
        self.shared.policies.get(tool).unwrap_or(&self.default)
    }

    /// Returns true if the clear pass may have anything to do.
    pub(crate) fn clears(&self) -> bool {
        self.default.clears() || self.policies.values().any(Policy::clears)
    }

    /// The id under which a call's result is stored in `phase`: a handler's `own`, or that of the callback, or else the
    /// call's. The `decision` says what was wrong with the one that a user's code gave.
    pub(crate) fn id(
        &self,
        phase: Phase,
        own: Option<&str>,
        call: impl FnOnce() -> ToolCall,
        decision: &mut Decision,
    ) -> Id {
        let of_call = || match self.settings.names {
            StoredNames::CallId => Id::of_call(&decision.call_id),
            StoredNames::Short => Id::short_of_call(&decision.call_id),
        };
        let (given, source) = match (own, &self.gen_ids[phase as usize]) {
            (Some(own), _) => (Ok(own.to_owned()), ErrorSource::Handler),
            (None, Some(generate)) => {
                let given = guard("the id callback", || generate(&call()));
                (given, ErrorSource::Callback)
            }
            (None, None) => return of_call(),
        };
        let (id, problem) = match given {
            Ok(given) => Id::given_or(&given, of_call),
            Err(error) => (of_call(), Some(error.to_string())),
        };
        decision.fail_first(source, problem);
        id
    }

    /// The text of the hint of `draft` at `location`; `None` means that nothing is stored.
    pub(crate) fn hint(&self, draft: Draft, location: Option<Location>) -> String {
        self.prose.complete(draft, location, self.reader()).render()
    }

    /// The name of the reader as hints give it.
    pub(crate) fn reader(&self) -> Option<&str> {
        self.settings.read_file_tool_name.as_deref()
    }

    pub(crate) fn reader_name(&self) -> &str {
        self.reader().unwrap_or("read_file")
    }

    pub(crate) fn observe(&self, report: &Report) {
        report.trace();
        if let Some(on_report) = &self.on_report {
            // Everything stored and changed stays so: the loop gets its result all the same.
            let call = || {
                on_report(report);
                Ok(())
            };
            if let Err(error) = guard("on_report", call) {
                tracing::warn!(%error, "on_report failed");
            }
        }
    }
}
