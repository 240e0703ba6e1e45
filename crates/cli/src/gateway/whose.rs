//! Whose a request is: the tenant that its content belongs to, the credentials that may read it back, and the sender, as
//! operators tell requests apart.

use std::collections::HashSet;
use std::sync::Mutex;

use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::gateway::credentials::{NamedCredential, add_credentials, credentials, is_credential};
use crate::gateway::secret::Secret;
use crate::gateway::settings::{GatewayError, ServeSettings};
use crate::lock::locked;
use crate::units::hex;

/// The client of a request, as far as its headers and its query tell.
pub(crate) struct Client {
    /// The user or customer that the request belongs to, as a safe name; `None` if it does not say.
    pub(crate) tenant: Option<String>,
    /// Its credentials, where they tell who may read a conversation back.
    pub(crate) credential: Option<Credential>,
    /// The sender, for a model that is not known yet.
    pub(crate) whose: Whose,
}

/// The way to tell tenants apart.
#[derive(Debug)]
pub(crate) struct Tenants {
    /// Of headers and credentials, only a keyed hash is known. `None` if all requests are the user's own.
    pub(crate) key: Option<Secret>,
    /// The header that tells tenants apart, in place of the credentials. It is for this server alone.
    pub(crate) header: Option<HeaderName>,
}

/// Headers that a provider needs, or without which a request does not arrive as it was meant.
const NEEDED: [&str; 14] = [
    "accept",
    "accept-encoding",
    "anthropic-beta",
    "anthropic-version",
    "api-key",
    "authorization",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "transfer-encoding",
    "x-api-key",
    "x-goog-api-key",
];

/// The name of the one user of a machine.
const USER: &str = "serve";

impl Tenants {
    pub(crate) fn new(settings: &ServeSettings) -> Result<Self, GatewayError> {
        let header = settings.tenant_header.as_ref().map(|name| {
            name.parse().map_err(|_| {
                let problem = "it is not the name of a header, such as x-team";
                GatewayError::settings("tenant_header", problem)
            })
        });
        let header: Option<HeaderName> = header.transpose()?;
        let name = header.as_ref().map(HeaderName::as_str).unwrap_or_default();
        if NEEDED.contains(&name) {
            let problem = "HTTP or a provider needs this header, and a tenant's is not sent on: choose another, such as x-team, or leave it out to tell tenants by their keys";
            return Err(GatewayError::settings("tenant_header", problem));
        }
        match &settings.tenant_key {
            Some(key) if key.is_too_short() => {
                Err(GatewayError::settings("tenant_key", Secret::TOO_SHORT))
            }
            None if !settings.is_local() => Err(GatewayError::settings(
                "tenant_key",
                "other machines may connect, so tenants have to be kept apart: write a secret of at least 16 characters, the same for all replicas",
            )),
            None if header.is_some() => Err(GatewayError::settings(
                "tenant_header",
                "it needs `tenant_key`, with which its values are hashed",
            )),
            key => Ok(Self {
                key: key.clone(),
                header,
            }),
        }
    }

    /// The tenant of a request; `None` if the request does not say.
    fn of(&self, headers: &HeaderMap, query: Option<&str>) -> Option<String> {
        let Some(key) = &self.key else {
            return Some(USER.to_owned());
        };
        let mut hash = Hmac::<Sha256>::new_from_slice(key.text().as_bytes()).ok()?;
        let credentials = match &self.header {
            Some(header) => {
                let values = headers.get_all(header).iter().map(HeaderValue::as_bytes);
                let named = values.map(|value| NamedCredential::new(header.as_str(), value));
                named.collect()
            }
            None => credentials(headers, query),
        };
        let is_known = add_credentials(&mut hash, &credentials);
        let digest = hash.finalize().into_bytes();
        is_known.then(|| format!("t-{}", hex(&digest[..16])))
    }

