//! URLs that open, and URLs that are rejected.

use offcut::backend::{Backend, Key};

use super::*;

/// Opens a URL with its options and a temporary spool.
fn open(url: &str, env: &[(&str, &str)]) -> Result<Objects, BackendError> {
    let spool = tempfile::tempdir().unwrap();
    let mark = if url.contains('?') { '&' } else { '?' };
    let variable = |name: &str| {
        env.iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    open_with(
        &format!("{url}{mark}spool={}", spool.path().display()),
        &variable,
    )
}

fn refused(url: &str, env: &[(&str, &str)]) -> String {
    open(url, env).unwrap_err().to_string()
}

const KEYS: [(&str, &str); 2] = [
    ("AWS_ACCESS_KEY_ID", "AKIA"),
    ("AWS_SECRET_ACCESS_KEY", "s3cret"),
];

#[test]
fn locations_are_the_url_with_the_key() {
    let key = Key::new("trunc/call_1").unwrap();
    for (url, location) in [
        ("s3://bucket", "s3://bucket/trunc/call_1"),
        ("s3://bucket/", "s3://bucket/trunc/call_1"),
        (
            "s3://my-bucket.a/agents/a-1/",
            "s3://my-bucket.a/agents/a-1/trunc/call_1",
        ),
        (
            "gs://bucket/agents?skip_signature=true&bearer_token=t",
            "gs://bucket/agents/trunc/call_1",
        ),
        (
            "az://container/agents?account_name=me&account_key=a2V5",
            "az://container/agents/trunc/call_1",
        ),
    ] {
        let store = open(url, &KEYS).unwrap();
        assert_eq!(store.locate(&key).as_str(), location);
        assert_eq!(store.resolve(location), Some(key.clone()));
    }
}

#[test]
fn every_option_is_one_of_object_store() {
    let env = [
        ("AWS_ACCESS_KEY_ID", "AKIA"),
        ("AWS_SECRET_ACCESS_KEY", "s3cret"),
        ("AWS_SESSION_TOKEN", "token"),
        ("AWS_REGION", "eu-central-1"),
        ("AWS_ENDPOINT_URL", "https://s3.example.com"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "false"),
        ("AWS_SKIP_SIGNATURE", "false"),
        ("AWS_UNSIGNED_PAYLOAD", "true"),
        ("AWS_REQUEST_PAYER", "false"),
        ("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms"),
        ("AWS_SSE_KMS_KEY_ID", "arn:aws:kms:x"),
        ("AWS_SSE_BUCKET_KEY_ENABLED", "true"),
        ("AWS_IMDSV1_FALLBACK", "false"),
        ("AWS_ROLE_ARN", "arn:aws:iam:x"),
        ("AWS_ROLE_SESSION_NAME", "me"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token"),
        ("AWS_ENDPOINT_URL_STS", "https://sts.example.com"),
        ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/get"),
        (
            "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "http://169.254.170.23/v1/credentials",
        ),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/var/run/token"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "me"),
        ("AZURE_STORAGE_ACCOUNT_KEY", "a2V5"),
        ("AZURE_STORAGE_SAS_TOKEN", "sig=x"),
        ("AZURE_STORAGE_TOKEN", "token"),
        ("AZURE_STORAGE_CLIENT_ID", "id"),
        ("AZURE_STORAGE_CLIENT_SECRET", "secret"),
        ("AZURE_STORAGE_TENANT_ID", "tenant"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/token"),
        ("AZURE_USE_AZURE_CLI", "false"),
        ("AZURE_STORAGE_USE_EMULATOR", "false"),
        ("AZURE_SKIP_SIGNATURE", "false"),
        ("AZURE_STORAGE_ENDPOINT", "https://me.blob.example.com"),
        ("AZURE_ALLOW_HTTP", "true"),
        ("GOOGLE_BEARER_TOKEN", "token"),
        ("GOOGLE_SKIP_SIGNATURE", "true"),
        ("GOOGLE_BASE_URL", "https://gcs.example.com"),
        ("GOOGLE_ALLOW_HTTP", "true"),
    ];
    for url in ["s3://bucket/p", "az://container/p", "gs://bucket/p"] {
        open(url, &env).unwrap();
    }
}

#[test]
fn l11_wrong_urls_do_not_open() {
    for (url, says) in [
        ("bucket/prefix", "be a URL"),
        ("s3://", "must name a bucket"),
        ("s3://b", "must name a bucket"),
        ("s3://a..b", "must name a bucket"),
        ("s3://me:pass@bucket", "no user or password"),
        ("s3://bucket:9000", "no port"),
        ("s3://bucket#x", "no port or fragment"),
        ("s3://bucket/../x//y", "be spelt plainly"),
        ("s3://bucket/a%20b", "prefix"),
        ("s3://bucket/a%2Fb", "prefix"),
        ("s3://bucket//a", "prefix"),
        ("S3://bucket", "be spelt plainly"),
        ("memory:/x", "begin with `s3:`"),
        ("file:///tmp", "begin with `s3:`"),
        ("ftp://bucket", "begin with `s3:`"),
        (
            "s3://bucket?regoin=eu",
            "no unknown option: use only `timeout`",
        ),
        ("s3://bucket?region=a&region=b", "each option only once"),
        ("s3://bucket?region=", "`region` must be printable"),
        ("s3://bucket?region=a%0Ab", "`region` must be printable"),
        (
            "s3://bucket?endpoint=localhost:9000",
            "`endpoint` must be an `http:`",
        ),
        (
            "s3://bucket?endpoint=http://",
            "`endpoint` must be an `http:`",
        ),
        (
            "s3://bucket?endpoint=http://a%20b",
            "`endpoint` must be an `http:`",
        ),
        (
            "s3://bucket?endpoint=http://me:pass@host",
            "`endpoint` must be an `http:`",
        ),
        (
            "s3://bucket?endpoint=http://10.0.0.1:9000",
            "set `allow_http=true`",
        ),
        (
            "s3://bucket?allow_http=yes",
            "`allow_http` must be `true` or `false`",
        ),
        ("s3://bucket?retries=many", "`retries` must be a number"),
        ("s3://bucket?retries=21", "`retries` must be at most 20"),
        ("s3://bucket?backoff=0ms", "`backoff` must be more than 0"),
        ("s3://bucket?backoff=16s", "`backoff` must be more than 0"),
        (
            "s3://bucket?backoff=fast",
            "`backoff` must be a number with",
        ),
        ("s3://bucket?timeout=0s", "`timeout` must be more than 0"),
        ("s3://bucket?timeout=5", "`timeout` must be a number with"),
        ("s3://bucket?timeout=99999999999m", "`timeout` must be"),
        (
            "s3://bucket?access_key_id=x",
            "check its account, its credentials",
        ),
        ("az://container", "check its account"),
        (
            "az://container?account_name=a/b",
            "`account_name` must consist of letters",
        ),
    ] {
        let said = refused(url, &KEYS);
        assert!(said.contains(says), "{url}: {said}");
    }
}

/// The URL parser changes some of these into another place, and the store would silently be opened there.
#[test]
fn o4_a_url_opens_the_place_that_it_names() {
    for place in ["s3://bucket", "gs://bucket", "az://container"] {
        for path in [
            "/../x",
            "/./x",
            "/a/../x",
            "/a//x",
            "/a/..",
            "/%2e%2e/x",
            "/a/.%2E/x",
            "/a%2Fx",
            "/a%5cx",
            "/a\\x",
            "/..\\x",
            "/a\tx",
            "/x\n",
            "//x",
        ] {
            let url = format!("{place}{path}");
            let env = |name: &str| (name == "AZURE_STORAGE_ACCOUNT_NAME").then(|| "me".to_owned());
            let said = open_with(&url, &env).unwrap_err().to_string();
            assert!(
                said.starts_with("the store's URL must") || said.starts_with("`prefix` must"),
                "{url:?}: {said}"
            );
        }
    }
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { failure_persistence: None, ..Default::default() })]

    /// The locations of a store that opens are those that its URL says.
    #[test]
    fn o4_the_parser_leaves_a_path_unchanged(path in "(/|\\.|%2e|%2F|%5c|\\\\|a|b|\t| ){0,8}") {
        let url = format!("s3://bucket/m/{path}");
        if let Ok(store) = open(&url, &KEYS) {
            let location = store.locate(&Key::new("x").unwrap());
            let root = url.strip_suffix('/').unwrap_or(&url);
            proptest::prop_assert_eq!(location.as_str(), format!("{root}/x"));
        }
    }
}

#[test]
fn l11_wrong_variables_do_not_open() {
    for (name, value) in [
        ("AWS_ACCESS_KEY_ID", "AKIA\n"),
        ("AWS_SECRET_ACCESS_KEY", "s3 cret"),
        ("AWS_SESSION_TOKEN", "tok\u{e9}n"),
        ("AWS_REGION", "eu west"),
        ("AWS_ENDPOINT_URL", "not a url"),
        ("AWS_ENDPOINT_URL_S3", "ftp://host"),
        ("AWS_ALLOW_HTTP", "1"),
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "/x"),
    ] {
        let env: Vec<_> = [(name, value)].into_iter().chain(KEYS).collect();
        let said = refused("s3://bucket", &env);
        assert!(
            said.starts_with(&format!("`{name}` must ")) && !said.contains(value),
            "{name}: {said}"
        );
    }
    assert!(refused("s3://bucket", &KEYS[..1]).contains("check its account, its credentials"));
    // An empty value counts as not set.
    assert!(
        open(
            "s3://bucket",
            &[
                ("AWS_REGION", ""),
                ("AWS_ENDPOINT_URL", ""),
                KEYS[0],
                KEYS[1]
            ]
        )
        .is_ok()
    );
}

