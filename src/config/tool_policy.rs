//! What is different for single tools.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Length, Limit};
use crate::backend::{Backend, StoreUrl};
use crate::handler::{ClearHandler, TruncHandler};
use crate::preview::{Custom, Preview, PreviewOf};

/// What is different for one tool. What is `None` is inherited from the [`Settings`](crate::Settings), field by
/// field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// Where this tool's results are stored, as a URL: see [`Settings::backend_url`](crate::Settings::backend_url).
    #[serde(rename = "backend", skip_serializing_if = "Option::is_none")]
    pub backend_url: Option<StoreUrl>,
    /// See [`Settings::skip_truncation`](crate::Settings::skip_truncation).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_truncation: Option<bool>,
    /// See [`Settings::skip_clear`](crate::Settings::skip_clear).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_clear: Option<bool>,
    /// See [`Settings::max_length_for_trunc`](crate::Settings::max_length_for_trunc).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_length_for_trunc: Option<Limit>,
    /// See [`Settings::preview_above`](crate::Settings::preview_above).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_above: Option<usize>,
    /// See [`Settings::preview`](crate::Settings::preview).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview: Option<Preview>,
    /// See [`Settings::preview_length`](crate::Settings::preview_length).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_length: Option<Length>,
    /// See [`Settings::stub_length`](crate::Settings::stub_length).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stub_length: Option<Length>,
    /// See [`Settings::keep_errors`](crate::Settings::keep_errors).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_errors: Option<bool>,
    /// What is no data.
    #[serde(skip)]
    pub(crate) hooks: Hooks,
}

/// What can be set for all tools and for single ones, and is no data. Two are equal that share
/// everything.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) backend: Option<Arc<dyn Backend>>,
    pub(crate) trunc_handler: Option<Arc<dyn TruncHandler>>,
    pub(crate) clear_handler: Option<Arc<dyn ClearHandler>>,
    pub(crate) preview: Option<Custom>,
}

impl Hooks {
    pub(crate) fn has_handler(&self) -> bool {
        self.trunc_handler.is_some() || self.clear_handler.is_some()
    }

    /// What `self` leaves out is as in `other`.
    pub(super) fn or(&self, other: &Self) -> Self {
        Self {
            backend: self.backend.as_ref().or(other.backend.as_ref()).cloned(),
            trunc_handler: self
                .trunc_handler
                .as_ref()
                .or(other.trunc_handler.as_ref())
                .cloned(),
            clear_handler: self
                .clear_handler
                .as_ref()
                .or(other.clear_handler.as_ref())
                .cloned(),
            preview: self.preview.as_ref().or(other.preview.as_ref()).cloned(),
        }
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks")
            .field("backend", &self.backend)
            .field("has_trunc_handler", &self.trunc_handler.is_some())
            .field("has_clear_handler", &self.clear_handler.is_some())
            .field("has_preview", &self.preview.is_some())
            .finish()
    }
}

impl PartialEq for Hooks {
    fn eq(&self, other: &Self) -> bool {
        // Exhaustive, so that a new field does not compile until somebody decides about it.
        let Self {
            backend,
            trunc_handler,
            clear_handler,
            preview,
        } = self;
        is_same(backend, &other.backend)
            && is_same(trunc_handler, &other.trunc_handler)
            && is_same(clear_handler, &other.clear_handler)
            && match (preview, &other.preview) {
                (Some(one), Some(other)) => one.is(other),
                (None, None) => true,
                _ => false,
            }
    }
}

fn is_same<T: ?Sized>(one: &Option<Arc<T>>, other: &Option<Arc<T>>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    }
}

impl ToolPolicy {
    /// A policy that inherits everything.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Where this tool's results are stored.
    #[must_use]
    pub fn backend(mut self, backend: impl Backend) -> Self {
        self.hooks.backend = Some(Arc::new(backend));
        self
    }

    /// What decides about this tool's results when they return, in place of the limit: see
    /// [`TruncHandler`].
    #[must_use]
    pub fn trunc_handler(mut self, handler: impl TruncHandler) -> Self {
        self.hooks.trunc_handler = Some(Arc::new(handler));
        self
    }

    /// What decides about this tool's old results, in place of hints: see [`ClearHandler`].
    #[must_use]
    pub fn clear_handler(mut self, handler: impl ClearHandler) -> Self {
        self.hooks.clear_handler = Some(Arc::new(handler));
        self
    }

    /// See [`Settings::skip_truncation`](crate::Settings::skip_truncation).
    #[must_use]
    pub fn skip_truncation(mut self, skip: bool) -> Self {
        self.skip_truncation = Some(skip);
        self
    }

    /// See [`Settings::skip_clear`](crate::Settings::skip_clear).
    #[must_use]
    pub fn skip_clear(mut self, skip: bool) -> Self {
        self.skip_clear = Some(skip);
        self
    }

    /// See [`Settings::max_length_for_trunc`](crate::Settings::max_length_for_trunc).
    #[must_use]
    pub fn max_length_for_trunc(mut self, limit: impl Into<Limit>) -> Self {
        self.max_length_for_trunc = Some(limit.into());
        self
    }

    /// See [`Settings::preview_above`](crate::Settings::preview_above).
    #[must_use]
    pub fn preview_above(mut self, bytes: usize) -> Self {
        self.preview_above = Some(bytes);
        self
    }

    /// See [`Settings::preview`](crate::Settings::preview).
    #[must_use]
    pub fn preview(mut self, preview: Preview) -> Self {
        self.preview = Some(preview);
        self.hooks.preview = None;
        self
    }

    /// Previews this tool's results with code of your own: see
    /// [`Builder::preview_with`](crate::Builder::preview_with).
    #[must_use]
    pub fn preview_with(
        mut self,
        show: impl Fn(&PreviewOf<'_>) -> String + Send + Sync + 'static,
    ) -> Self {
        self.hooks.preview = Some(Custom::new(show));
        self
    }

    /// See [`Settings::preview_length`](crate::Settings::preview_length).
    #[must_use]
    pub fn preview_length(mut self, length: impl Into<Length>) -> Self {
        self.preview_length = Some(length.into());
        self
    }

    /// See [`Settings::stub_length`](crate::Settings::stub_length).
    #[must_use]
    pub fn stub_length(mut self, length: impl Into<Length>) -> Self {
        self.stub_length = Some(length.into());
        self
    }

    /// See [`Settings::keep_errors`](crate::Settings::keep_errors).
    #[must_use]
    pub fn keep_errors(mut self, keep: bool) -> Self {
        self.keep_errors = Some(keep);
        self
    }
}
