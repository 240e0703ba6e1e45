//! The conversations of an endpoint's clients: one for each session and the credentials that were shown in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};

use super::credentials::Credentials;
use super::unguessable::random_name;
use crate::gateway::{Conversation, McpGateway};
use crate::remote::session::SESSION;

/// Maximum number of pairs of a session and credentials that are remembered.
const MAX_CLIENTS: usize = 1024;

/// All clients.
pub(super) struct Clients {
    gateway: Arc<McpGateway>,
    /// True if all clients share what is stored.
    is_shared: bool,
    /// Those whose requests the server has accepted.
    accepted: Mutex<Recent>,
}

/// A client with a session, or all requests without one that have the same credentials.
struct Client {
    conversation: Arc<Conversation>,
    /// The name of the place where its results are stored, below the gateway's own.
    place: Option<String>,
}

/// A session, if there is one, and the credentials of a request in it. A server may give one session to clients
/// with different credentials.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    session: Option<String>,
    credentials: Credentials,
}

/// The client of one request.
#[derive(Clone)]
pub(super) struct Current {
    /// The conversation that has the request: without a session, ids mean something in one exchange
    /// only.
    pub(super) conversation: Arc<Conversation>,
    client: Arc<Client>,
    key: Key,
}

impl Clients {
    /// Keeps what clients store apart by their credentials, unless it `is_shared`.
    pub(super) fn new(gateway: Arc<McpGateway>, is_shared: bool) -> Self {
        Self {
            gateway,
            is_shared,
            accepted: Mutex::default(),
        }
    }

    fn accepted(&self) -> MutexGuard<'_, Recent> {
        // Each change is made in one step, so the state is whole even after a panic.
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The client of a request with these headers and this query, as the server gets them. An opening request
    /// has no client yet.
    pub(super) fn of(&self, headers: &HeaderMap, query: Option<&str>, is_opening: bool) -> Current {
        let key = Key {
            session: session(headers).filter(|_| !is_opening),
            credentials: Credentials::of(headers, query, &self.gateway.secret),
        };
        let known = if is_opening {
            None
        } else {
            self.accepted().get(&key)
        };
        let client = known.unwrap_or_else(|| self.new_client(&key.credentials));
        let conversation = match &key.session {
            None if !is_opening => Arc::new(client.conversation.beside()),
            _ => client.conversation.clone(),
        };
        Current {
            conversation,
            client,
            key,
        }
    }

    fn new_client(&self, credentials: &Credentials) -> Arc<Client> {
        let place = credentials.name().filter(|_| !self.is_shared);
        let place = place.map(|name| format!("by-{name}"));
        let conversation = match &place {
            Some(place) => self.gateway.conversation_in(place),
            // Anybody who knows a name reads what it names.
            None => self.gateway.conversation().with_random_names(random_name),
        };
        Arc::new(Client {
            conversation: Arc::new(conversation),
            place,
        })
    }

    /// Notes that the server has answered a request of `current` as it does for those it knows. The
    /// answer to an opening request may name a session.
    pub(super) fn accept(&self, current: &Current, is_opening: bool, answer: &HeaderMap) {
        let mut key = current.key.clone();
        if is_opening {
            key.session = session(answer);
        }
        self.accepted().put(key, current.client.clone(), is_opening);
    }

    /// Returns true if the server has not accepted a request with these credentials, or without any, in
    /// this session.
    pub(super) fn is_unknown(&self, current: &Current) -> bool {
        !self.accepted().clients.contains_key(&current.key)
    }

    /// Forgets the session that a request named.
    pub(super) fn forget(&self, current: &Current) {
        if current.key.session.is_some() {
            self.accepted().clients.remove(&current.key);
        }
    }
}

/// The session that headers name.
fn session(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION).map(HeaderValue::as_bytes)?;
    (!id.is_empty()).then(|| String::from_utf8_lossy(id).into_owned())
}

/// Clients by a key. The one that was not used for longest goes first.
#[derive(Default)]
struct Recent {
    clients: HashMap<Key, (u64, Arc<Client>)>,
    now: u64,
}

impl Recent {
    fn get(&mut self, key: &Key) -> Option<Arc<Client>> {
        self.now += 1;
        match self.clients.get_mut(key) {
            Some((used, client)) => {
                *used = self.now;
                Some(client.clone())
            }
            None => self.renewed(key),
        }
    }

    /// The only client of a session in which a bearer token has taken the place of another.
    fn renewed(&self, key: &Key) -> Option<Arc<Client>> {
        key.session.as_ref()?;
        let all = || self.clients.iter().map(|(key, (_, client))| (key, client));
        let mut of_session = all()
            .filter(|(one, _)| one.session == key.session)
            .filter(|(one, _)| one.credentials.differs_by_token(&key.credentials));
        let (_, client) = of_session.next()?;
        // A token that leads elsewhere is another client's, however it has learned of the session.
        let leads_elsewhere = of_session.any(|(_, one)| one.place != client.place)
            || all().any(|(one, other)| {
                one.credentials == key.credentials && other.place != client.place
            });
        (!leads_elsewhere).then(|| client.clone())
    }

    /// Adds a client. An opening one takes the place of an earlier one with the same key.
    fn put(&mut self, key: Key, client: Arc<Client>, is_opening: bool) {
        self.now += 1;
        if let Some((used, known)) = self.clients.get_mut(&key) {
            *used = self.now;
            if is_opening {
                *known = client;
            }
            return;
        }
        if self.clients.len() >= MAX_CLIENTS {
            let oldest = self.clients.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.clients.remove(&oldest);
            }
        }
        self.clients.insert(key, (self.now, client));
    }
}
