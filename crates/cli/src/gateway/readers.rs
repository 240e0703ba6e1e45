//! The credentials that may read a conversation on a server of one user: those that it was sent with.

use std::collections::HashSet;
use std::sync::Mutex;

use http::HeaderMap;
use sha2::{Digest, Sha256};

use crate::gateway::credentials::{add_credentials, credentials};
use crate::lock::locked;

/// Number of conversations that are held in memory. Whoever is forgotten reads again after the next request.
const HELD: usize = 65_536;

/// A digest of the credentials of a request. It stays in memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Credential([u8; 32]);

impl Credential {
    /// The credentials of a request; `None` if it has none.
    pub(crate) fn of(headers: &HeaderMap, query: Option<&str>) -> Option<Self> {
        let mut hash = Sha256::new();
        let is_known = add_credentials(&mut hash, &credentials(headers, query));
        is_known.then(|| Self(hash.finalize().into()))
    }
}

/// The names of the conversations that a provider has answered since the start, each with the credentials.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<HashSet<(Credential, String)>>);

impl Readers {
    /// Notes that a provider has answered the conversation of this `prefix`.
    pub(crate) fn add(&self, credential: Credential, prefix: &str) {
        let Some(name) = prefix.trim_end_matches('/').rsplit('/').next() else {
            return;
        };
        let mut known = locked(&self.0);
        if known.len() >= HELD {
            known.clear();
        }
        known.insert((credential, name.to_owned()));
    }

    /// The conversation that a call of the reader names and that these credentials may read: the call is to read
    /// nothing else. The store's own path may look like a conversation's.
    ///
    /// # Errors
    ///
    /// It names only some that they may not read, as far as is known.
    pub(crate) fn conversation<'c>(
        &self,
        credential: &Credential,
        call: &'c str,
    ) -> Result<Option<&'c str>, ()> {
        let mut names = names_in(call).peekable();
        if names.peek().is_none() {
            return Ok(None);
        }
        let known = locked(&self.0);
        let is_own = |name: &&str| known.contains(&(credential.clone(), (*name).to_owned()));
        names.find(is_own).map(Some).ok_or(())
    }
}

/// The names of conversations in a text.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices("c-").filter_map(|(at, _)| {
        let name = text.get(at..at + 34)?;
        let is_digest = name[2..].bytes().all(|byte| byte.is_ascii_hexdigit());
        is_digest.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_read_with_the_credentials_that_it_was_sent_with() {
        let headers = |key: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-api-key", key.parse().unwrap());
            headers
        };
        let credential = |key: &str| Credential::of(&headers(key), None).unwrap();
        let (one, two) = (format!("c-{:032x}", 1), format!("c-{:032x}", 2));
        let readers = Readers::default();
        readers.add(credential("a"), &format!("root/serve/{one}/"));
        let call = |name: &str| format!(r#"{{"path":"/abc-d/serve/{name}/trunc/x"}}"#);
        let (one, two) = (call(&one), call(&two));
        assert!(matches!(
            readers.conversation(&credential("a"), &one),
            Ok(Some(_))
        ));
        assert_eq!(readers.conversation(&credential("b"), &one), Err(()));
        // A store whose own path looks like a conversation's.
        let store = format!(r#"{{"path":"/c-{:032x}/serve/c-{:032x}/trunc/x"}}"#, 9, 1);
        let name = format!("c-{:032x}", 1);
        assert_eq!(
            readers.conversation(&credential("a"), &store),
            Ok(Some(&*name))
        );
        assert_eq!(readers.conversation(&credential("b"), &store), Err(()));
        assert_eq!(readers.conversation(&credential("a"), &two), Err(()));
        assert_eq!(readers.conversation(&credential("a"), "{}"), Ok(None));
        assert_eq!(Credential::of(&HeaderMap::new(), None), None);
        assert_eq!(Credential::of(&headers(""), None), None);
        readers.add(credential("a"), &format!("root/serve/c-{:032x}/", 3));
        assert!(matches!(
            readers.conversation(&credential("a"), &one),
            Ok(Some(_))
        ));
        for n in 0..2 * HELD {
            readers.add(
                credential(&format!("made up {n}")),
                &format!("root/serve/c-{n:032x}/"),
            );
        }
        assert!(locked(&readers.0).len() <= HELD);
    }
}
