//! The credentials of a request.

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use sha2::digest::Update;

use crate::gateway::secret::add_field;

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

/// The beginnings of keys of Anthropic, Google and OpenAI, which are known by their form, wherever they are.
const FORMS: [&str; 4] = ["AIza", "AQ.", "sk-", "ya29."];
/// The shortest of them.
const SHORTEST: usize = 20;

/// A credential: the name of its header or of its field in the query, and the value.
pub(crate) type NamedCredential = (String, Vec<u8>);

/// The keys of a known form in a value, wherever they are.
fn keys_in(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let words = value.split(|byte| !byte.is_ascii_alphanumeric() && !b"-_.".contains(byte));
    let begins = |word: &[u8]| FORMS.iter().any(|form| word.starts_with(form.as_bytes()));
    words.filter(move |word| word.len() >= SHORTEST && begins(word))
}

/// The credentials of a request: of its headers and of its query, by their names, and keys of a known form
/// in other headers.
pub(crate) fn credentials(headers: &HeaderMap, query: Option<&str>) -> Vec<NamedCredential> {
    let mut all = Vec::new();
    for (name, value) in headers {
        let (name, value) = (name.as_str(), value.as_bytes());
        if is_credential(name) {
            all.push((name.to_owned(), value.to_vec()));
        } else {
            all.extend(keys_in(value).map(|key| (name.to_owned(), key.to_vec())));
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
            all.push((name, value));
        }
    }
    // Clients without a key may send its scheme alone, which names nobody.
    let schemes = ["", "basic", "bearer", "token"].map(str::as_bytes);
    let is_scheme = |value: &[u8]| schemes.iter().any(|one| value.eq_ignore_ascii_case(one));
    all.retain(|(_, value)| !is_scheme(value.trim_ascii()));
    // The order of headers means nothing.
    all.sort_by(|(one, _), (other, _)| one.cmp(other));
    all
}

/// Adds credentials to a digest. Returns false if they name nobody.
pub(crate) fn add_credentials(digest: &mut impl Update, credentials: &[NamedCredential]) -> bool {
    for (name, value) in credentials {
        add_field(digest, name.as_bytes());
        add_field(digest, value);
    }
    credentials.iter().any(|(_, value)| !value.is_empty())
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
            let pairs = found.into_iter().map(|(name, value)| {
                let value = String::from_utf8(value).unwrap();
                format!("{name}: {value}")
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
}
