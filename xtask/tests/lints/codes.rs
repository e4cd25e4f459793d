//! Checks of tests/error-codes.tsv, which names a test for every error code: against the codes of
//! the specification, the catalogue of the program, and the existing tests.

use std::collections::BTreeSet;

use packhouse_tests::checkout;
use serde_json::Value;

/// Codes of the specification with their statuses: first the table of the API, then the table of
/// the registry. In the second table, several rows can have one code and differ in the message.
const SPECIFICATION: &[(&str, u16)] = &[
    ("invalid_name", 400),
    ("invalid_scope", 400),
    ("invalid_token_format", 400),
    ("missing_repo_ids", 400),
    ("missing_expires_at", 400),
    ("invalid_expires_at", 400),
    ("expires_at_in_past", 400),
    ("service_key_must_expire", 400),
    ("invalid_backing_kind", 400),
    ("invalid_backing_id", 400),
    ("invalid_service_key_format", 400),
    ("repo_backing_scope_mismatch", 400),
    ("missing_confirmation_token", 400),
    ("overlap_exceeds_scheduled_end", 400),
    ("invalid_user_id", 400),
    ("invalid_overlap_hours", 400),
    ("overlap_exceeds_expiry", 400),
    ("token_not_found", 400),
    ("step_up_required", 401),
    ("step_up_required", 403),
    ("repo_access_denied", 403),
    ("service_key_forbidden", 403),
    ("role_mismatch", 403),
    ("insufficient_permissions", 403),
    ("user_not_found", 404),
    ("access_key_not_found", 404),
    ("writes_not_permitted_on_proxy", 405),
    ("request_timeout", 408),
    ("token_revoked", 409),
    ("legacy_token", 409),
    ("access_key_revoked", 409),
    ("access_key_changed", 409),
    ("conflict", 409),
    ("user_already_exists", 409),
    ("NPM_CLI_TOKEN_CREATE_DISABLED", 410),
    ("LEGACY_NPM_LOGIN_DISABLED", 410),
    ("request_body_too_large", 413),
    ("scan_block_size_cap", 413),
    ("unsupported_media_type", 415),
    ("scope_mismatch_repo", 403),
    ("revoked-authority-clamp", 403),
    ("npm_token_not_supported_on_proxy", 403),
    ("ddb_unavailable", 503),
    ("repository_token_identity_unavailable", 503),
    ("membership_lookup_unavailable", 503),
    ("sso_config_unavailable", 503),
    ("UNAUTHORIZED authentication required", 401),
    ("DENIED insufficient permissions", 403),
    ("DENIED requested scope not authorized for this token", 403),
    ("NAME_INVALID Docker image names require at least two segments: <repository>/<image>", 400),
    ("NAME_INVALID invalid image name", 400),
    ("NAME_INVALID invalid repository name", 400),
    ("NAME_INVALID Invalid OCI path", 400),
    ("NAME_INVALID invalid tag format", 400),
    ("NAME_UNKNOWN repository not found", 404),
    ("NAME_UNKNOWN group repository has no members", 404),
    ("MANIFEST_UNKNOWN manifest not found", 404),
    ("BLOB_UNKNOWN", 404),
    ("MANIFEST_BLOB_UNKNOWN", 400),
    ("MANIFEST_INVALID unsupported manifest media type", 400),
    ("MANIFEST_INVALID manifest exceeds maximum size", 400),
    ("MANIFEST_INVALID manifest body is not valid JSON", 400),
    ("MANIFEST_INVALID computed digest does not match reference", 400),
    ("DIGEST_INVALID", 400),
    ("SIZE_INVALID", 400),
    ("BLOB_UPLOAD_UNKNOWN", 404),
    ("BLOB_UPLOAD_INVALID", 400),
    ("UNSUPPORTED Writes are not permitted to group repositories", 405),
    ("UNSUPPORTED method not allowed", 405),
    ("UNSUPPORTED catalog not yet implemented", 405),
    ("UNKNOWN", 500),
];

/// A row: the code with its message, the status, the file and the name of the test.
struct CodeRow {
    code: String,
    status: u16,
    file: String,
    test: String,
}

fn rows() -> Vec<CodeRow> {
    let text = std::fs::read_to_string(checkout().join("tests/error-codes.tsv")).unwrap();
    let rows = text.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [code, status, test] = cells[..] else { panic!("not three columns: {line}") };
        let (file, test) = test.split_once("::").unwrap_or_else(|| panic!("{code} {status} has no test"));
        let (file, test) = (file.to_owned(), test.to_owned());
        CodeRow { code: code.to_owned(), status: status.parse().unwrap(), file, test }
    });
    rows.collect()
}

#[test]
fn every_code_of_the_specification_has_a_test() {
    let rows = rows();
    for (code, status) in SPECIFICATION {
        let is_listed = rows.iter().any(|row| row.code == *code && row.status == *status);
        assert!(is_listed, "tests/error-codes.tsv has no row for {code} {status}");
    }
}

#[test]
fn every_code_of_the_catalogue_has_a_test() {
    let rows = rows();
    let known: BTreeSet<&str> = rows.iter().filter_map(|row| row.code.split(' ').next()).collect();
    let catalogue = std::fs::read_to_string(checkout().join("host/wire/src/catalogue.rs")).unwrap();
    let codes: Vec<&str> = catalogue
        .lines()
        .filter_map(|line| line.trim().split_once(" = \"").filter(|(name, _)| *name == name.to_uppercase()))
        .filter_map(|(_, rest)| rest.split('"').next())
        .collect();
    assert!(codes.len() > 80, "the catalogue was not read: {codes:?}");
    let missing: Vec<&&str> = codes.iter().filter(|code| !known.contains(**code)).collect();
    assert!(missing.is_empty(), "tests/error-codes.tsv has no row for {missing:?}");
}

/// Checks the words of the image plugin's description for the host's refusals. The released error
/// style `registry` uses the same words.
#[test]
fn every_code_of_a_registrys_words_has_a_test() {
    let text = checkout().join("host/runtime/src/description/registry.json");
    let registry: Value = serde_json::from_str(&std::fs::read_to_string(text).unwrap()).unwrap();
    let words = registry["errors"]["refusals"].as_object().unwrap().values().chain([&registry["manifest"]]);
    let rows = rows();
    let mut judged = 0;
    for words in words {
        // An entry without its own message uses the host's code in upper case, so there is no code
        // to check.
        let (Some(code), Some(message)) = (words["code"].as_str(), words["message"].as_str()) else {
            continue;
        };
        let named = |row: &&CodeRow| row.code == code || row.code == format!("{code} {message}");
        assert!(rows.iter().any(|row| named(&row)), "tests/error-codes.tsv has no row for {code} {message}");
        judged += 1;
    }
    assert!(judged > 10, "the words were not read");
}

#[test]
fn every_named_test_exists_and_mentions_its_code() {
    for CodeRow { code, status, file, test } in rows() {
        let text =
            std::fs::read_to_string(checkout().join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let begin = text.find(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no test {test}"));
        assert!(text[..begin].trim_end().ends_with("#[test]"), "{file}: {test} is not a test");
        let word = code.split(' ').next().unwrap();
        assert!(text.contains(word), "{file} does not mention {word} ({status})");
    }
}
