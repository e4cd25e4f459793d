//! Tests of error responses: the two error styles from the first release of the plugin contract,
//! and other templates.

use std::sync::Arc;

use hyper::ext::ReasonPhrase;
use packhouse_runtime::{Description, ErrorFormat};
use serde_json::json;

use super::*;

const PLAIN: &str = r#""error_style": "plain""#;
const REGISTRY: &str =
    r#""error_style": "registry", "challenge": "bearer", "token_service": {"path": "/v2/token"}"#;

fn format(fields: &str) -> Arc<ErrorFormat> {
    let text = format!(r#"{{"format": "x", "version": "1", {fields}}}"#);
    Description::parse(&text).unwrap().error_format
}

fn error_context(format: &ErrorFormat) -> ErrorContext<'_> {
    let token_service = format.token_service.as_ref().map(|_| "https://packages.example/v2/token");
    ErrorContext {
        template: &format.template,
        challenge: &format.challenge,
        addresses: Addresses {
            host: "packages.example",
            base_url: "https://packages.example",
            api_url: "https://api.example",
            token_service,
        },
        request_id: "r1",
        reader: ErrorReader::of(&HeaderMap::new(), format.sentence_clients.iter(), format.sentence_as_reason),
        head: false,
    }
}

/// Returns the response, and its body as text.
fn written(refused: HttpError, fields: &str) -> (Response<Body>, String) {
    let format = format(fields);
    let sentence = sentence(&refused);
    let facts = RefusalFacts {
        status: refused.status,
        problems: &refused.problems,
        row: refused.row,
        reason: refused.reason.as_deref(),
        sentence: &sentence,
        request_id: "r1",
    };
    let WrittenError { text, .. } = error_body::write(&format.template, &facts);
    (answer(refused, error_context(&format)), text)
}

fn shaped(refused: HttpError, fields: &str) -> (Response<Body>, Value) {
    let (response, text) = written(refused, fields);
    (response, serde_json::from_str(&text).unwrap())
}

#[test]
fn a_plain_error_has_every_field_that_clients_read() {
    let (response, object) = shaped(HttpError::of(&catalogue::UNAUTHORIZED), PLAIN);
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers().get_all(WWW_AUTHENTICATE).iter().count(), 1);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Basic realm=\"packages.example\"");
    assert!(response.extensions().get::<ReasonPhrase>().is_none(), "the phrase is RFC 9110's");
    for (field, value) in [("error", "unauthorized"), ("request_id", "r1"), ("title", "Unauthorized")] {
        assert_eq!(object[field], value);
    }
    assert_eq!(object["status"], 401);
    assert_eq!(object["message"], object["detail"]);
}

#[test]
fn codes_stand_where_the_catalogue_says() {
    let (_, object) = shaped(HttpError::of(&catalogue::REPOSITORY_NOT_REACHED), PLAIN);
    assert_eq!(object["reason_code"], "scope_mismatch_repo");
    assert!(object["error"].as_str().unwrap().ends_with("2242"));
    let (_, object) = shaped(HttpError::of(&catalogue::NPM_CLI_TOKEN_CREATE_DISABLED), PLAIN);
    assert_eq!(object["code"], catalogue::NPM_CLI_TOKEN_CREATE_DISABLED.code);
    assert_eq!(object["error"], catalogue::NPM_CLI_TOKEN_CREATE_DISABLED.code.to_lowercase());
}

#[test]
fn a_503_says_when_to_come_back() {
    let (response, _) = shaped(HttpError::of(&catalogue::DDB_UNAVAILABLE), PLAIN);
    assert_eq!(response.headers()[RETRY_AFTER], "5");
}

