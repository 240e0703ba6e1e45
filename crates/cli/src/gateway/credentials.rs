//! The credentials of a request, and the providers that they are for.

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use sha2::digest::Update;

use crate::gateway::secret::{add_field, spellings};

/// Ends of the names of credentials, without `-` and `_`. Retries have an `idempotency-key`, and cookies
/// change, so neither `key` nor `token` alone is one of them.
const ENDS: [&str; 13] = [
    "accesskey",
    "accesstoken",
    "apikey",
    "apitoken",
    "auth",
    "authkey",
    "authorization",
    "authtoken",
    "bearertoken",
    "privatetoken",
    "secretkey",
    "subscriptionkey",
    "virtualkey",
];

/// The owner of a credential whose name and form do not agree.
const NOBODY: &str = "nobody";
/// A provider that only settings name.
pub(crate) const OTHER: &str = "another";
/// The beginnings of keys, each with its provider. The first that fits counts.
const FORMS: [(&str, &str); 23] = [
    ("AIza", "gemini"),
    ("AQ.", "gemini"),
    ("ya29.", "gemini"),
    ("sk-ant-", "anthropic"),
    ("AWS4-", OTHER),
    ("csk-", OTHER),
    ("dapi", OTHER),
    ("fw_", OTHER),
    ("gho_", OTHER),
    ("ghp_", OTHER),
    ("ghs_", OTHER),
    ("github_pat_", OTHER),
    ("glpat-", OTHER),
    ("gsk_", OTHER),
    ("hf_", OTHER),
    ("nvapi-", OTHER),
    ("pplx-", OTHER),
    ("r8_", OTHER),
    ("sk-or-", OTHER),
    ("tgp_", OTHER),
    ("vck_", OTHER),
    ("xai-", OTHER),
    ("sk-", "openai"),
];
/// The beginnings of OpenAI's newer keys. Many gateways give theirs the form of its old ones.
const OF_OPENAI: [&str; 3] = ["sk-proj-", "sk-svcacct-", "sk-admin-"];

/// The shortest key that is known by its form alone, wherever it is.
const SHORTEST: usize = 20;

/// A credential: the name of its header or of its field in the query, and the value.
#[derive(Debug)]
pub(crate) struct NamedCredential {
    pub(crate) name: String,
    pub(crate) value: Vec<u8>,
}

impl NamedCredential {
    pub(crate) fn new(name: &str, value: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.to_owned(),
            value: value.into(),
        }
    }

    /// The provider that this credential is for, by its name and by its form; `None` if neither tells. If they do not
    /// agree, it is for nobody.
    pub(crate) fn owner(&self) -> Option<&'static str> {
        let by_name = match &*self.name {
            "x-api-key" => Some("anthropic"),
            "x-goog-api-key" | "key" => Some("gemini"),
            _ => None,
        };
        let spellings = spellings(&self.value);
        let words = spellings.iter().flat_map(|text| words(text));
        let is_vague = |word: &[u8]| {
            let begins = |begin: &&str| word.starts_with(begin.as_bytes());
            by_form(word) == Some("openai") && !OF_OPENAI.iter().any(begins)
        };
        let forms = words
            .filter(|word| by_name.is_none() || !is_vague(word))
            .filter_map(by_form);
        let mut owners = by_name.into_iter().chain(forms);
        let owner = owners.next()?;
        Some(if owners.all(|other| other == owner) {
            owner
        } else {
            NOBODY
        })
    }
}

/// The words of a value that may be keys.
fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(byte))
}

/// The provider whose keys begin like this one.
fn by_form(key: &[u8]) -> Option<&'static str> {
    let mut forms = FORMS.iter();
    let found = forms.find(|(begin, _)| key.starts_with(begin.as_bytes()));
    found.map(|(_, owner)| *owner)
}

/// The keys of a known form in a value, wherever they are.
fn keys_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_known = |word: &&[u8]| by_form(word).is_some_and(|owner| owner != OTHER);
    words(value).filter(move |word| word.len() >= SHORTEST && is_known(word))
}

