//! The host's errors in the form of the OCI distribution specification. Every error response has a
//! list under `errors`, and beside the list the fields that the error responses of other formats
//! have.

use packhouse_sdk::{CodeKind, ErrorTemplate, RefusalWords};
use serde_json::json;

/// The template of error responses. It writes the same responses as the predefined error style
/// `registry`, which released plugins select by name.
pub(crate) fn template() -> ErrorTemplate {
    let template = ErrorTemplate::new(json!({"errors": "{problems}", "request_id": "{request_id}"}))
        .problem(json!({"code": "{code}", "message": "{message}", "detail": "{detail}"}))
        .members(CodeKind::Code, json!({"code": "{host_code}"}))
        .members(CodeKind::ReasonCode, json!({"reason_code": "{host_code}"}))
        .detail_at_top();
    words().into_iter().fold(template, |template, (which, words)| template.refusal(which, words))
}

/// The response to a manifest over the size limit.
pub(crate) fn too_large_manifest() -> RefusalWords {
    RefusalWords::new("MANIFEST_INVALID", "manifest exceeds maximum size").status(400)
}

fn words() -> Vec<(&'static str, RefusalWords)> {
    let new = RefusalWords::new;
    vec![
        ("key_not_reached", new("DENIED", "requested scope not authorized for this token").status(403)),
        (
            "writes_not_permitted_on_group",
            new("UNSUPPORTED", "Writes are not permitted to group repositories").status(405),
        ),
        ("quota_exceeded", new("DENIED", "{sentence}").status(403)),
        ("policy_denied", new("DENIED", "{sentence}").status(403)),
        ("scope_mismatch_package", new("DENIED", "{sentence}").status(403)),
        // The sentence is the operator's text, which clients print.
        ("rate_limited", new("TOOMANYREQUESTS", "{sentence}").status(429)),
        ("maintenance", new("UNAVAILABLE", "{sentence}").status(503).members(json!({"code": "{host_code}"}))),
        ("read_only", new("UNAVAILABLE", "{sentence}").status(503).members(json!({"code": "{host_code}"}))),
        (
            "stored_data_damaged",
            new("UNKNOWN", "{sentence}").status(500).members(json!({"code": "{host_code}"})),
        ),
        ("group_empty", new("NAME_UNKNOWN", "group repository has no members").status(404)),
        ("name_claimed", new("MANIFEST_UNKNOWN", "manifest not found").status(404)),
        ("no_repository_name", new("NAME_INVALID", "invalid repository name").status(400)),
        ("malformed_address", new("NAME_INVALID", "Invalid OCI path").status(400)),
        ("401", new("UNAUTHORIZED", "authentication required")),
        ("403", new("DENIED", "insufficient permissions")),
        ("404", new("NAME_UNKNOWN", "repository not found")),
        ("405", new("UNSUPPORTED", "method not allowed")),
        ("413", new("SIZE_INVALID", "provided length did not match content length").status(400)),
        ("429", new("TOOMANYREQUESTS", "too many attempts")),
        ("502", new("UNAVAILABLE", "the upstream registry cannot be used: {sentence}")),
        // The protocol has one code for all kinds of 503. The host's code beside it names the kind.
        ("503", new("UNAVAILABLE", "service unavailable").members(json!({"code": "{host_code}"}))),
        // Errors that the server finds before it handles the protocol. The specification has no
        // codes for these errors.
        ("4xx", RefusalWords::code("{host_code_upper}")),
        ("5xx", new("UNKNOWN", "unknown error").status(500)),
    ]
}
