//! The names of conversations: the secret in a store by which they are given, so that nobody else can compute where
//! content is, and the group that a name belongs to where a share of conversations is left alone.

use std::sync::Arc;

use bytes::Bytes;
use offcut::backend::{Backend, BackendError, ErrorKind, Key, PutOutcome};
use sha2::{Digest, Sha256};
use tokio::sync::OnceCell;

use crate::gateway::secret;

/// The key of the secret: among the notes of the store, where no hint leads and no sweep removes it.
const KEY: &str = "meta/naming-secret";
const LENGTH: usize = 32;

/// The secret, created by whoever needs it first.
pub(crate) struct NamingSecret {
    store: Arc<dyn Backend>,
    known: OnceCell<Bytes>,
}

impl NamingSecret {
    /// The secret of `store`.
    pub(crate) fn new(store: Arc<dyn Backend>) -> Self {
        let known = OnceCell::new();
        Self { store, known }
    }

    /// # Errors
    ///
    /// The store failed before the secret was known.
    pub(crate) async fn get(&self) -> Result<Bytes, BackendError> {
        let known = self.known.get_or_try_init(|| shared(&self.store));
        known.await.cloned()
    }
}

/// The secret that all servers over a store share: what is there, else a new one.
async fn shared(store: &Arc<dyn Backend>) -> Result<Bytes, BackendError> {
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
    let secret = secret::random::<LENGTH>().map(|secret| Bytes::copy_from_slice(&secret));
    let secret = secret.ok_or_else(|| failed("the system gives no random bytes"))?;
    match store.put(&key, secret.clone()).await? {
        PutOutcome::Stored | PutOutcome::AlreadyThere { .. } => Ok(secret),
        // Another server was faster.
        PutOutcome::Taken => read()
            .await?
            .ok_or_else(|| failed("the secret for names is gone again")),
    }
}

/// The group of a conversation, where a share of all conversations is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Its requests are reduced.
    Reduced,
    /// Its requests pass unchanged.
    HeldOut,
}

impl Group {
    /// The group's name in metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reduced => "reduced",
            Self::HeldOut => "held-out",
        }
    }
}

/// Returns the group of a conversation, if a `share` of all conversations, from 0 to 1, is left
/// alone; `None` if that is 0. The group depends on the name alone, so that all replicas agree.
pub(crate) fn group(share: f64, conversation: &str) -> Option<Group> {
    if share <= 0.0 {
        return None;
    }
    let mut digest = Sha256::new_with_prefix("offcut holdout\n");
    digest.update(conversation);
    // 32 bits are exact as a float.
    let [one, two, three, four, ..] = <[u8; 32]>::from(digest.finalize());
    let number = u32::from_be_bytes([one, two, three, four]);
    let place = f64::from(number) / (f64::from(u32::MAX) + 1.0);
    Some(match place < share {
        true => Group::HeldOut,
        false => Group::Reduced,
    })
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

    #[tokio::test]
    async fn a_store_that_fails_gives_no_secret_and_is_asked_again() {
        let store = Arc::new(Faulty::new(Memory::new()));
        let secret = NamingSecret::new(store.clone());
        store.fault_on_every_read(Fault::Fail(ErrorKind::Unavailable));
        assert!(secret.get().await.is_err());
        store.heal();
        assert!(secret.get().await.is_ok());
    }

    #[test]
    fn a_share_of_the_names_is_held_out() {
        let held_out = |share| {
            let all = (0..10_000).map(|n| group(share, &format!("tenant/c-{n}/")));
            all.filter(|group| *group == Some(Group::HeldOut)).count()
        };
        assert_eq!((held_out(0.0), held_out(1.0)), (0, 10_000));
        let tenth = held_out(0.1);
        assert!((900..1_100).contains(&tenth), "{tenth}");
        assert_eq!(group(0.0, "a"), None);
    }

    #[test]
    fn a_larger_share_holds_out_the_same_and_more() {
        for n in 0..1_000 {
            let name = n.to_string();
            if group(0.1, &name) == Some(Group::HeldOut) {
                assert_eq!(group(0.2, &name), Some(Group::HeldOut), "{name}");
            }
        }
    }
}
