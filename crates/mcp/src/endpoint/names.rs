//! Names that nobody can guess.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::crypto::ring::default_provider;

use crate::gateway::{Conversation, McpGateway};

/// A new name of 144 random bits. `None` if the system gives no random bytes.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; 18];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}

/// A conversation for one of several clients, which all may read what they know the name of.
pub(super) fn unguessable(gateway: &Arc<McpGateway>) -> Conversation {
    gateway.conversation().with_random_names(random_name)
}
