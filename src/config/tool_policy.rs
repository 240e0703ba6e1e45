//! Overrides for single tools, and the policies that they result in.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{PreviewLength, options, see, values};
use crate::backend::{Backend, StoreUrl};
use crate::guard::Hook;
use crate::handler::{ClearHandler, TruncHandler};
use crate::preview::{CustomPreview, Preview, PreviewOf, Previewer};

/// Declares the options that a tool may override.
macro_rules! tool_policy {
    ($(
        $(#[$meta:meta])*
        $option:ident: $type:ty = $default:expr
            $(, set($of_all:ty) $(in place of $($code:ident).+)?)?
            $(, tool($argument:ty): $own:ty $(, in place of $($own_code:ident).+)? $(, read by $read:literal)?)?
            $(, elsewhere($($name:literal),*))?;
    )*) => {
        /// Overrides for one tool. Fields that are `None` are inherited from the
        /// [`Settings`](crate::Settings).
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, expecting = "a table, such as [tool_config.grep]")]
        #[non_exhaustive]
        pub struct ToolPolicy {
            /// URL of the store for this tool's results; see
            /// [`Settings::backend_url`](crate::Settings::backend_url).
            #[serde(rename = "backend", skip_serializing_if = "Option::is_none")]
            pub backend_url: Option<StoreUrl>,
            $($(
                #[doc = see!($option)]
                #[serde(skip_serializing_if = "Option::is_none" $(, deserialize_with = $read)?)]
                pub $option: Option<$own>,
            )?)*
            /// Stores and callbacks, which are not data.
            #[serde(skip)]
            pub(crate) hooks: Hooks,
        }

        impl ToolPolicy {
            $($(
                #[doc = see!($option)]
                #[must_use]
                pub fn $option(mut self, $option: $argument) -> Self {
                    self.$option = Some($option.into());
                    $(self.$($own_code).+ = None;)?
                    self
                }
            )?)*
        }

        /// The policy for one tool, with all inherited values.
        #[derive(Clone, Debug)]
        pub(crate) struct Policy {
            pub(crate) hooks: Hooks,
            $($(
                #[doc = concat!("A tool's own ", stringify!($own), ", or the one for all tools.")]
                pub(crate) $option: $type,
            )?)*
        }
    };
}

options!(tool_policy);

/// Stores and callbacks, for all tools or for a single one. Two are equal if they share the same
/// instances.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Hooks {
    pub(crate) backend: Option<Hook<dyn Backend>>,
    pub(crate) trunc_handler: Option<Hook<dyn TruncHandler>>,
    pub(crate) clear_handler: Option<Hook<dyn ClearHandler>>,
    pub(crate) preview: Option<CustomPreview>,
}

impl Hooks {
    pub(crate) fn has_handler(&self) -> bool {
        self.trunc_handler.is_some() || self.clear_handler.is_some()
    }

    /// Fills the gaps in `self` from `other`.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            backend: self.backend.or(other.backend),
            trunc_handler: self.trunc_handler.or(other.trunc_handler),
            clear_handler: self.clear_handler.or(other.clear_handler),
            preview: self.preview.or(other.preview),
        }
    }
}

impl ToolPolicy {
    /// A policy that inherits everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the store for this tool's results.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.hooks.backend = Some(Hook(Arc::new(backend)));
        self
    }

    /// Sets the handler that decides about this tool's new results, overriding the limit; see
    /// [`TruncHandler`].
    #[must_use]
    pub fn trunc_handler(mut self, handler: impl TruncHandler) -> Self {
        self.hooks.trunc_handler = Some(Hook(Arc::new(handler)));
        self
    }

    /// Sets the handler that decides about this tool's old results, instead of hints; see
    /// [`ClearHandler`].
    #[must_use]
    pub fn clear_handler(mut self, handler: impl ClearHandler) -> Self {
        self.hooks.clear_handler = Some(Hook(Arc::new(handler)));
        self
    }

    /// Previews this tool's results with your own code; see
    /// [`Builder::preview_with`](crate::Builder::preview_with).
    #[must_use]
    pub fn preview_with(
        mut self,
        show: impl Fn(&PreviewOf<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.hooks.preview = Some(Hook(Arc::new(show)));
        self
    }
}

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
}
