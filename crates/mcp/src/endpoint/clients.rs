//! The conversations of an endpoint's clients: one for each session and the credentials that were shown in it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use http::HeaderMap;

use super::credentials::{Credentials, random_name};
use crate::gateway::{Conversation, McpGateway};
use crate::locked::locked;
use crate::remote::meaning::SESSION;

/// Maximum number of pairs of a session and credentials that are remembered.
const MAX_CLIENTS: usize = 1024;
/// Maximum number of credentials whose place is remembered.
const MAX_PLACES: usize = 65_536;

/// All clients.
pub(super) struct Clients {
    gateway: Arc<McpGateway>,
    /// True if all clients share what is stored.
    is_shared: bool,
    /// Those whose requests the server has accepted.
    accepted: Mutex<Recent>,
}

/// A client with a session, or all requests without one that have the same credentials.
struct KnownClient {
    conversation: Arc<Conversation>,
    /// The name of the place where its results are stored, below the gateway's own.
    place: Option<String>,
}

/// A session, if there is one, and the credentials of a request in it. A server may give one session to clients
/// with different credentials.
#[derive(Clone, PartialEq, Eq)]
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
    client: Arc<KnownClient>,
    key: Key,
    /// True if the server has accepted a request with these credentials, or without any, in this session.
    pub(super) is_known: bool,
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

    /// The client of a request with these headers and this query, as the server gets them. An opening request
    /// has no client yet.
    pub(super) fn of(&self, headers: &HeaderMap, query: Option<&str>, is_opening: bool) -> Current {
        let key = Key {
            session: session(headers).filter(|_| !is_opening),
            credentials: Credentials::of(headers, query, &self.gateway.secret),
        };
        let (known, renewed) = if is_opening {
            (None, None)
        } else {
            let mut accepted = locked(&self.accepted);
            (accepted.get(&key), accepted.renewed(&key))
        };
        // Until the server has accepted a new token, nothing that it bears touches another's calls.
        let is_known = known.is_some();
        let is_apart = !is_opening && (key.session.is_none() || !is_known);
        let client = known.or(renewed);
        let client = client.unwrap_or_else(|| self.new_client(&key.credentials));
        let conversation = if is_apart {
            Arc::new(client.conversation.beside())
        } else {
            client.conversation.clone()
        };
        Current {
            conversation,
            client,
            key,
            is_known,
        }
    }

    fn new_client(&self, credentials: &Credentials) -> Arc<KnownClient> {
        let place = credentials.name().filter(|_| !self.is_shared);
        let place = place.map(|name| format!("by-{name}"));
        let conversation = match &place {
            Some(place) => self.gateway.conversation_in(place),
            // Anybody who knows a name reads what it names.
            None => self.gateway.conversation().with_random_names(random_name),
        };
        Arc::new(KnownClient {
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
        locked(&self.accepted).put(key, current.client.clone(), is_opening);
    }

    /// Forgets a client whose session the server has ended, or whose credentials it refuses.
    pub(super) fn forget(&self, current: &Current) {
        locked(&self.accepted).take(&current.key);
    }
}

/// The session that headers name.
fn session(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION)?.to_str().ok()?;
    (!id.is_empty()).then(|| id.to_owned())
}

/// Clients, the one that was used last at the end.
#[derive(Default)]
struct Recent {
    clients: Vec<Known>,
    /// The places to which credentials have led, also of clients that are forgotten.
    places: HashMap<Credentials, Option<String>>,
}

struct Known {
    key: Key,
    client: Arc<KnownClient>,
    /// True if it has opened its session here.
    has_opened: bool,
}

impl Recent {
    fn take(&mut self, key: &Key) -> Option<Known> {
        let nth = self.clients.iter().position(|known| known.key == *key)?;
        Some(self.clients.remove(nth))
    }

    fn get(&mut self, key: &Key) -> Option<Arc<KnownClient>> {
        let known = self.take(key)?;
        let client = known.client.clone();
        self.clients.push(known);
        Some(client)
    }

    /// The client that has opened a session, for another bearer token in it. A token that has led elsewhere is
    /// another client's, however that has learned of the session; if too many have, none is known to be new.
    fn renewed(&self, key: &Key) -> Option<Arc<KnownClient>> {
        key.session.as_ref()?;
        let in_session = || {
            let clients = self.clients.iter();
            clients.filter(|one| one.key.session == key.session)
        };
        let mut opened = in_session().filter(|known| {
            known.has_opened && known.key.credentials.differs_by_token(&key.credentials)
        });
        let Known { client, .. } = opened.next()?;
        let is_elsewhere = |place: &Option<String>| *place != client.place;
        let leads_elsewhere = in_session().any(|one| is_elsewhere(&one.client.place))
            || self.places.get(&key.credentials).is_some_and(is_elsewhere)
            || self.places.len() >= MAX_PLACES;
        (!leads_elsewhere).then(|| client.clone())
    }

    /// Adds a client. An opening one takes the place of an earlier one with the same key.
    fn put(&mut self, key: Key, client: Arc<KnownClient>, is_opening: bool) {
        if self.places.len() < MAX_PLACES {
            let place = self.places.entry(key.credentials.clone());
            place.or_insert_with(|| client.place.clone());
        }
        let known = self.take(&key).filter(|_| !is_opening);
        if self.clients.len() >= MAX_CLIENTS {
            self.clients.remove(0);
        }
        self.clients.push(known.unwrap_or(Known {
            key,
            client,
            has_opened: is_opening,
        }));
    }
}