    /// The client of a request.
    pub(crate) fn client(&self, headers: &HeaderMap, query: Option<&str>) -> Client {
        let tenant = self.of(headers, query);
        let keeps_apart = self.key.is_some();
        let text = |name| headers.get(name)?.to_str().ok();
        let header = self.header.as_ref();
        let header = header.filter(|name| !is_credential(name.as_str()));
        let named = header.and_then(&text).filter(|name| !may_be_key(name));
        let agent = text(&header::USER_AGENT).unwrap_or_default();
        let program = agent.split([' ', ';', '(']).next().unwrap_or_default();
        let is_version = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
        let program = match program.rsplit_once('/') {
            Some((program, version)) if is_version(version) => program,
            _ => program,
        };
        Client {
            whose: Whose {
                tenant: named
                    .map(clean)
                    .or(tenant.clone())
                    .unwrap_or_else(|| UNKNOWN.to_owned()),
                model: UNKNOWN.to_owned(),
                client: clean(program),
            },
            credential: match keeps_apart {
                true => None,
                false => Credential::of(headers, query),
            },
            tenant,
        }
    }
}

/// Number of conversations that are held in memory. Whoever is forgotten reads again after the next request.
const READABLE: usize = 65_536;

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
        if known.len() >= READABLE {
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

/// The most characters of a name. Clients choose them.
const NAME: usize = 60;
/// Letters and digits in a row from which on a name may be a key.
const LONGEST_WORD: usize = 20;
/// The name of what is not known.
const UNKNOWN: &str = "unknown";

/// The sender of a request. The names hold neither secrets nor characters that a log or a label would have to
/// escape.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Whose {
    /// The value of the operator's header, or else the tenant's keyed name.
    pub(crate) tenant: String,
    pub(crate) model: String,
    /// The program, by its `user-agent`, without its version.
    pub(crate) client: String,
}

impl Whose {
    /// A gateway that calls the plug, by its name in the settings.
    pub(crate) fn of_plug(tenant: &str) -> Self {
        Self {
            tenant: tenant.to_owned(),
            model: UNKNOWN.to_owned(),
            client: "plug".to_owned(),
        }
    }

    /// Notes the model that is asked.
    pub(crate) fn name_model(&mut self, model: &str) {
        self.model = clean(model);
    }

    /// All senders that are too many to be told apart.
    pub(crate) fn others() -> Self {
        let [tenant, model, client] = ["others"; 3].map(str::to_owned);
        Self {
            tenant,
            model,
            client,
        }
    }
}

/// Beginnings of keys, in small letters: of models' providers, clouds, code hosts and chats, and of a JSON Web Token.
const KEYS: [&str; 15] = [
    "sk-", "sk_", "pk_", "rk_", "tok_", "gsk_", "hf_", "aiza", "ya29", "ghp_", "gho_", "ghs_",
    "glpat-", "xox", "eyj",
];

/// Returns true for a name that may hold a key: a scheme of authorization, a word that begins like one, or many letters
/// and digits in a row.
fn may_be_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_part = |letter: char| letter.is_ascii_alphanumeric();
    let mut words = name.split(|letter: char| !is_part(letter) && !"-_".contains(letter));
    name.contains("bearer ")
        || name.contains("basic ")
        || words.any(|word| KEYS.iter().any(|key| word.starts_with(key)))
        || name
            .split(|letter| !is_part(letter))
            .any(|run| run.len() >= LONGEST_WORD)
}