#[test]
fn a_formats_own_failure_keeps_its_words_but_not_its_challenge() {
    let detail = Some(json!({"limit_bytes": 5, "status": "no"}));
    let problem = Problem { code: "odd".to_owned(), message: "Größe\r\nX: y".to_owned(), detail };
    let headers = vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Digest"))];
    let failure = Failure { status: 418, headers, problems: vec![problem], torn: false };
    let as_reason = format!("{PLAIN}, \"sentence_as_reason\": true");
    let (response, object) = shaped(HttpError::from(failure), &as_reason);
    assert_eq!((response.status().as_u16(), object["limit_bytes"].as_u64()), (418, Some(5)));
    assert_eq!(object["status"], 418);
    assert!(!response.headers().contains_key(WWW_AUTHENTICATE));
    assert_eq!(response.extensions().get::<ReasonPhrase>().unwrap().as_bytes(), b"Gr??e??X: y");
}

#[test]
fn a_registry_gets_its_own_codes() {
    let unavailable =
        format!("the upstream registry cannot be used: {}", catalogue::UPSTREAM_UNAVAILABLE.sentence);
    for (row, status, code, message) in [
        (&catalogue::UNAUTHORIZED, 401, "UNAUTHORIZED", "authentication required"),
        (&catalogue::REPOSITORY_NOT_REACHED, 403, "DENIED", "insufficient permissions"),
        (&catalogue::ACTION_NOT_IN_SCOPE, 403, "DENIED", "insufficient permissions"),
        (&catalogue::REVOKED_AUTHORITY_CLAMP, 403, "DENIED", "insufficient permissions"),
        (&catalogue::NOT_FOUND, 404, "NAME_UNKNOWN", "repository not found"),
        (&catalogue::GROUP_EMPTY, 404, "NAME_UNKNOWN", "group repository has no members"),
        (&catalogue::NO_REPOSITORY_NAME, 400, "NAME_INVALID", "invalid repository name"),
        (&catalogue::MALFORMED_ADDRESS, 400, "NAME_INVALID", "Invalid OCI path"),
        (&catalogue::METHOD_NOT_ALLOWED, 405, "UNSUPPORTED", "method not allowed"),
        (&catalogue::WRITES_NOT_PERMITTED_ON_PROXY, 405, "UNSUPPORTED", "method not allowed"),
        (
            &catalogue::WRITES_NOT_PERMITTED_ON_GROUP,
            405,
            "UNSUPPORTED",
            "Writes are not permitted to group repositories",
        ),
        (&catalogue::FILE_TOO_LARGE, 400, "SIZE_INVALID", "provided length did not match content length"),
        (&catalogue::TOO_MANY_ATTEMPTS, 429, "TOOMANYREQUESTS", "too many attempts"),
        (&catalogue::UPSTREAM_UNAVAILABLE, 502, "UNAVAILABLE", &unavailable),
        (&catalogue::FORMAT_DISABLED, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::DDB_UNAVAILABLE, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::SSO_CONFIG_UNAVAILABLE, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::INTERNAL, 500, "UNKNOWN", "unknown error"),
        (&catalogue::REQUEST_TIMEOUT, 408, "REQUEST_TIMEOUT", catalogue::REQUEST_TIMEOUT.sentence),
    ] {
        let (response, object) = shaped(HttpError::of(row), REGISTRY);
        assert_eq!(response.status(), status, "{}", row.code);
        assert_eq!(object["errors"][0]["code"], code);
        assert_eq!(object["errors"][0]["message"], message, "{code}");
        assert_eq!(object["request_id"], "r1");
    }
    let of_the_plugin = |status, code: &str, message: &str| {
        let problem = Problem { code: code.to_owned(), message: message.to_owned(), detail: None };
        HttpError::from(Failure { status, headers: Vec::new(), problems: vec![problem], torn: false })
    };
    let (response, object) = shaped(of_the_plugin(400, "NAME_INVALID", "invalid tag format"), REGISTRY);
    assert_eq!(response.status(), 400);
    assert_eq!(
        object,
        json!({"errors": [{"code": "NAME_INVALID", "message": "invalid tag format"}], "request_id": "r1"})
    );
    for (row, field) in [
        (&catalogue::WRITES_NOT_PERMITTED_ON_PROXY, "code"),
        (&catalogue::FORMAT_TOKEN_ON_PROXY, "code"),
        (&catalogue::REPOSITORY_NOT_REACHED, "reason_code"),
    ] {
        let (_, object) = shaped(HttpError::of(row), REGISTRY);
        assert_eq!(object[field], row.code);
    }
}

