//! The sender of a request, as operators tell requests apart.

use http::{HeaderMap, header};
use serde::Serialize;

use crate::gateway::credentials::is_credential;
use crate::gateway::tenant::{Tenant, Tenants};

/// The most characters of a name. Clients choose them.
const NAME: usize = 60;
/// Letters and digits in a row from which on a name may be a key.
const LONGEST_WORD: usize = 20;
/// The name of what is not known.
const UNKNOWN: &str = "unknown";

/// The sender of a request. The names hold neither secrets nor characters that a log or a label would have to
/// escape.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Whose {
    /// The value of the operator's header, or else the tenant's keyed name.
    pub(crate) tenant: String,
    pub(crate) model: String,
    /// The program, by its `user-agent`, without its version.
    pub(crate) client: String,
}

impl Whose {
    /// The sender by the headers of a request, for a model that is not known yet.
    pub(crate) fn of(tenants: &Tenants, tenant: Option<&Tenant>, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name)?.to_str().ok();
        let named = tenants
            .header
            .as_ref()
            .filter(|name| !is_credential(name.as_str()));
        let named = named.and_then(&text).filter(|name| !may_be_key(name));
        let agent = text(&header::USER_AGENT).unwrap_or_default();
        let program = agent.split([' ', ';', '(']).next().unwrap_or_default();
        let is_version = |word: &str| word.starts_with(|first: char| first.is_ascii_digit());
        let program = match program.rsplit_once('/') {
            Some((program, version)) if is_version(version) => program,
            _ => program,
        };
        Self {
            tenant: match (named, tenant) {
                (Some(named), _) => clean(named),
                (None, Some(tenant)) => tenant.name().to_owned(),
                (None, None) => UNKNOWN.to_owned(),
            },
            model: UNKNOWN.to_owned(),
            client: clean(program),
        }
    }

    /// The same sender, for a model.
    pub(crate) fn with_model(self, model: &str) -> Self {
        Self {
            model: clean(model),
            ..self
        }
    }

    /// The labels of a metric, with another one.
    pub(crate) fn labels<'l>(
        &'l self,
        name: &'static str,
        value: &'l str,
    ) -> [(&'static str, &'l str); 4] {
        [
            ("tenant", &self.tenant),
            ("model", &self.model),
            ("client", &self.client),
            (name, value),
        ]
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
    use http::{HeaderName, HeaderValue};

    use super::*;
    use crate::gateway::secret::Secret;
    use crate::gateway::settings::ServeSettings;

    fn whose(header: Option<&str>, pairs: &[(&'static str, &'static str)]) -> [String; 2] {
        let settings = ServeSettings {
            tenant_key: Some(Secret::from("0123456789abcdef".to_owned())),
            tenant_header: header.map(str::to_owned),
            ..ServeSettings::default()
        };
        let tenants = Tenants::new(&settings).unwrap();
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )
        });
        let headers: HeaderMap = pairs.collect();
        let tenant = tenants.of(&headers, None);
        let found = Whose::of(&tenants, tenant.as_ref(), &headers);
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