/// A name without what is long or would need an escape, unless it may be a key.
fn clean(name: &str) -> String {
    if may_be_key(name) {
        return UNKNOWN.to_owned();
    }
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._:/@+-".contains(letter);
    let name = name.trim().chars().take(NAME);
    let name: String = name
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect();
    if name.is_empty() {
        UNKNOWN.to_owned()
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exposed() -> ServeSettings {
        ServeSettings {
            listen: ([0, 0, 0, 0], 1).into(),
            tenant_key: Some(Secret::from("0123456789abcdef".to_owned())),
            ..ServeSettings::default()
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        pairs.collect()
    }

    #[test]
    fn credentials_tell_tenants_apart_and_are_not_in_their_names() {
        let tenants = Tenants::new(&exposed()).unwrap();
        let of = |pairs: &[_]| tenants.of(&headers(pairs), None);
        let first = of(&[("x-api-key", "secret-1")]).unwrap();
        assert_eq!(of(&[("x-api-key", "secret-1")]), Some(first.clone()));
        assert_ne!(of(&[("x-api-key", "secret-2")]), Some(first.clone()));
        assert_ne!(of(&[("authorization", "secret-1")]), Some(first.clone()));
        assert!(!first.contains("secret"));
        assert_eq!(of(&[("x-other", "1")]), None);
        // Two users of one gateway, whose keys differ in another header or in the query.
        let both = |token| of(&[("x-api-key", "secret-1"), ("x-access-token", token)]);
        assert_ne!(both("1"), both("2"));
        let query = |query| tenants.of(&headers(&[("x-api-key", "secret-1")]), Some(query));
        assert_ne!(query("%6bey=1"), query("%6bey=2"));
        assert_ne!(query("access_token=1"), query("access_token=2"));
        assert_eq!(query("key=1"), query("%6Bey=%31"));
        let other_key = ServeSettings {
            tenant_key: Some(Secret::from("another secret of settings".to_owned())),
            ..exposed()
        };
        let others = Tenants::new(&other_key).unwrap();
        assert_ne!(
            others.of(&headers(&[("x-api-key", "secret-1")]), None),
            Some(first)
        );
        assert!(
            tenants
                .of(&HeaderMap::new(), Some("alt=sse&key=k"))
                .is_some()
        );
    }

    #[test]
    fn a_named_header_counts_alone() {
        let settings = ServeSettings {
            tenant_header: Some("X-Team".to_owned()),
            ..exposed()
        };
        let tenants = Tenants::new(&settings).unwrap();
        let of = |pairs: &[_]| tenants.of(&headers(pairs), None);
        let team = of(&[("x-team", "a"), ("x-api-key", "1")]);
        assert_eq!(team, of(&[("x-team", "a"), ("x-api-key", "2")]));
        assert_ne!(team, of(&[("x-team", "b"), ("x-api-key", "1")]));
        assert_eq!(of(&[("x-api-key", "1")]), None);
    }

    #[test]
    fn other_machines_need_a_key_and_the_own_user_does_not() {
        let without = ServeSettings {
            tenant_key: None,
            ..exposed()
        };
        assert!(
            Tenants::new(&without)
                .unwrap_err()
                .to_string()
                .contains("tenant_key")
        );
        let own = Tenants::new(&ServeSettings::default()).unwrap();
        assert_eq!(own.of(&HeaderMap::new(), None), Some(USER.to_owned()));
        assert!(!format!("{:?}", exposed()).contains("0123456789abcdef"));
    }

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
        for n in 0..2 * READABLE {
            readers.add(
                credential(&format!("made up {n}")),
                &format!("root/serve/c-{n:032x}/"),
            );
        }
        assert!(locked(&readers.0).len() <= READABLE);
    }

    fn whose(header: Option<&str>, pairs: &[(&'static str, &'static str)]) -> [String; 2] {
        let settings = ServeSettings {
            tenant_key: Some(Secret::from("0123456789abcdef".to_owned())),
            tenant_header: header.map(str::to_owned),
            ..ServeSettings::default()
        };
        let tenants = Tenants::new(&settings).unwrap();
        let found = tenants.client(&headers(pairs), None).whose;
        [found.tenant, found.client]
    }

    #[test]
    fn names_are_plain_and_hold_no_secret() {
        let agents = [
            ("claude-cli/2.1.330 (external, cli)", "claude-cli"),
            ("OpenAI/Python 1.99.0", "OpenAI/Python"),
            ("codex_cli_rs/0.169.0 (Debian 13)", "codex_cli_rs"),
            ("x\"}{\\/y", "x____/y"),
            ("", "unknown"),
            ("SK-ant-api03-x", "unknown"),
            ("team-sk/1 (sk-proj-x)", "team-sk"),
            ("AKIAIOSFODNN7EXAMPLE", "unknown"),
            ("xoxb-1234-abcd", "unknown"),
            ("eyJhbGciOi.eyJzdWIi.c2ln", "unknown"),
            ("ghp_0123456789abcdefghijklmn/1", "unknown"),
        ];
        for (agent, client) in agents {
            assert_eq!(whose(None, &[("user-agent", agent)])[1], client);
        }
        assert_eq!(whose(Some("x-team"), &[("x-team", "blue")])[0], "blue");
        for (header, value) in [
            ("x-team", "Bearer blue"),
            ("x-team", "sk-ant-api03-0123456789abcdef"),
            ("x-team", "gsk_0123456789abcdefghijklmn"),
            ("x-team", "Basic YWJj"),
        ] {
            let [tenant, _] = whose(Some(header), &[(header, value)]);
            assert!(tenant.starts_with("t-"), "{tenant}");
        }
    }
}