#[test]
fn a_bearer_challenge_names_the_token_service_and_the_scope() {
    let registry = format(REGISTRY);
    let start = "Bearer realm=\"https://packages.example/v2/token\",service=\"packages.example\"";
    let scope = || Some("repository:repositories/r/a:pull".to_owned());
    for (scope, challenge_error, rest) in [
        (None, ChallengeError::Nothing, ""),
        (scope(), ChallengeError::Nothing, ",scope=\"repository:repositories/r/a:pull\""),
        (None, ChallengeError::InvalidToken, ",error=\"invalid_token\""),
        (
            scope(),
            ChallengeError::InsufficientScope,
            ",scope=\"repository:repositories/r/a:pull\",error=\"insufficient_scope\"",
        ),
    ] {
        let refused = HttpError::of(&catalogue::UNAUTHORIZED).with_challenge(scope, challenge_error);
        let response = answer(refused, error_context(&registry));
        assert_eq!(response.headers().get_all(WWW_AUTHENTICATE).iter().count(), 1);
        assert_eq!(response.headers()[WWW_AUTHENTICATE], format!("{start}{rest}"));
    }
    let denied = HttpError::of(&catalogue::REPOSITORY_NOT_REACHED)
        .with_challenge(scope(), ChallengeError::InsufficientScope);
    assert!(!answer(denied, error_context(&registry)).headers().contains_key(WWW_AUTHENTICATE));
}

#[test]
fn an_access_keys_refusal_and_a_manifest_have_words_of_their_own_in_a_registry() {
    let denied =
        Refusal { reason: Some("key_not_reached"), ..Refusal::of(&catalogue::REPOSITORY_NOT_REACHED) };
    let (response, object) = shaped(HttpError::from(denied), REGISTRY);
    assert_eq!((response.status().as_u16(), &object["reason_code"]), (403, &json!("scope_mismatch_repo")));
    assert_eq!(object["errors"][0]["message"], "requested scope not authorized for this token");
    let large = || HttpError::with(&catalogue::FILE_TOO_LARGE, "4").with_reason("limit:manifest".to_owned());
    let limits = r#""limits": {"max_manifest_bytes": 4}"#;
    let (response, object) = shaped(large(), &format!("{REGISTRY}, {limits}"));
    assert_eq!(response.status(), 400);
    assert_eq!(
        object["errors"],
        json!([{"code": "MANIFEST_INVALID", "message": "manifest exceeds maximum size"}])
    );
    let (response, object) = shaped(large(), &format!("{PLAIN}, {limits}"));
    assert_eq!((response.status().as_u16(), &object["error"]), (413, &json!("file_too_large")));
}

#[test]
fn the_bodies_are_what_they_were_to_the_byte() {
    let (_, plain) = written(HttpError::of(&catalogue::NOT_FOUND), PLAIN);
    let expected = r#"{"detail":"Not found.","error":"not_found","message":"Not found.","request_id":"r1","status":404,"title":"Not Found","type":"about:blank"}"#;
    assert_eq!(plain, expected);
    let (_, registry) = written(HttpError::of(&catalogue::FORMAT_DISABLED), REGISTRY);
    let expected = r#"{"code":"format_disabled","errors":[{"code":"UNAVAILABLE","message":"service unavailable"}],"request_id":"r1"}"#;
    assert_eq!(registry, expected);
}

