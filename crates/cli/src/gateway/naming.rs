//! The secret in a store with which conversations are named, so that nobody else can compute where a
//! conversation's content is.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use offcut::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use tokio::time::Instant;

use crate::gateway::secret;
use crate::lock::locked;

/// The key of the secret: among the notes of the store, where no hint leads and no sweep removes it.
const KEY: &str = "meta/naming-secret";
const LENGTH: usize = 32;

/// Time after which the secret is looked at again: a store that was lost, and that another server has begun anew, has
/// another.
const LOOKED_AT_EVERY: Duration = Duration::from_secs(60);

/// The secret, created by whoever needs it first.
pub(crate) struct NamingSecret {
    store: Arc<dyn Backend>,
    /// The secret, and the time at which it was looked at.
    known: Mutex<Option<(Bytes, Instant)>>,
}

impl NamingSecret {
    /// The secret of `store`.
    pub(crate) fn new(store: Arc<dyn Backend>) -> Self {
        Self {
            store,
            known: Mutex::default(),
        }
    }

    /// # Errors
    ///
    /// The store failed before the secret was known.
    pub(crate) async fn get(&self) -> Result<Bytes, BackendError> {
        // Nobody waits for another's look: a store may take long to answer.
        let known = {
            let mut known = locked(&self.known);
            if let Some((secret, looked_at)) = &mut *known {
                if looked_at.elapsed() < LOOKED_AT_EVERY {
                    return Ok(secret.clone());
                }
                *looked_at = Instant::now();
            }
            known.as_ref().map(|(secret, _)| secret.clone())
        };
        let secret = match (shared(&self.store, known.as_ref()).await, known) {
            (Ok(now), Some(known)) if now != known => {
                tracing::warn!("the store was begun anew: conversations are named anew too");
                now
            }
            (Err(_), Some(known)) => known,
            (secret, _) => secret?,
        };
        *locked(&self.known) = Some((secret.clone(), Instant::now()));
        Ok(secret)
    }
}

/// The secret that all servers over a store share: what is there, else the `known` one or a new one.
async fn shared(store: &Arc<dyn Backend>, known: Option<&Bytes>) -> Result<Bytes, BackendError> {
    let failed = |text: &str| BackendError::new(ErrorKind::Other, text.to_owned());
    let key = Key::new(KEY).map_err(|error| failed(&error.to_string()))?;
    let read = async || match store.read(&key, 0..LENGTH as u64 + 1).await {
        Ok(page) if page.bytes.len() == LENGTH => Ok(Some(page.bytes)),
        Ok(_) => Err(failed(
            "the secret for names is damaged: remove it, and conversations that go on are named anew",
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    if let Some(secret) = read().await? {
        return Ok(secret);
    }
    let random = || secret::random::<LENGTH>().map(|secret| Bytes::copy_from_slice(&secret));
    let secret = known.cloned().or_else(random);
    let secret = secret.ok_or_else(|| failed("the system gives no random bytes"))?;
    match store.put(&key, secret.clone()).await? {
        PutOutcome::Stored | PutOutcome::AlreadyThere { .. } => Ok(secret),
        // Another server was faster.
        PutOutcome::Taken => read()
            .await?
            .ok_or_else(|| failed("the secret for names is gone again")),
    }
}

#[cfg(test)]
mod tests {
    use offcut::backend::Memory;
    use offcut_testkit::{Fault, Faulty};

    use super::*;

    #[tokio::test]
    async fn servers_over_one_store_share_a_secret() {
        let store: Arc<dyn Backend> = Arc::new(Memory::new());
        let [one, two, other] =
            [store.clone(), store, Arc::new(Memory::new())].map(NamingSecret::new);
        let (first, second) = tokio::join!(one.get(), two.get());
        let first = first.unwrap();
        assert_eq!(first, second.unwrap());
        assert_ne!(first, other.get().await.unwrap());
        assert_eq!(first.len(), LENGTH);
    }

    #[tokio::test(start_paused = true)]
    async fn servers_agree_again_after_a_store_was_lost() {
        let store = Memory::new();
        let [one, two] = [&store, &store].map(|store| NamingSecret::new(Arc::new(store.clone())));
        let first = one.get().await.unwrap();
        assert_eq!(first, two.get().await.unwrap());
        let key = Key::new(KEY).unwrap();
        let lose = async || {
            store
                .remove(&key, store.now() + LOOKED_AT_EVERY)
                .await
                .unwrap();
        };
        lose().await;
        tokio::time::advance(LOOKED_AT_EVERY).await;
        // A server that knows it puts it back.
        assert_eq!(one.get().await.unwrap(), first);
        let started = NamingSecret::new(Arc::new(store.clone()));
        assert_eq!(started.get().await.unwrap(), first);
        // One that was started before is followed.
        lose().await;
        let started = NamingSecret::new(Arc::new(store.clone()));
        let new = started.get().await.unwrap();
        assert_ne!(new, first);
        assert_eq!(two.get().await.unwrap(), new);
        tokio::time::advance(LOOKED_AT_EVERY).await;
        assert_eq!(one.get().await.unwrap(), new);
    }

    #[tokio::test]
    async fn a_store_that_fails_gives_no_secret_and_is_asked_again() {
        let store = Arc::new(Faulty::new(Memory::new()));
        let secret = NamingSecret::new(store.clone());
        store.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
        assert!(secret.get().await.is_err());
        store.heal();
        assert!(secret.get().await.is_ok());
    }
}
