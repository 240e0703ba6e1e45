//! Digests, and names that nobody can guess.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::crypto::ring::default_provider;
use sha2::{Digest, Sha256};

/// A name for `bytes` that does not tell what they are.
pub(super) fn name_of(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(bytes)[..18])
}

/// A new name. `None` if the system gives no random bytes.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; 18];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(BASE64_URL_SAFE_NO_PAD.encode(bytes))
}
