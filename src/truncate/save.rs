//! Where the texts of a result go: put in one piece, or named once they have been written.

use std::sync::Arc;

use bytes::Bytes;

use super::written::digest_of;
use crate::backend::{Backend, BackendError, Location, Put, Writer};
use crate::session::Session;
use crate::store::{self, By, Id, Name, Phase, Target, key};

/// The place of one stored text of a result.
pub(super) struct Place {
    pub(super) session: Session,
    pub(super) backend: Arc<dyn Backend>,
    pub(super) id: Id,
    /// Which of the result's stored texts it is, counted from 1.
    pub(super) number: usize,
}

/// Where content went.
pub(super) struct Saved {
    pub(super) location: Location,
    /// Whether that is in the spool, a file on this machine.
    pub(super) is_local: bool,
    /// What the store said, where the spool had to take it.
    pub(super) error: Option<BackendError>,
}

impl Saved {
    fn at(location: Location) -> Self {
        Self {
            location,
            is_local: false,
            error: None,
        }
    }
}

impl Place {
    /// Stores `content`.
    pub(super) async fn put(&self, content: Bytes) -> Result<Saved, BackendError> {
        let name = self.id.name_of(&content).part(self.number);
        let target = Target::new(self.session.roots(), Phase::Truncate, &name, &content);
        target.save(&*self.backend, content).await.map(Saved::at)
    }

    /// Stores what `writer` was given, `length` bytes.
    pub(super) async fn name(
        &self,
        writer: &mut dyn Writer,
        length: u64,
    ) -> Result<Saved, BackendError> {
        let (backend, roots, spool) = (&*self.backend, self.session.roots(), self.backend.spool());
        let name = self.id.name().map(|name| name.part(self.number));
        // The digest costs reading all of it again: only where it is needed. The spool needs it
        // once the store has failed, when nothing can be read any more.
        let is_taken = match (&name, &spool) {
            (Some(name), None) => {
                let key = key(roots, Phase::Truncate, name);
                if store::name(backend, writer, &key, By::Finish).await? != Put::Taken {
                    return Ok(Saved::at(backend.locate(&key)));
                }
                true
            }
            _ => false,
        };
        let digest = digest_of(writer, length).await?;
        let name = name.unwrap_or_else(|| Name::of_digest(digest.clone()).part(self.number));
        let target = Target::with_digest(roots, Phase::Truncate, &name, &digest);
        let target = if is_taken {
            target.second_only()
        } else {
            target
        };
        match (target.finish(backend, writer).await, spool) {
            (Ok(location), _) => Ok(Saved::at(location)),
            (Err(error), None) => Err(error),
            (Err(error), Some(spool)) => match target.keep(&*spool, writer).await {
                Ok(location) => Ok(Saved {
                    location,
                    is_local: true,
                    error: Some(error),
                }),
                Err(_) => Err(error),
            },
        }
    }
}