#[test]
fn no_secret_is_shown() {
    let url =
        "s3://bucket/p?access_key_id=AKIASECRET&secret_access_key=SECRET&session_token=SECRETTOKEN";
    let store = open(url, &[]).unwrap();
    assert!(!format!("{store:?}").contains("SECRET"), "{store:?}");
    for more in [
        "&region=SECRET%20",
        "&secret=SECRET",
        "&retries=SECRET",
        "&spool=x",
        "#SECRET",
        "&allow_http=SECRET",
        "&SECRET",
    ] {
        let error = open(&format!("{url}{more}"), &[]).unwrap_err();
        assert!(!format!("{error:?}{error}").contains("SECRET"), "{error:?}");
    }
    let azure = "az://container?account_name=me&account_key=not%21base64SECRET";
    let error = open(azure, &[]).unwrap_err();
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
    let gcs = "gs://bucket?service_account_key=%7BSECRET";
    let error = open(gcs, &[]).unwrap_err();
    assert!(!format!("{error:?}").contains("SECRET"), "{error:?}");
}

#[test]
fn credentials_of_the_url_are_not_mixed_with_those_of_the_environment() {
    // The token belongs to another key, so every request would be refused.
    let env = |name: &str| (name == "AWS_SESSION_TOKEN").then(|| "old".to_owned());
    let url = Url::parse("s3://bucket?access_key_id=a&secret_access_key=b").unwrap();
    let mut options = Options::of(&url, &env).unwrap();
    let settings = options.settings(services::S3).unwrap();
    assert_eq!(
        (settings.get("access_key_id"), settings.get("session_token")),
        (Some("a"), None)
    );
}

#[test]
fn two_endpoints_are_two_stores() {
    let at = |endpoint: &str| {
        open(&format!("s3://bucket/p?endpoint={endpoint}"), &KEYS)
            .unwrap()
            .store_id()
    };
    assert_eq!(at("https://one.example"), at("https://one.example/"));
    assert_ne!(at("https://one.example"), at("https://two.example"));
}
