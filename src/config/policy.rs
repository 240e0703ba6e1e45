//! The policy for one tool, with all inherited values.

use std::sync::Arc;

use super::{Hooks, Policy, Settings, ToolPolicy};
use crate::backend::Backend;
use crate::preview::Previewer;

impl Policy {
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

    /// Resolves the policy for the tool `name`; `None` means a tool without its own policy.
    pub(crate) fn resolve(settings: &Settings, global: &Hooks, name: Option<&str>) -> Self {
        let nothing = ToolPolicy::default();
        let own = name
            .and_then(|name| settings.tool_config.get(name))
            .unwrap_or(&nothing);
        let mut hooks = own.hooks.or(global);
        // A preview chosen by name also overrides the global one.
        if own.preview.is_some() && own.hooks.preview.is_none() {
            hooks.preview = None;
        }
        // A tool's own limit means what it says: results within it stay whole (O1).
        let inherited_above = settings
            .preview_above
            .filter(|_| own.max_length_for_trunc.is_none());
        let is_in =
            |list: &[String]| name.is_some_and(|name| list.iter().any(|listed| listed == name));
        Self {
            hooks,
            skip_truncation: own.skip_truncation.unwrap_or(settings.skip_truncation)
                || is_in(&settings.trunc_exclude_tools),
            skip_clear: own.skip_clear.unwrap_or(settings.skip_clear)
                || is_in(&settings.clear_exclude_tools),
            max_length_for_trunc: own
                .max_length_for_trunc
                .unwrap_or(settings.max_length_for_trunc),
            preview_above: own.preview_above.or(inherited_above),
            preview: own.preview.unwrap_or(settings.preview),
            preview_length: own.preview_length.unwrap_or(settings.preview_length),
            stub_length: own.stub_length.unwrap_or(settings.stub_length),
            keep_errors: own.keep_errors.unwrap_or(settings.keep_errors),
        }
    }
}
