use std::error::Error as _;

use super::*;

fn answered(status: u16, code: &str) -> Trouble {
    let body = format!(
        "<Error><Code>{code}</Code><Message>secret-message</Message><AWSAccessKeyId>AKIASECRET</AWSAccessKeyId>\
         <CanonicalRequest>x-amz-security-token:SECRETTOKEN</CanonicalRequest></Error>"
    );
    let text = format!(
        "Error performing PUT https://host/b/k?sig=SECRETSIG in 1ms - Server returned non-2xx status code: {status} X: {body}"
    );
    Error::Generic {
        store: "S3",
        source: text.into(),
    }
    .into()
}

#[test]
fn answers_get_the_right_error_kind() {
    for (status, code, kind) in [
        (404, "NoSuchKey", Kind::NotFound),
        (404, "NoSuchBucket", Kind::NoBucket),
        (403, "AccessDenied", Kind::Denied),
        (403, "InvalidAccessKeyId", Kind::Denied),
        (400, "ExpiredToken", Kind::Denied),
        (400, "AuthorizationHeaderMalformed", Kind::WrongRegion),
        (409, "ConditionalRequestConflict", Kind::Exists),
        (412, "PreconditionFailed", Kind::Exists),
        (416, "InvalidRange", Kind::Range),
        (503, "SlowDown", Kind::Unreachable),
        (500, "InternalError", Kind::Unreachable),
        (501, "NotImplemented", Kind::Overwrites),
        (507, "XMinioStorageFull", Kind::Full),
        (400, "MalformedXML", Kind::Other),
    ] {
        assert_eq!(answered(status, code).kind, kind, "{status} {code}");
    }
}

#[test]
fn errors_say_what_failed_and_what_to_do_and_no_secret() {
    let error =
        answered(403, "SignatureDoesNotMatch").while_doing("storing s3://bucket/trunc/call_1");
    assert_eq!(
        error.to_string(),
        "storing s3://bucket/trunc/call_1 failed: access denied; check the key, its secret and its expiry, and grant it get, put and list on the bucket"
    );
    assert_eq!(
        error.source().map(ToString::to_string).as_deref(),
        Some("HTTP 403, SignatureDoesNotMatch")
    );
    assert!(!format!("{error:?}").to_lowercase().contains("secretsig"));
    assert!(
        !format!("{error:?}").contains("AKIA") && !format!("{error:?}").contains("SECRETTOKEN")
    );
    let odd = answered(400, "<b>SECRET</b>");
    assert!(!format!("{odd:?}").contains("SECRET"), "{odd:?}");
}

#[test]
fn a_missing_role_is_named() {
    let text = "Error performing PUT http://169.254.169.254/latest/api/token in 1s - HTTP error: error sending request";
    let trouble = Trouble::from(Error::Generic {
        store: "S3",
        source: text.into(),
    });
    assert_eq!(trouble.kind, Kind::NoCredentials);
}
