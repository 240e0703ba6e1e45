//! What holds for one tool, with everything inherited.

use std::sync::Arc;

use super::{Hooks, Length, Limit, Settings, ToolPolicy};
use crate::backend::Backend;
use crate::preview::{Preview, Previewer};

/// What holds for one tool, with everything inherited.
#[derive(Clone, Debug)]
pub(crate) struct Policy {
    pub(crate) hooks: Hooks,
    pub(crate) truncates: bool,
    pub(crate) clears: bool,
    pub(crate) limit: Limit,
    pub(crate) preview_above: Option<usize>,
    pub(crate) preview: Preview,
    pub(crate) preview_length: Length,
    pub(crate) stub_length: Length,
    pub(crate) keep_errors: bool,
}

impl Policy {
    /// How the results of a call are previewed.
    pub(crate) fn previewer(&self, tool: &str, arguments: impl FnOnce() -> String) -> Previewer {
        Previewer::new(self.preview, self.hooks.preview.as_ref(), tool, arguments)
    }

    pub(crate) fn backend(&self) -> Option<&Arc<dyn Backend>> {
        self.hooks.backend.as_ref()
    }

    /// The policy for the tool `name`; `None` for a tool that nothing is said about.
    pub(crate) fn resolve(settings: &Settings, global: &Hooks, name: Option<&str>) -> Self {
        let nothing = ToolPolicy::default();
        let own = name
            .and_then(|name| settings.tool_config.get(name))
            .unwrap_or(&nothing);
        let mut hooks = own.hooks.or(global);
        // A preview by name is a tool's own too.
        if own.preview.is_some() && own.hooks.preview.is_none() {
            hooks.preview = None;
        }
        let is_in =
            |list: &[String]| name.is_some_and(|name| list.iter().any(|listed| listed == name));
        Self {
            hooks,
            truncates: !own.skip_truncation.unwrap_or(settings.skip_truncation)
                && !is_in(&settings.trunc_exclude_tools),
            clears: !own.skip_clear.unwrap_or(settings.skip_clear)
                && !is_in(&settings.clear_exclude_tools),
            limit: own
                .max_length_for_trunc
                .unwrap_or(settings.max_length_for_trunc),
            preview_above: own.preview_above.or(settings.preview_above),
            preview: own.preview.unwrap_or(settings.preview),
            preview_length: own.preview_length.unwrap_or(settings.preview_length),
            stub_length: own.stub_length.unwrap_or(settings.stub_length),
            keep_errors: own.keep_errors.unwrap_or(settings.keep_errors),
        }
    }
}
