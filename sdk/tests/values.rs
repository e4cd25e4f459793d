//! Tests of descriptions, digests, failures and random access.

use packhouse_sdk::{
    Challenge, Claim, Description, Digest, Error, ErrorStyle, Failure, ReadAt, Response, SentencePlace,
    Setting,
};
use serde_json::{Value, json};

fn described(description: &Description) -> Value {
    serde_json::from_str(&description.to_json()).unwrap_or_default()
}

#[test]
fn a_plain_description_has_every_default() {
    assert_eq!(
        described(&Description::new("raw", "1.2.3")),
        json!({
            "format": "raw", "version": "1.2.3", "kinds": ["hosted"], "error_style": "plain", "challenge": "basic",
            "authorization": ["basic", "bearer"], "token_usernames": ["__token__"],
            "checks_username": false, "refused_read_status": 401, "refused_write_status": 401,
            "not_reached_status": 403, "token_formats": ["raw"], "upstream_credentials": [],
            "encoded_slash": false, "name_folding": "none", "held_by": [], "request_headers": [], "claims": [],
            "settings": {}, "limits": {},
        })
    );
}

#[test]
fn a_description_contains_what_was_set() {
    let description = Description::new("docker", "1")
        .kinds(&["hosted", "group"])
        .error_style(ErrorStyle::Registry)
        .challenge(Challenge::Bearer)
        .checks_username()
        .refused_status(404, 401)
        .not_reached_status(404)
        .token_formats(&["docker", "oci"])
        .upstream_credentials(&["basic"])
        .encoded_slash()
        .request_headers(&["x-one"])
        .claim(Claim::new("registry", "/v2/").challenge("repository:{subject}:{action}"))
        .setting("proof", Setting::choice(&["none", "all"], "Whether it is asked for"))
        .setting("days", Setting::integer(7, "How long"))
        .setting("wait", Setting::seconds(60, "Time").title("Waiting time").repository_kinds(&["proxy"]))
        .unused_settings(&["keep_untagged"])
        .sentence_as_reason()
        .sentence_clients(&["one/"], &SentencePlace::Reason)
        .sentence_clients(&["two/"], &SentencePlace::Header("two-notice".to_owned()))
        .max_file_bytes(5)
        .max_body_bytes(7);
    let found = described(&description);
    let expected = json!({
        "kinds": ["hosted", "group"], "error_style": "registry", "challenge": "bearer", "checks_username": true,
        "refused_read_status": 404, "refused_write_status": 401, "not_reached_status": 404,
        "token_formats": ["docker", "oci"], "upstream_credentials": ["basic"], "encoded_slash": true,
        "sentence_as_reason": true,
        "sentence_clients": [
            {"user_agent": "one/", "place": "reason"},
            {"user_agent": "two/", "place": {"header": "two-notice"}},
        ],
        "request_headers": ["x-one"], "limits": {"max_file_bytes": 5, "max_body_bytes": 7},
        "claims": [{"name": "registry", "path": "/v2/", "challenge": "repository:{subject}:{action}"}],
        "settings": {
            "proof": {"kind": "choice", "default": "none", "choices": ["none", "all"], "summary": "Whether it is asked for"},
            "days": {"kind": "integer", "default": 7, "summary": "How long"},
            "wait": {"kind": "integer", "default": 60, "summary": "Time", "title": "Waiting time",
                "repository_kinds": ["proxy"], "unit": "seconds"},
        },
        "unused_settings": ["keep_untagged"],
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&found[field], value, "{field}");
    }
}

#[test]
fn a_digest_is_of_a_known_algorithm_and_length() {
    let sha1: Digest = "sha1:da39a3ee5e6b4b0d3255bfef95601890afd80709".parse().unwrap();
    assert_eq!((sha1.algorithm(), sha1.hex().len()), ("sha1", 40));
    let bytes = Digest::new("md5", &format!("00ff7f{}", "01".repeat(13))).unwrap().bytes();
    assert_eq!((bytes.len(), &bytes[..4]), (16, &[0, 255, 127, 1][..]));
    for wrong in ["", "sha1", "sha1:", "sha1:da39", "sha3:da39a3ee5e6b4b0d3255bfef95601890afd80709"] {
        assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
    }
    assert!(Digest::new("md5", "D41D8CD98F00B204E9800998ECF8427E").is_err(), "upper case");
    assert!(serde_json::from_value::<Digest>(json!("md5:0")).is_err());
    assert_eq!(serde_json::to_value(&sha1).unwrap(), json!(sha1.as_str()));
}

#[test]
fn internal_errors_are_not_disclosed() {
    let failure = Failure::from(Error::Invalid("key too long".to_owned()));
    assert_eq!((failure.status, failure.problems[0].message.as_str()), (500, "Internal server error"));
    assert_eq!(failure.internal.as_deref(), Some("invalid: key too long"));
    // The host's text about an upstream is meant for clients.
    let failure = Failure::from(Error::Unavailable("status 500, for /a".to_owned()));
    assert_eq!((failure.status, failure.problems[0].code.as_str()), (502, "upstream_unavailable"));
    assert!(failure.problems[0].message.ends_with(": status 500, for /a"), "{failure:?}");
    assert_eq!(Failure::from(Error::TooLarge(9)).status, 413);
}

#[test]
fn a_failure_has_several_problems() {
    let failure = Failure::invalid("one").and("two", "three").detail(&json!({"digest": 1}));
    let found: Vec<_> = failure.problems.iter().map(|p| (p.code.as_str(), p.detail.as_str())).collect();
    assert_eq!(found, [("invalid_request", ""), ("two", r#"{"digest":1}"#)]);
}

#[test]
fn bytes_are_read_anywhere() {
    let bytes = b"0123456789".as_slice();
    assert_eq!(bytes.read_at(8, 5).unwrap(), b"89");
    assert_eq!(bytes.read_at(10, 5).unwrap(), b"");
    assert_eq!(bytes.read_at(u64::MAX, u32::MAX).unwrap(), b"");
    assert_eq!(bytes.read_exact_at(2, 3).unwrap(), b"234");
    assert!(bytes.read_exact_at(8, 3).is_err());
    assert_eq!(bytes.read_all(10).unwrap(), bytes);
    assert_eq!(bytes.read_all(9), Err(Error::TooLarge(10)));
    let large = vec![7_u8; 3 << 20];
    assert_eq!(large.read_at(0, u32::MAX).unwrap().len(), 1 << 20, "a piece is at most 1 MiB");
    assert_eq!(large.read_exact_at(1, 2 << 20).unwrap().len(), 2 << 20);
}

#[test]
fn a_content_type_replaces_the_one_before() {
    let response = Response::xml("<a/>").content_type("text/xml").immutable();
    let names: Vec<_> = response.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    assert_eq!(names, ["content-type: text/xml", "cache-control: private, max-age=31536000, immutable"]);
}
