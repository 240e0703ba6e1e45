//! The tenants of the plug: one for each credential of the settings.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::SystemTime;

use hmac::{Hmac, KeyInit, Mac};
use offcut::backend::ErrorKind;
use offcut::{OnStoreFailure, Settings, StoredNames, ToolReduction};
use sha2::Sha256;

use super::store::{ByHash, DIGITS, day, day_of, location};
use crate::gateway::breaker::Open;
use crate::gateway::error::{GatewayError, is_plain};
use crate::gateway::secret::{Secret, add_field};
use crate::lock::locked;
use crate::units::hex;

/// The tool that gateways give the model.
pub(super) const READER: &str = "headroom_retrieve";

/// Number of results that are held in memory as seen.
const HELD: usize = 16_384;

/// A tenant of the plug.
pub(crate) struct PlugTenant {
    pub(crate) name: String,
    pub(crate) credential: Secret,
    /// Has a session for each day, which stores and reads this tenant's results, and no other's.
    pub(super) session: ToolReduction,
    /// The hashes of the results that were shortened before.
    seen: Mutex<HashSet<String>>,
}

/// Checks the names and the credentials of tenants.
pub(crate) fn check_keys(keys: &BTreeMap<String, Secret>) -> Result<(), GatewayError> {
    let mut known: Vec<&Secret> = Vec::new();
    for (name, credential) in keys {
        let wrong = |problem| GatewayError::entry("compress_keys", name, problem);
        let is_name = is_plain(name) && name.len() <= 40 && *name == name.to_ascii_lowercase();
        if !is_name {
            return Err(wrong(
                "a name has 1 to 40 lower-case letters, digits, `-` and `_`: choose another one",
            ));
        }
        if credential.is_too_short() {
            return Err(wrong(Secret::TOO_SHORT));
        }
        if known.contains(&credential) {
            return Err(wrong(
                "another name has the same key: write a key of its own for each tenant",
            ));
        }
        known.push(credential);
    }
    Ok(())
}

impl PlugTenant {
    /// The tenant of a key.
    pub(super) fn new(
        name: &str,
        credential: &Secret,
        settings: &Settings,
        open: &Open<'_>,
    ) -> Result<Self, GatewayError> {
        let prefix = Arc::<OnceLock<String>>::default();
        let open = |url: &str| {
            let prefix = prefix.clone();
            open(url).map(|store| ByHash { store, prefix })
        };
        let mut settings = settings.clone();
        settings.read_file_tool_name = Some(READER.to_owned());
        // The hash is the name, and what is not stored stays in the messages.
        settings.names = StoredNames::CallId;
        settings.on_offload_error = OnStoreFailure::KeepOriginal;
        let whole = ToolReduction::builder().settings(settings, open).build();
        let session = whole
            .map_err(GatewayError::Reduction)?
            .session(&format!("plug-{name}"));
        prefix.get_or_init(|| session.prefix().to_owned());
        Ok(Self {
            name: name.to_owned(),
            credential: credential.clone(),
            session,
            seen: Mutex::default(),
        })
    }

    /// The session that the result of a hash is stored in.
    pub(super) fn session_of(&self, hash: &str) -> ToolReduction {
        self.session.session(day_of(hash))
    }

    /// The hash of a result's texts: the same in every process on the same day, and not to be guessed
    /// without the credential.
    pub(super) fn hash(&self, texts: &[String], now: SystemTime) -> Option<String> {
        let key = self.credential.text().as_bytes();
        let mut hash = Hmac::<Sha256>::new_from_slice(key).ok()?;
        for text in texts {
            add_field(&mut hash, text.as_bytes());
        }
        let digest = hash.finalize().into_bytes();
        let mut hash = day(now);
        hash += &hex(&digest);
        hash.truncate(DIGITS);
        Some(hash)
    }

    /// The text that a hash stands for; `None` if this tenant has stored none, and an error if the
    /// store failed.
    pub(super) async fn read(&self, hash: &str) -> Option<Result<String, ()>> {
        let read = self.session_of(hash).read_original(&location(hash)).await?;
        match read {
            Ok(bytes) => String::from_utf8(bytes.into()).ok().map(Ok),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => {
                tracing::warn!(kind = ?error.kind(), "stored content was not read");
                Some(Err(()))
            }
        }
    }

    /// Returns true if a result is shortened for the first time.
    pub(super) fn is_first(&self, hash: &str) -> bool {
        let mut seen = locked(&self.seen);
        if seen.len() >= HELD {
            seen.clear();
        }
        seen.insert(hash.to_owned())
    }
}
