//! What an input is to the store: content, or a hint to content that is stored already.

use std::sync::Arc;

use crate::backend::{Backend, BackendError, ErrorKind, Location};
use crate::hint::{Hint, Language, Prose};
use crate::read_back::{Said, shows_only};
use crate::store::Stored;

/// The reader that hints name by default.
const READER: &str = "read_file";

pub(super) enum Original {
    /// It is to be stored.
    Content,
    /// It shows nothing but what is stored there: storing it again would put a hop before the
    /// original (L1).
    Stored(Vec<Location>),
    /// It looks like a hint into this store and shows something else. Anybody can write such a
    /// text.
    Imitation,
}

impl Original {
    /// # Errors
    ///
    /// The store could not be asked.
    pub(super) async fn of(text: &str, backend: &Arc<dyn Backend>) -> Result<Self, BackendError> {
        let Some(hints) = Hint::parse_all(text) else {
            return Ok(Self::Content);
        };
        let resolve = |location: &Location| backend.resolve(location.as_str());
        if !hints
            .iter()
            .any(|hint| hint.location.as_ref().and_then(resolve).is_some())
        {
            return Ok(Self::Content);
        }
        let prose = Prose::of(Language::English);
        let said = Said {
            prose: &prose,
            tool: "",
            reader: Some(READER),
            own: &|_| None,
        };
        let mut locations = Vec::new();
        for hint in hints {
            let Some(location) = &hint.location else {
                return Ok(Self::Imitation);
            };
            let Some(key) = resolve(location) else {
                return Ok(Self::Imitation);
            };
            let stored = Stored {
                backend: backend.clone(),
                key,
                location: location.clone(),
            };
            match stored.whole().await {
                Ok(Some(content)) if shows_only(&hint, &content, said) => {
                    locations.push(location.clone());
                }
                Ok(_) => return Ok(Self::Imitation),
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::Imitation),
                Err(error) => return Err(error),
            }
        }
        Ok(Self::Stored(locations))
    }
}
