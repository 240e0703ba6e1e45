//! The policy for one tool, with all inherited values.

use std::sync::Arc;

use super::{Hooks, Policy, Settings, ToolPolicy};
use crate::backend::Backend;
use crate::preview::Previewer;

impl Policy {
    /// Resolves the policy for the tool `name`; `None` means a tool without its own policy.
    pub(crate) fn resolve(settings: &Settings, global: &Hooks, name: Option<&str>) -> Self {
        let nothing = ToolPolicy::default();
        let own = name
            .and_then(|name| settings.tool_config.get(name))
            .unwrap_or(&nothing);
        let mut hooks = own.hooks.clone().or(global.clone());
        // A preview chosen by name also overrides the global one.
        if own.preview.is_some() && own.hooks.preview.is_none() {
            hooks.preview = None;
        }
        let mut policy = settings.policy(own, hooks);
        // A tool's own limit means what it says: results within it stay whole (O1).
        if own.max_length_for_trunc.is_some() && own.preview_above.is_none() {
            policy.preview_above = None;
        }
        let is_in =
            |list: &[String]| name.is_some_and(|name| list.iter().any(|listed| listed == name));
        policy.skip_truncation |= is_in(&settings.trunc_exclude_tools);
        policy.skip_clear |= is_in(&settings.clear_exclude_tools);
        policy
    }

    pub(crate) fn truncates(&self) -> bool {
        !self.skip_truncation
    }

    pub(crate) fn clears(&self) -> bool {
        !self.skip_clear
    }

    /// Returns the previewer for the results of a call.
    pub(crate) fn previewer(&self, tool: &str, arguments: impl FnOnce() -> String) -> Previewer {
        Previewer::new(self.preview, self.hooks.preview.as_ref(), tool, arguments)
    }

    pub(crate) fn backend(&self) -> Option<&Arc<dyn Backend>> {
        self.hooks.backend.as_ref().map(|hook| &hook.0)
    }
}
