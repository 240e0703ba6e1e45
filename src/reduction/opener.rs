//! Opens the stores that settings name.

use std::collections::HashMap;
use std::sync::Arc;

use crate::backend::{Backend, StoreUrl};

/// A store that could not be opened.
#[derive(Clone, Debug)]
pub(super) struct NotOpened {
    pub(super) tool: Option<String>,
    pub(super) url: StoreUrl,
    pub(super) cause: Arc<dyn std::error::Error + Send + Sync>,
}

/// Opens stores by their URLs, each once.
pub(super) struct Opener<O> {
    open: O,
    opened: HashMap<StoreUrl, Arc<dyn Backend>>,
    /// The first failure.
    pub(super) not_opened: Option<NotOpened>,
}

impl<O> Opener<O> {
    pub(super) fn new(open: O) -> Self {
        Self {
            open,
            opened: HashMap::new(),
            not_opened: None,
        }
    }

    /// The store at `url`, which the settings of `tool` name.
    pub(super) fn open<B, E>(
        &mut self,
        tool: Option<&String>,
        url: &StoreUrl,
    ) -> Option<Arc<dyn Backend>>
    where
        O: FnMut(&str) -> Result<B, E>,
        B: Backend,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if let Some(backend) = self.opened.get(url) {
            return Some(backend.clone());
        }
        match (self.open)(url.as_str()) {
            Ok(backend) => {
                let backend: Arc<dyn Backend> = Arc::new(backend);
                self.opened.insert(url.clone(), backend.clone());
                Some(backend)
            }
            Err(error) => {
                let failed = NotOpened {
                    tool: tool.cloned(),
                    url: url.clone(),
                    cause: error.into().into(),
                };
                self.not_opened.get_or_insert(failed);
                None
            }
        }
    }
}