/// The credentials of a request: of its headers and of its query, by their names, and keys of a known form
/// in other headers.
pub(crate) fn credentials(headers: &HeaderMap, query: Option<&str>) -> Vec<NamedCredential> {
    let mut all = Vec::new();
    for (name, value) in headers {
        let (name, value) = (name.as_str(), value.as_bytes());
        if is_credential(name) {
            all.push(NamedCredential::new(name, value));
        } else {
            all.extend(keys_in(value).map(|key| NamedCredential::new(name, key)));
        }
    }
    let fields = query.into_iter().flat_map(|query| query.split(['&', ';']));
    for (name, value) in fields.filter_map(|field| field.split_once('=')) {
        let name = percent_decode_str(name).decode_utf8_lossy();
        let name = name.trim().to_ascii_lowercase();
        let value: Vec<u8> = percent_decode_str(value).collect();
        if matches!(&*name, "key" | "token")
            || is_credential(&name)
            || keys_in(&value).next().is_some()
        {
            all.push(NamedCredential { name, value });
        }
    }
    // Clients without a key may send its scheme alone, which names nobody.
    let schemes = ["", "basic", "bearer", "token"].map(str::as_bytes);
    let is_scheme = |value: &[u8]| schemes.iter().any(|one| value.eq_ignore_ascii_case(one));
    all.retain(|one| !is_scheme(one.value.trim_ascii()));
    // The order of headers means nothing.
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Adds credentials to a digest. Returns false if they name nobody.
pub(crate) fn add_credentials(digest: &mut impl Update, credentials: &[NamedCredential]) -> bool {
    for NamedCredential { name, value } in credentials {
        add_field(digest, name.as_bytes());
        add_field(digest, value);
    }
    credentials.iter().any(|one| !one.value.is_empty())
}

/// Returns true for the name of a header, or of a field in a query, that holds a credential.
pub(crate) fn is_credential(name: &str) -> bool {
    let letters = name.replace(['-', '_'], "").to_ascii_lowercase();
    ENDS.iter().any(|end| letters.ends_with(end))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    #[test]
    fn credentials_are_found_wherever_clients_put_them() {
        let key = "sk-ant-0123456789abcdef";
        let found = |name: &'static str, value: &str, query: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            );
            let found = credentials(&headers, Some(query));
            let pairs = found.into_iter().map(|one| {
                let value = String::from_utf8(one.value).unwrap();
                format!("{}: {value}", one.name)
            });
            pairs.collect::<Vec<_>>().join(", ")
        };
        for (name, value, query, expected) in [
            ("authorization", "Token a", "", "authorization: Token a"),
            ("x-access-token", "a", "", "x-access-token: a"),
            ("helicone-auth", "Bearer a", "", "helicone-auth: Bearer a"),
            ("x-litellm-api-key", "a", "", "x-litellm-api-key: a"),
            (
                "cookie",
                &format!("a=1; k={key}"),
                "",
                &format!("cookie: {key}"),
            ),
            ("x", "y", "%6bey=a", "key: a"),
            (
                "x",
                "y",
                "alt=sse&Access%5ftoken=a%2Fb",
                "access_token: a/b",
            ),
            ("x", "y", "x=1;api-key=a", "api-key: a"),
            ("x", "y", &format!("q={key}"), &format!("q: {key}")),
            // Nobody is named by what changes with every request.
            ("idempotency-key", "a", "pageToken=a&alt=sse&key", ""),
            ("cookie", "session=a", "", ""),
            ("authorization", "Bearer ", "", ""),
            ("accept-language", "sk-SK,sk;q=0.9", "", ""),
            ("user-agent", "sk-tool", "", ""),
        ] {
            assert_eq!(found(name, value, query), expected, "{name} {query}");
        }
    }

    #[test]
    fn a_credential_is_for_the_provider_of_its_name_or_its_form() {
        for (name, value, owner) in [
            ("authorization", "Bearer sk-ant-1", Some("anthropic")),
            ("authorization", "Token\tsk-ant-1", Some("anthropic")),
            ("authorization", "sk-ant-1", Some("anthropic")),
            ("authorization", "Bearer sk-proj-1", Some("openai")),
            ("authorization", "Bearer ya29.1", Some("gemini")),
            ("access_token", "AIza1", Some("gemini")),
            ("authorization", "Bearer eyJ1.x.y", None),
            ("authorization", "Bearer gsk_1", Some(OTHER)),
            ("authorization", "Bearer sk-or-v1-1", Some(OTHER)),
            (
                "authorization",
                "AWS4-HMAC-SHA256 Credential=a",
                Some(OTHER),
            ),
            ("api-key", "k", None),
            ("x-api-key", "sk-1", Some("anthropic")),
            ("x-api-key", "sk-ant-1", Some("anthropic")),
            ("x-api-key", "sk-proj-1", Some(NOBODY)),
            ("x-api-key", "gsk_1", Some(NOBODY)),
            ("key", "sk-ant-1", Some(NOBODY)),
            (
                "authorization",
                "Token token=\"sk-ant-1\"",
                Some("anthropic"),
            ),
            ("authorization", "Basic dTpzay1hbnQtMQ==", Some("anthropic")),
            ("x-goog-api-key", "k", Some("gemini")),
            ("key", "k", Some("gemini")),
        ] {
            let one = NamedCredential::new(name, value);
            assert_eq!(one.owner(), owner, "{name}: {value}");
        }
    }
}
