//! Stores that are opened once each, for every part of a server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use offcut::backend::Backend;

use crate::gateway::body::BoxError;
use crate::gateway::breaker::Breaker;
use crate::lock::locked;

/// Opens a store by its URL.
pub(crate) type Open<'a> = dyn Fn(&str) -> Result<Arc<dyn Backend>, BoxError> + Send + Sync + 'a;

/// Stores by their URLs.
pub(crate) struct Opened<'a> {
    open: &'a Open<'a>,
    stores: Mutex<HashMap<String, Breaker>>,
}

impl<'a> Opened<'a> {
    pub(crate) fn new(open: &'a Open<'a>) -> Self {
        let stores = Mutex::default();
        Self { open, stores }
    }

    /// The store of a URL.
    pub(crate) fn open(&self, url: &str) -> Result<Arc<dyn Backend>, BoxError> {
        let mut stores = locked(&self.stores);
        if let Some(store) = stores.get(url) {
            return Ok(Arc::new(store.clone()));
        }
        let store = Breaker::new((self.open)(url)?);
        stores.insert(url.to_owned(), store.clone());
        Ok(Arc::new(store))
    }

    /// All stores that were opened.
    pub(crate) fn all(self) -> Vec<Breaker> {
        let stores = self.stores.into_inner();
        let stores = stores.unwrap_or_else(PoisonError::into_inner);
        stores.into_values().collect()
    }
}
