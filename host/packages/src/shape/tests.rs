//! What refusals look like on the wire, in both styles.

use super::*;

fn shaped(refused: Refused, style: ErrorStyle) -> (Response<Body>, Value) {
    let frame =
        Frame { style, realm: "packages.example", token_service: None, request_id: "r1", head: false };
    let sentence = sentence(&refused);
    let object = match style {
        ErrorStyle::Plain => plain(&refused, &sentence, "r1"),
        ErrorStyle::Registry => registry(&refused, &sentence, "r1").1,
    };
    (answer(refused, frame), Value::Object(object))
}

#[test]
fn a_plain_error_has_every_field_that_clients_read() {
    let (response, object) = shaped(Refused::of(&catalogue::UNAUTHORIZED), ErrorStyle::Plain);
    assert_eq!(response.status(), 401);
    assert_eq!(response.headers().get_all(WWW_AUTHENTICATE).iter().count(), 1);
    assert_eq!(response.headers()[WWW_AUTHENTICATE], "Basic realm=\"packages.example\"");
    let reason = response.extensions().get::<ReasonPhrase>().unwrap();
    assert_eq!(reason.as_bytes(), catalogue::UNAUTHORIZED.sentence.as_bytes());
    for (field, value) in [("error", "unauthorized"), ("request_id", "r1"), ("title", "Unauthorized")] {
        assert_eq!(object[field], value);
    }
    assert_eq!(object["status"], 401);
    assert_eq!(object["message"], object["detail"]);
}

#[test]
fn codes_stand_where_the_catalogue_says() {
    let (_, object) = shaped(Refused::of(&catalogue::REPOSITORY_NOT_REACHED), ErrorStyle::Plain);
    assert_eq!(object["reason_code"], "scope_mismatch_repo");
    assert!(object["error"].as_str().unwrap().ends_with("2242"));
    let (_, object) = shaped(Refused::of(&catalogue::NPM_CLI_TOKEN_CREATE_DISABLED), ErrorStyle::Plain);
    assert_eq!(object["code"], catalogue::NPM_CLI_TOKEN_CREATE_DISABLED.code);
    assert_eq!(object["error"], catalogue::NPM_CLI_TOKEN_CREATE_DISABLED.code.to_lowercase());
}

#[test]
fn a_503_says_when_to_come_back() {
    let (response, _) = shaped(Refused::of(&catalogue::DDB_UNAVAILABLE), ErrorStyle::Plain);
    assert_eq!(response.headers()[RETRY_AFTER], "5");
}

#[test]
fn a_formats_own_failure_keeps_its_words_but_not_its_challenge() {
    let detail = Some(json!({"limit_bytes": 5, "status": "no"}));
    let problem = Problem { code: "odd".to_owned(), message: "Größe\r\nX: y".to_owned(), detail };
    let headers = vec![(WWW_AUTHENTICATE, HeaderValue::from_static("Digest"))];
    let failure = Failure { status: 418, headers, problems: vec![problem] };
    let (response, object) = shaped(Refused::from(failure), ErrorStyle::Plain);
    assert_eq!((response.status().as_u16(), object["limit_bytes"].as_u64()), (418, Some(5)));
    assert_eq!(object["status"], 418);
    assert!(!response.headers().contains_key(WWW_AUTHENTICATE));
    assert_eq!(response.extensions().get::<ReasonPhrase>().unwrap().as_bytes(), b"Gr??e??X: y");
}

#[test]
fn a_registry_gets_its_own_codes() {
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
        (&catalogue::UPSTREAM_UNAVAILABLE, 502, "UNAVAILABLE", "the upstream registry cannot be used"),
        (&catalogue::FORMAT_DISABLED, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::DDB_UNAVAILABLE, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::SSO_CONFIG_UNAVAILABLE, 503, "UNAVAILABLE", "service unavailable"),
        (&catalogue::INTERNAL, 500, "UNKNOWN", "unknown error"),
        (&catalogue::REQUEST_TIMEOUT, 408, "REQUEST_TIMEOUT", catalogue::REQUEST_TIMEOUT.sentence),
        (&catalogue::REGISTRY_NAME_TAG, 400, "NAME_INVALID", "invalid tag format"),
    ] {
        let (response, object) = shaped(Refused::of(row), ErrorStyle::Registry);
        assert_eq!(response.status(), status, "{}", row.code);
        assert_eq!(object["errors"][0]["code"], code);
        assert_eq!(object["errors"][0]["message"], message, "{code}");
        assert_eq!(object["request_id"], "r1");
    }
    for (row, field) in [
        (&catalogue::WRITES_NOT_PERMITTED_ON_PROXY, "code"),
        (&catalogue::FORMAT_TOKEN_ON_PROXY, "code"),
        (&catalogue::REPOSITORY_NOT_REACHED, "reason_code"),
    ] {
        let (_, object) = shaped(Refused::of(row), ErrorStyle::Registry);
        assert_eq!(object[field], row.code);
    }
}

#[test]
fn a_bearer_challenge_names_the_token_service_and_the_scope() {
    let frame = |style| Frame {
        style,
        realm: "packages.example",
        token_service: Some("https://packages.example/v2/token"),
        request_id: "r1",
        head: false,
    };
    let start = "Bearer realm=\"https://packages.example/v2/token\",service=\"packages.example\"";
    let scope = || Some("repository:repositories/r/a:pull".to_owned());
    for (scope, lacking, rest) in [
        (None, Lacking::Nothing, ""),
        (scope(), Lacking::Nothing, ",scope=\"repository:repositories/r/a:pull\""),
        (None, Lacking::Token, ",error=\"invalid_token\""),
        (scope(), Lacking::Scope, ",scope=\"repository:repositories/r/a:pull\",error=\"insufficient_scope\""),
    ] {
        let refused = Refused::of(&catalogue::UNAUTHORIZED).lacking(scope, lacking);
        let response = answer(refused, frame(ErrorStyle::Registry));
        assert_eq!(response.headers().get_all(WWW_AUTHENTICATE).iter().count(), 1);
        assert_eq!(response.headers()[WWW_AUTHENTICATE], format!("{start}{rest}"));
    }
    let denied = Refused::of(&catalogue::REPOSITORY_NOT_REACHED).lacking(scope(), Lacking::Scope);
    assert!(!answer(denied, frame(ErrorStyle::Registry)).headers().contains_key(WWW_AUTHENTICATE));
}