#[test]
fn a_template_may_be_a_text_or_name_its_own_members() {
    let text = r#""errors": {"body": "{status} {title}: {message} ({code_upper}) {request_id}\n"}"#;
    let (response, body) = written(HttpError::of(&catalogue::NOT_FOUND), text);
    assert_eq!(response.headers()[CONTENT_TYPE], "text/plain; charset=utf-8");
    assert_eq!(body, "404 Not Found: Not found. (NOT_FOUND) r1\n");

    let members = r#""errors": {"content_type": "application/problem+json",
        "body": {"problem": "{code}", "of": "{host_code}", "more": "{detail}"},
        "members": {"own": {"kind": "format"}, "reason_code": {"why": "{sentence}"}},
        "refusals": {"not_found": {"status": 410, "code": "gone-{host_code}", "members": {"at": "{title}"}}}}"#;
    let (response, object) = shaped(HttpError::of(&catalogue::NOT_FOUND), members);
    assert_eq!(
        (response.status().as_u16(), &response.headers()[CONTENT_TYPE]),
        (410, &"application/problem+json".parse().unwrap())
    );
    assert_eq!(object, json!({"problem": "gone-not_found", "of": "not_found", "at": "Gone"}));
    let (_, object) = shaped(HttpError::of(&catalogue::REPOSITORY_NOT_REACHED), members);
    assert_eq!(object["why"], catalogue::REPOSITORY_NOT_REACHED.sentence);
    let problem = Problem { code: "odd".to_owned(), message: "m".to_owned(), detail: Some(json!({"a": 1})) };
    let failure = Failure { status: 418, headers: Vec::new(), problems: vec![problem], torn: false };
    let (response, object) = shaped(HttpError::from(failure), members);
    assert_eq!(response.status(), 418);
    assert_eq!(object, json!({"problem": "odd", "more": {"a": 1}, "kind": "format"}));
}

#[test]
fn a_plugins_own_code_stands_where_its_description_says() {
    let fields = r#""own_codes": {"GONE_FROM_HERE": "code", "held-back": "reason_code"}"#;
    let of = |code: &str| {
        let problem = Problem { code: code.to_owned(), message: "m".to_owned(), detail: None };
        shaped(
            HttpError::from(Failure {
                status: 410,
                headers: Vec::new(),
                problems: vec![problem],
                torn: false,
            }),
            fields,
        )
        .1
    };
    let object = of("GONE_FROM_HERE");
    assert_eq!((&object["error"], &object["code"]), (&json!("gone_from_here"), &json!("GONE_FROM_HERE")));
    let object = of("held-back");
    assert_eq!((&object["error"], &object["reason_code"]), (&json!("m"), &json!("held-back")));
    let object = of("other");
    assert_eq!(
        (&object["error"], object.get("code"), object.get("reason_code")),
        (&json!("other"), None, None)
    );
}

#[test]
fn a_challenge_has_the_scheme_and_the_parameters_of_its_format() {
    let cargo = r#""errors": {"body": {"errors": "{problems}"}, "problem": {"detail": "{message}"}},
        "challenge": {"scheme": "Cargo", "parameters": [{"name": "login_url", "value": "{api_url}/tokens"},
            {"name": "scope", "value": "{scope}"}]}"#;
    let (response, object) = shaped(HttpError::of(&catalogue::UNAUTHORIZED), cargo);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Cargo login_url=\"https://api.example/tokens\"");
    assert_eq!(object, json!({"errors": [{"detail": "Authentication is required."}]}));
    let problem = |code: &str| Problem { code: code.to_owned(), message: format!("no {code}"), detail: None };
    let problems = vec![problem("not_found"), problem("odd")];
    let (_, object) =
        shaped(HttpError::from(Failure { status: 404, headers: Vec::new(), problems, torn: false }), cargo);
    assert_eq!(object, json!({"errors": [{"detail": "no not_found"}, {"detail": "no odd"}]}));
    let (response, _) =
        shaped(HttpError::of(&catalogue::UNAUTHORIZED), r#""challenge": {"scheme": "Negotiate"}"#);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Negotiate");
    let no_service = r#""challenge": "bearer""#;
    let (response, _) = shaped(HttpError::of(&catalogue::UNAUTHORIZED), no_service);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Basic realm=\"packages.example\"");
}
