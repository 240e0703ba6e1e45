//! The conversations of an endpoint's clients: one for each session, or for each who has shown
//! credentials.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use super::unguessable::name_of;
use crate::gateway::{Conversation, McpGateway};
use crate::remote::session::SESSION;

/// Maximum number of sessions, and of credentials, that are remembered.
const MAX_CLIENTS: usize = 1024;
/// Maximum number of credentials that are remembered for a session.
const MAX_CREDENTIALS: usize = 64;

/// All clients.
pub(super) struct Clients {
    gateway: Arc<McpGateway>,
    /// True if all clients share what is stored.
    is_shared: bool,
    sessions: Mutex<Recent>,
    /// Clients without a session, by their credentials.
    others: Mutex<Recent>,
}

/// A client with a session, or all requests without one that have the same credentials.
pub(super) struct Client {
    pub(super) conversation: Arc<Conversation>,
    /// Credentials that the server has accepted.
    accepted: Mutex<HashSet<String>>,
}

/// The client of one request.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) client: Arc<Client>,
    /// The conversation that has the request: without a session, ids mean something in one exchange
    /// only.
    pub(super) conversation: Arc<Conversation>,
    /// The session that the request names.
    session: Option<String>,
    credentials: String,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is made in one step, so the state is whole even after a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clients {
    /// Keeps what clients store apart by their credentials, unless it `is_shared`.
    pub(super) fn new(gateway: Arc<McpGateway>, is_shared: bool) -> Self {
        Self {
            gateway,
            is_shared,
            sessions: Mutex::default(),
            others: Mutex::default(),
        }
    }

    /// The client of a request with these headers. An opening request has no client yet.
    pub(super) fn of(&self, headers: &HeaderMap, is_opening: bool) -> Current {
        let credentials = credentials(headers);
        let session = session(headers).filter(|_| !is_opening);
        let client = match &session {
            _ if is_opening => self.new_client(&credentials),
            Some(id) => {
                let known = locked(&self.sessions).get(id);
                // One from before this program was started.
                known.unwrap_or_else(|| self.new_client(&credentials))
            }
            None => {
                let mut others = locked(&self.others);
                let known = others.get(&credentials);
                known.unwrap_or_else(|| {
                    let new = self.new_client(&credentials);
                    others.put(credentials.clone(), new.clone());
                    new
                })
            }
        };
        let conversation = match &session {
            None if !is_opening => Arc::new(client.conversation.beside()),
            _ => client.conversation.clone(),
        };
        Current {
            client,
            conversation,
            session,
            credentials,
        }
    }

    fn new_client(&self, credentials: &str) -> Arc<Client> {
        let conversation = if self.is_shared || credentials.is_empty() {
            self.gateway.conversation()
        } else {
            self.gateway.conversation_in(&format!("by-{credentials}"))
        };
        Arc::new(Client {
            conversation: Arc::new(conversation),
            accepted: Mutex::default(),
        })
    }

    /// Notes that the server has answered a request of `current` as it does for those it knows. The
    /// answer to an opening request may name a session.
    pub(super) fn accepted(&self, current: &Current, is_opening: bool, answer: &HeaderMap) {
        let opened = is_opening.then(|| session(answer));
        let id = opened.as_ref().unwrap_or(&current.session);
        match id {
            Some(id) => locked(&self.sessions).put(id.clone(), current.client.clone()),
            None => {
                locked(&self.others).put(current.credentials.clone(), current.client.clone());
            }
        }
        let mut accepted = locked(&current.client.accepted);
        if accepted.len() < MAX_CREDENTIALS {
            accepted.insert(current.credentials.clone());
        }
    }

    /// Forgets the session that a request named.
    pub(super) fn ended(&self, current: &Current) {
        if let Some(id) = &current.session {
            locked(&self.sessions).remove(id);
        }
    }
}

impl Current {
    /// Returns true if the server has not accepted a request with these credentials, or without any, from
    /// this client.
    pub(super) fn is_unknown(&self) -> bool {
        !locked(&self.client.accepted).contains(&self.credentials)
    }

    /// Returns true if the request names a session.
    pub(super) fn has_session(&self) -> bool {
        self.session.is_some()
    }
}

/// The session that headers name.
fn session(headers: &HeaderMap) -> Option<String> {
    let id = headers.get(SESSION).map(HeaderValue::as_bytes)?;
    (!id.is_empty()).then(|| String::from_utf8_lossy(id).into_owned())
}

/// Credentials as a digest, so that none are kept. Empty without any.
fn credentials(headers: &HeaderMap) -> String {
    let all: Vec<&[u8]> = headers
        .get_all(AUTHORIZATION)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if all.is_empty() {
        return String::new();
    }
    name_of(&all.join(&b'\n'))
}

/// Clients by a key. The one that was not used for longest goes first.
#[derive(Default)]
struct Recent {
    clients: HashMap<String, (u64, Arc<Client>)>,
    now: u64,
}

impl Recent {
    fn get(&mut self, key: &str) -> Option<Arc<Client>> {
        self.now += 1;
        let (used, client) = self.clients.get_mut(key)?;
        *used = self.now;
        Some(client.clone())
    }

    fn put(&mut self, key: String, client: Arc<Client>) {
        self.now += 1;
        if self.clients.len() >= MAX_CLIENTS && !self.clients.contains_key(&key) {
            let oldest = self.clients.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.clients.remove(&oldest);
            }
        }
        self.clients.insert(key, (self.now, client));
    }

    fn remove(&mut self, key: &str) {
        self.clients.remove(key);
    }
}
