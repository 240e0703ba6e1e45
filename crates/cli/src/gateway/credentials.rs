//! The credentials of a request, and the providers that they are for.

use http::{HeaderMap, HeaderValue};
use percent_encoding::percent_decode_str;
use sha2::digest::Update;

use crate::gateway::secret::{add_field, spellings};

/// Headers that hold credentials, in the order in which tenants are named by them.
pub(crate) const HEADERS: [&str; 4] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

/// Ends of the names of other credentials, without `-` and `_`. Retries have an `idempotency-key`, and cookies
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

/// Beginnings of keys of providers that only settings name, where a header or field holds a key.
const OTHERS: [&str; 18] = [
    "AWS4-",
    "csk-",
    "dapi",
    "fw_",
    "gho_",
    "ghp_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "gsk_",
    "hf_",
    "nvapi-",
    "pplx-",
    "r8_",
    "sk-or-",
    "tgp_",
    "vck_",
    "xai-",
];

/// The shortest key that is known by its form alone, wherever it is.
const SHORTEST: usize = 20;

/// The provider that a credential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// This one alone.
    Only(&'static str),
    /// This one, or a gateway that accepts the keys of its protocol.
    Like(&'static str),
}

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

    /// The providers that this credential is for, by its name and by its form. All of them have to agree.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let by_name = match &*self.name {
            "x-api-key" => Some(Owner::Only("anthropic")),
            "x-goog-api-key" | "key" => Some(Owner::Only("gemini")),
            "access_token" => Some(Owner::Like("gemini")),
            "api-key" | "ocp-apim-subscription-key" => Some(Owner::Like("azure")),
            _ => None,
        };
        let words = words(&self.value, 0).into_iter();
        // Many gateways give their keys the form of OpenAI's old ones.
        let words = words.filter(|word| by_name.is_none() || !is_vague(word));
        let forms = words.filter_map(|word| match begins(&word, &OTHERS) {
            true => Some(Owner::Like("others")),
            false => by_form(&word),
        });
        by_name.into_iter().chain(forms).collect()
    }
}

/// The credentials of a request: of its headers and of its query, by their names, and keys of a known form
/// in other headers.
pub(crate) fn credentials(headers: &HeaderMap, query: Option<&str>) -> Vec<NamedCredential> {
    let known = HEADERS.into_iter().flat_map(|name| {
        let values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
        // Clients without a key may send its scheme alone, which names nobody.
        let values = values.filter(|value| {
            let mut schemes = ["", "basic", "bearer", "token"].iter();
            !schemes.any(|scheme| value.trim_ascii().eq_ignore_ascii_case(scheme.as_bytes()))
        });
        values.map(move |value| NamedCredential::new(name, value))
    });
    let mut others = Vec::new();
    for (name, value) in headers {
        let name = name.as_str();
        if HEADERS.contains(&name) {
            continue;
        }
        if is_credential(name) {
            others.push(NamedCredential::new(name, value.as_bytes()));
        } else {
            let keys = words(value.as_bytes(), SHORTEST).into_iter();
            let keys = keys.filter(|word| by_form(word).is_some());
            others.extend(keys.map(|key| NamedCredential::new(name, key)));
        }
    }
    // The order of headers means nothing.
    others.sort_by(|one, other| one.name.cmp(&other.name));
    let fields = query.into_iter().flat_map(|query| query.split(['&', ';']));
    let fields = fields.filter_map(|field| {
        let (name, value) = field.split_once('=')?;
        let name = percent_decode_str(name).decode_utf8_lossy();
        let name = name.trim().to_ascii_lowercase();
        let value: Vec<u8> = percent_decode_str(value).collect();
        let is_one = matches!(&*name, "key" | "token")
            || is_credential(&name)
            || words(&value, SHORTEST)
                .iter()
                .any(|word| by_form(word).is_some());
        is_one.then_some(NamedCredential { name, value })
    });
    known.chain(others).chain(fields).collect()
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

/// The words of a value that have at least `shortest` characters, and longer ones of its other spellings.
fn words(value: &[u8], shortest: usize) -> Vec<String> {
    let mut words = Vec::new();
    let mut shortest = shortest;
    for text in spellings(value) {
        let text = String::from_utf8_lossy(&text);
        let is_between = |c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c);
        let long = text.split(is_between).filter(|word| word.len() >= shortest);
        words.extend(long.map(str::to_owned));
        // Short ones are there by chance.
        shortest = SHORTEST;
    }
    words
}

fn begins(word: &str, any: &[&str]) -> bool {
    any.iter().any(|begin| word.starts_with(begin))
}

/// Returns true for a key that might be OpenAI's or anybody's.
fn is_vague(word: &str) -> bool {
    let sure = ["sk-admin-", "sk-ant-", "sk-or-", "sk-proj-", "sk-svcacct-"];
    word.starts_with("sk-") && !begins(word, &sure)
}

fn by_form(word: &str) -> Option<Owner> {
    if word.starts_with("sk-ant-") {
        Some(Owner::Only("anthropic"))
    } else if begins(word, &["AIza", "AQ.", "ya29."]) {
        Some(Owner::Only("gemini"))
    } else {
        word.starts_with("sk-").then_some(Owner::Like("openai"))
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

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
    fn a_credential_is_for_the_provider_of_its_name_and_its_form() {
        let owners = |name: &str, value: &str| NamedCredential::new(name, value).owners();
        let (anthropic, gemini) = (Owner::Only("anthropic"), Owner::Only("gemini"));
        for value in [
            "Bearer sk-ant-1",
            "Token sk-ant-1",
            "Token token=\"sk-ant-1\"",
            "sk-ant-1",
            // `u:` and a key, as `Basic` has it.
            "Basic dTpzay1hbnQtMDEyMzQ1Njc4OWFiY2RlZg==",
        ] {
            assert_eq!(owners("authorization", value), [anthropic], "{value}");
        }
        assert_eq!(owners("authorization", "Bearer eyJ1.x.y"), []);
        let others = [Owner::Like("others")];
        for value in [
            "Bearer gsk_1",
            "Bearer sk-or-v1-1",
            "AWS4-HMAC-SHA256 Credential=a",
        ] {
            assert_eq!(owners("authorization", value), others, "{value}");
        }
        assert_eq!(owners("x-api-key", "sk-1"), [anthropic]);
        let openai = Owner::Like("openai");
        assert_eq!(owners("x-api-key", "sk-proj-1"), [anthropic, openai]);
        assert_eq!(owners("x-api-key", "AIza1"), [anthropic, gemini]);
        assert_eq!(owners("key", "k"), [gemini]);
    }
}
