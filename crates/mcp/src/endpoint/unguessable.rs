//! Names that nobody can guess.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustls::crypto::ring::default_provider;

/// Number of bytes that make a name: 144 bits.
const LENGTH: usize = 18;

/// A digest or random bytes as a name.
pub(super) fn shown(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&bytes[..bytes.len().min(LENGTH)])
}

/// A new name. `None` if the system gives no random bytes.
pub(super) fn random_name() -> Option<String> {
    let mut bytes = [0; LENGTH];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(shown(&bytes))
}
