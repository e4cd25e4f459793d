//! Table of every error code in the specification and the API description. A row has the code, the
//! status, the position of the code in the answer, and a sentence. No other part of the program
//! contains error codes, and for each row a test sends a request that provokes it. The description
//! of a format may replace the sentence of a row.
//!
//! Some sentences name formats, because clients read these sentences; the behaviour of this crate
//! does not depend on any format.

/// Position of the code in an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// `error` holds the code.
    Error,
    /// `code` holds the code, and `error` holds it in lower case.
    Code,
    /// `reason_code` holds the code, and `error` holds the sentence.
    Reason,
}

/// Host that answers with the code.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Host {
    Api,
    Packages,
    Both,
}

/// One row of the table.
#[derive(Debug, Eq, PartialEq)]
pub struct Code {
    /// Unique name of the row, in upper case: several rows may have the same code.
    pub name: &'static str,
    /// Code that the answer contains.
    pub code: &'static str,
    /// HTTP status of the answer.
    pub status: u16,
    /// Position of the code in the answer.
    pub place: Place,
    /// Host that answers with the code.
    pub host: Host,
    /// Sentence for people. [`Code::with`] replaces `{}` by a detail.
    pub sentence: &'static str,
}

impl Code {
    /// Returns the seconds for `Retry-After`: 5 for every 503 except the one that the specification
    /// exempts.
    pub fn retry_after(&self) -> Option<u32> {
        (self.status == 503 && !std::ptr::eq(self, &MEMBERSHIP_LOOKUP_UNAVAILABLE)).then_some(5)
    }

    /// Returns the sentence with `{}` replaced by `found`.
    pub fn with(&self, found: &str) -> String {
        self.sentence.replace("{}", found)
    }
}

macro_rules! catalogue {
    ($($name:ident = $code:literal $status:literal $place:ident $host:ident $sentence:literal;)*) => {
        $(
            #[doc = $sentence]
            pub static $name: Code = Code {
                name: stringify!($name),
                code: $code,
                status: $status,
                place: Place::$place,
                host: Host::$host,
                sentence: $sentence,
            };
        )*
        /// Every row, in the order of the specification.
        pub static ALL: &[&Code] = &[$(&$name),*];
    };
}

catalogue! {
    // The specification's table "API codes", in the same order, which is also the order of the
    // checks.
    INVALID_NAME = "invalid_name" 400 Error Api "A name must have 1 to 256 characters, without control characters and without characters that change the direction of text.";
    INVALID_SCOPE = "invalid_scope" 400 Error Api "`scope` must be a list of `read`, `write` or both.";
    INVALID_TOKEN_FORMAT = "invalid_token_format" 400 Error Api "`format` must be `generic` or `npm`.";
    MISSING_REPO_IDS = "missing_repo_ids" 400 Error Api "`repositories` must list the id of at least one repository.";
    MISSING_EXPIRES_AT = "missing_expires_at" 400 Error Api "`expires_at` is required: milliseconds since 1970-01-01 UTC, or null for no expiry.";
    INVALID_EXPIRES_AT = "invalid_expires_at" 400 Error Api "`expires_at` must be an integer: milliseconds since 1970-01-01 UTC, not after the end of the year 9999.";
    EXPIRES_AT_IN_PAST = "expires_at_in_past" 400 Error Api "`expires_at` is in the past.";
    SERVICE_KEY_MUST_EXPIRE = "service_key_must_expire" 400 Error Api "A service key must expire within 90 days.";
    INVALID_BACKING_KIND = "invalid_backing_kind" 400 Error Api "`backing.kind` must be `org` or `repo`.";
    INVALID_BACKING_ID = "invalid_backing_id" 400 Error Api "`backing.id` must be the id of the repository that the key belongs to.";
    INVALID_SERVICE_KEY_FORMAT = "invalid_service_key_format" 400 Error Api "The `format` of a service key must be `generic`.";
    REPO_BACKING_SCOPE_MISMATCH = "repo_backing_scope_mismatch" 400 Error Api "A key that belongs to a repository must list only that repository.";
    MISSING_CONFIRMATION_TOKEN = "missing_confirmation_token" 400 Error Api "Confirm your identity first: POST /v1/confirmations, then send its `confirmation_token`.";
    TOKEN_OVERLAP_EXCEEDS_SCHEDULED_END = "overlap_exceeds_scheduled_end" 400 Error Api "This token is already being rotated, and the overlap would keep it valid past its scheduled end.";
    KEY_OVERLAP_EXCEEDS_SCHEDULED_END = "overlap_exceeds_scheduled_end" 400 Error Api "This access key is already being rotated, and the overlap would keep it valid past its scheduled end.";
    INVALID_USER_ID = "invalid_user_id" 400 Error Api "`member` must be the e-mail address of a member; it must not be blank.";
    INVALID_OVERLAP_HOURS = "invalid_overlap_hours" 400 Error Api "`overlap_hours` must be an integer from 0 to 168.";
    OVERLAP_EXCEEDS_EXPIRY = "overlap_exceeds_expiry" 400 Error Api "The overlap is longer than the time left before the token expires.";
    TOKEN_NOT_FOUND = "token_not_found" 400 Error Api "The token was deleted before it could be replaced.";
    STEP_UP_REQUIRED = "step_up_required" 401 Error Api "Confirm your identity for this action first: POST /v1/confirmations.";
    STEP_UP_FORBIDDEN = "step_up_required" 403 Error Api "Confirm your identity for the action {} first: POST /v1/confirmations, then send its `confirmation_token`.";
    REPO_ACCESS_DENIED = "repo_access_denied" 403 Error Api "You do not have access to one of the listed repositories.";
    SERVICE_KEY_FORBIDDEN = "service_key_forbidden" 403 Error Api "A key of the organization needs the permission manage-owner-account.";
    ROLE_MISMATCH = "role_mismatch" 403 Error Api "You do not have the permission that this action requires.";
    INSUFFICIENT_PERMISSIONS = "insufficient_permissions" 403 Error Api "This action requires the permission {}.";
    USER_NOT_FOUND = "user_not_found" 404 Error Api "No member has this e-mail address.";
    ACCESS_KEY_NOT_FOUND = "access_key_not_found" 404 Error Api "There is no access key with this id.";
    WRITES_NOT_PERMITTED_ON_PROXY = "writes_not_permitted_on_proxy" 405 Code Both "A proxy repository contains only packages that it fetched; clients cannot write to it.";
    REQUEST_TIMEOUT = "request_timeout" 408 Error Both "The request body did not arrive in time; send the request again.";
    TOKEN_REVOKED = "token_revoked" 409 Error Api "This token was revoked or has expired.";
    LEGACY_TOKEN = "legacy_token" 409 Error Api "This token has no recorded owner, so it cannot be rotated; create a new one.";
    ACCESS_KEY_REVOKED = "access_key_revoked" 409 Error Api "This access key was revoked, or its rotation has begun.";
    ACCESS_KEY_CHANGED = "access_key_changed" 409 Error Api "The expiry of this access key was changed in the meantime; read the key again.";
    CONFLICT = "conflict" 409 Error Packages "The package was changed after it was read; read it again.";
    USER_ALREADY_EXISTS = "user_already_exists" 409 Error Api "An account with this e-mail address already exists.";
    NPM_CLI_TOKEN_CREATE_DISABLED = "NPM_CLI_TOKEN_CREATE_DISABLED" 410 Code Packages "`npm token create` is not supported; create tokens in the portal.";
    LEGACY_NPM_LOGIN_DISABLED = "LEGACY_NPM_LOGIN_DISABLED" 410 Code Packages "Sign-in with a name and a password is not supported: use plain `npm login`, or a token from the portal.";
    REQUEST_BODY_TOO_LARGE = "request_body_too_large" 413 Error Api "The request body exceeds the limit of {}.";
    SCAN_BLOCK_SIZE_CAP = "scan_block_size_cap" 413 Code Packages "The upstream's manifest exceeds 4194304 bytes.";
    UNSUPPORTED_MEDIA_TYPE = "unsupported_media_type" 415 Error Api "Send the body as JSON, with `Content-Type: application/json`.";
    REPOSITORY_NOT_REACHED = "scope_mismatch_repo" 403 Reason Packages "This credential does not reach this repository. 2242";
    ACTION_NOT_IN_SCOPE = "scope_mismatch_repo" 403 Reason Packages "This credential may not do this here: [{}]";
    REVOKED_AUTHORITY_CLAMP = "revoked-authority-clamp" 403 Reason Packages "The owner of this token may no longer publish or delete here. 7301";
    FORMAT_TOKEN_ON_PROXY = "npm_token_not_supported_on_proxy" 403 Code Packages "A token of the format npm does not work with a proxy repository; use a generic token.";
    DDB_UNAVAILABLE = "ddb_unavailable" 503 Error Both "The database or the blob storage cannot be reached; try again.";
    REPOSITORY_TOKEN_IDENTITY_UNAVAILABLE = "repository_token_identity_unavailable" 503 Error Packages "The server cannot look up the owner of this token, so the token was neither accepted nor refused. Try again.";
    MEMBERSHIP_LOOKUP_UNAVAILABLE = "membership_lookup_unavailable" 503 Error Api "The server cannot read the list of members.";
    SSO_CONFIG_UNAVAILABLE = "sso_config_unavailable" 503 Error Both "The server cannot read the sign-in settings; try again.";

    // Codes of the API description, for cases that the specification leaves open.
    MALFORMED_JSON = "malformed_json" 400 Error Api "The request body is not valid JSON: {}.";
    INVALID_REQUEST = "invalid_request" 400 Error Both "{}";
    INVALID_PUBLISHED_AT = "invalid_published_at" 400 Error Packages "Packhouse-Published-At must be a time such as 2026-11-21T05:01:40Z, after 1970 and not in the future, or the word unknown.";
    MALFORMED_ADDRESS = "invalid_request" 400 Error Packages "The URL is malformed: {}.";
    ORGANIZATION_REQUIRED = "organization_required" 400 Error Api "This e-mail address belongs to several organizations; name one of them in `organization`.";
    INVALID_REPOSITORY_NAME = "invalid_repository_name" 400 Error Api "A repository's name must have 1 to 64 characters: a-z and 0-9, with single `.`, `_` or `-` between them.";
    INVALID_FORMAT = "invalid_format" 400 Error Api "`format` must be one of: {}.";
    INVALID_KIND = "invalid_kind" 400 Error Api "`kind` must be one of: {}.";
    INVALID_UPSTREAM = "invalid_upstream" 400 Error Api "{}";
    INVALID_SETTINGS = "invalid_settings" 400 Error Api "{}";
    INVALID_MEMBERS = "invalid_members" 400 Error Api "{}";
    INVALID_SSO_SETTINGS = "invalid_sso_settings" 400 Error Api "{}";
    INVALID_SCIM_FILTER = "invalid_filter" 400 Error Api "The filter is not supported here. {}";
    INVALID_SCIM_VALUE = "invalid_value" 400 Error Api "A value is invalid: {}.";
    INVALID_SCIM_PATH = "invalid_path" 400 Error Api "The `path` of an operation is invalid: {}.";
    SCIM_TARGET_REQUIRED = "no_target" 400 Error Api "An operation with `remove` must have a `path`.";
    INVALID_PROVIDER = "invalid_provider" 400 Error Api "`provider` must be `github`, `gitlab` or `oidc`.";
    INVALID_ISSUER = "invalid_issuer" 400 Error Api "{}.";
    INVALID_CLAIMS = "invalid_claims" 400 Error Api "Invalid `claims`: {}.";
    INVALID_PACKAGES = "invalid_packages" 400 Error Api "`packages` must be a list of 1 to 100 patterns of package names, in which `*` matches any text.";
    EXCHANGE_MALFORMED = "invalid_request" 400 Error Api "The token exchange is malformed: {}.";
    ID_TOKEN_REFUSED = "invalid_request" 400 Error Api "The ID token was refused: {}.";
    INVALID_TARGET = "invalid_target" 400 Error Api "`resource` must be the address of a repository of this server.";
    UNSUPPORTED_GRANT_TYPE = "unsupported_grant_type" 400 Error Api "`grant_type` must be urn:ietf:params:oauth:grant-type:token-exchange.";
    IMMUTABLE_FIELD = "immutable_field" 400 Error Api "`{}` cannot be changed.";
    NOT_SIGNED_IN = "not_signed_in" 401 Error Api "Sign in first: POST /v1/sessions, then `Authorization: Bearer <session>`.";
    INVALID_CREDENTIALS = "invalid_credentials" 401 Error Api "The e-mail address or the password is wrong.";
    SSO_REFUSED = "sso_refused" 401 Error Api "The sign-in was refused: {}.";
    INVALID_ID_TOKEN = "invalid_id_token" 401 Error Packages "The ID token was refused: {}.";
    UNAUTHORIZED = "unauthorized" 401 Error Packages "Authentication is required.";
    PACKAGE_NOT_REACHED = "scope_mismatch_repo" 403 Reason Packages "This credential may not do this with {}.";
    PACKAGE_OUT_OF_SCOPE = "scope_mismatch_package" 403 Reason Both "This credential may not {} here.";
    QUOTA_EXCEEDED = "quota_exceeded" 403 Reason Both "{}";
    POLICY_DENIED = "policy_denied" 403 Reason Packages "{}.";
    ADVISORY_MALWARE = "advisory_malware" 403 Reason Packages "{}";
    PUBLISHED_AT_NOT_PERMITTED = "published_at_not_permitted" 403 Error Packages "Packhouse-Published-At is only accepted from a member with the permission manage-repositories, or from a token of such a member.";
    METRICS_NOT_ALLOWED = "metrics_not_allowed" 403 Error Api "Your network address may not read these metrics. The operator can allow networks in `metrics_allow`, or set `metrics_listen`; a proxy in between must be listed in `trusted_proxies`.";
    CSRF_REFUSED = "csrf_refused" 403 Error Api "A browser session must send its CSRF token in X-CSRF-Token, from a page of this site.";
    NOT_FOUND = "not_found" 404 Error Both "Not found.";
    NO_REPOSITORY_NAME = "not_found" 404 Error Packages "No repository can have this name.";
    GROUP_EMPTY = "not_found" 404 Error Packages "This group has no member that you may read.";
    NAME_CLAIMED = "not_found" 404 Error Packages "This name is claimed for your own packages, so it is not fetched from the upstream.";
    METHOD_NOT_ALLOWED = "method_not_allowed" 405 Error Both "Method not allowed for this resource.";
    NOT_SUPPORTED = "not_supported" 405 Error Api "The format of this repository does not support this action.";
    WRITES_NOT_PERMITTED_ON_GROUP = "writes_not_permitted_on_group" 405 Code Both "A group repository has no storage of its own; write to one of its members.";
    ORGANIZATION_ALREADY_EXISTS = "organization_already_exists" 409 Error Api "Another organization already has this name.";
    REPOSITORY_ALREADY_EXISTS = "repository_already_exists" 409 Error Api "A repository with this name already exists.";
    REPOSITORY_IN_USE = "repository_in_use" 409 Error Api "The repository is a member of a group; remove it from the group first.";
    PREVIEW_REQUIRED = "preview_required" 409 Error Api "Preview the current version of this policy before enforcing it.";
    POLICY_PAUSED = "policy_paused" 409 Error Api "The policy is paused, so it cannot run; enforce it first.";
    TOO_MANY_POLICIES = "too_many_policies" 409 Error Api "An organization can have at most {} retention policies; delete one first.";
    TOO_MANY_RULES = "too_many_policies" 409 Error Api "An organization can have at most {} policies; delete one first.";
    TOO_MANY_EXCEPTIONS = "too_many_exceptions" 409 Error Api "A policy can have at most {} exceptions in force; revoke one first.";
    TOO_MANY_POLICY_COMPONENTS = "too_many_policy_components" 409 Error Api "A server can store at most {} policy components; remove one first.";
    POLICY_IN_USE = "policy_in_use" 409 Error Api "A policy of an organization still uses this component.";
    TOO_MANY_PUBLISHERS = "too_many_publishers" 409 Error Api "A repository can have at most {} trusted publishers; delete one first.";
    TOO_MANY_API_TOKENS = "too_many_api_tokens" 409 Error Api "An owner can have at most {} valid API tokens; revoke one first.";
    TOO_MANY_WEBHOOKS = "too_many_webhooks" 409 Error Api "An organization can have at most {} webhooks; delete one first.";
    TOO_MANY_RECORDINGS = "too_many_recordings" 409 Error Api "A server can store at most {} sets of recordings; delete one first.";
    PLUGIN_ACTIVE_CHANGED = "conflict" 409 Error Api "{}.";
    CAPABILITIES_CHANGED = "capabilities_changed" 409 Error Api "{}; set `accept_changes` to accept this.";
    LAST_OWNER = "last_owner" 409 Error Api "At least one member must keep the permission manage-owner-account.";
    INVALID_TEAM_NAME = "invalid_team_name" 400 Error Api "A team's name must have 1 to 64 characters, without control characters and without characters that change the direction of text.";
    TOO_MANY_TEAMS = "too_many_teams" 409 Error Api "An organization can have at most {} teams; delete one first.";
    TEAM_ALREADY_EXISTS = "team_already_exists" 409 Error Api "A team with this name already exists.";
    SERVICE_ACCOUNT_ALREADY_EXISTS = "service_account_already_exists" 409 Error Api "A service account with this name already exists.";
    SERVERS_TOO_OLD = "servers_too_old" 409 Error Api "A server of the previous version still uses this database and does not know {}. Update it first.";
    MEMBER_SUSPENDED = "member_suspended" 403 Error Api "This account is suspended. A member who manages members can reactivate it.";
    INVALID_API_TOKEN_SCOPE = "invalid_scope" 400 Error Api "{}";
    API_TOKEN_MUST_EXPIRE = "api_token_must_expire" 400 Error Api "`expires_at` is required: at most one year ahead, or 90 days for a token with `sensitive`.";
    SCOPE_MISMATCH_API = "scope_mismatch_api" 403 Error Api "This API token may not do this: {}.";
    SECOND_FACTOR_REQUIRED = "second_factor_required" 401 Error Api "Send the `code` of your authenticator app, or a recovery code.";
    SECOND_FACTOR_NOT_SET_UP = "second_factor_required" 403 Error Api "Your organization requires a second factor. Set one up first: POST /v1/me/totp.";
    SECOND_FACTOR_DEMANDED = "second_factor_required" 409 Error Api "Your organization requires a second factor, so you cannot remove yours.";
    INVALID_SECOND_FACTOR_CODE = "invalid_code" 400 Error Api "The code is wrong or was already used.";
    SECOND_FACTOR_ALREADY_SET_UP = "second_factor_already_set_up" 409 Error Api "You already have a second factor. Remove it first: DELETE /v1/me/totp.";
    ALREADY_FINISHED = "already_finished" 409 Error Api "This sign-in is already finished.";
    VERSION_ALREADY_EXISTS = "version_already_exists" 409 Error Both "This version already exists; publish a new one.";
    FILE_TOO_LARGE = "file_too_large" 413 Error Packages "The file exceeds the limit of {} bytes.";
    PLUGIN_REFUSED = "plugin_refused" 422 Error Api "{}.";
    NOT_A_COMPONENT = "unsupported_media_type" 415 Error Api "Send the component itself with `Content-Type: application/wasm`, or `{\"source\": \"oci://…\"}` as JSON.";
    NOT_A_FORM = "unsupported_media_type" 415 Error Api "Send the body as a form, with `Content-Type: application/x-www-form-urlencoded`.";
    URI_TOO_LONG = "uri_too_long" 414 Error Both "The URL is too long.";
    HEADERS_TOO_LARGE = "headers_too_large" 431 Error Both "The request has too many header fields, or they are too long.";
    RATE_LIMITED = "rate_limited" 429 Error Both "Too many requests; wait before you send the next one.";
    TOO_MANY_ATTEMPTS = "too_many_attempts" 429 Error Both "Too many attempts; wait before you try again.";
    SSO_PROVIDER_FAILED = "sso_provider_failed" 424 Error Api "The sign-in provider cannot be used: {}.";
    UPSTREAM_UNAVAILABLE = "upstream_unavailable" 502 Error Packages "The upstream repository cannot be reached or sent an invalid response; try again.";
    UPSTREAM_CREDENTIALS_NOT_SUPPORTED = "upstream_credentials_not_supported" 400 Error Api "{}";
    FORMAT_DISABLED = "format_disabled" 503 Error Packages "This format is currently disabled.";
    STAGING_FULL = "staging_full" 503 Error Packages "The staging area for uploads is full; try again later.";
    FORMAT_BUSY = "format_busy" 503 Error Packages "Too many requests for this format are in progress; try again.";
    NOT_ENABLED = "not_enabled" 404 Error Packages "Trusted publishing is not enabled here.";
    SERVER_BUSY = "server_busy" 503 Error Both "The server is at capacity; try again later.";
    READ_ONLY = "read_only" 503 Error Both "The server is in read-only mode; it refuses changes and still serves packages.";
    MAINTENANCE = "maintenance" 503 Error Both "The server is under maintenance and serves nothing at present.";
    SERVER_STARTING = "server_starting" 503 Error Both "The server is starting: it is still compiling or loading its plugins; try again.";
    SERVER_STOPPING = "server_stopping" 503 Error Api "The server is stopping; send the request to another server.";
    STORED_DATA_DAMAGED = "stored_data_damaged" 500 Error Both "The stored data is missing or damaged, so it cannot be served. Publishing the same file again repairs it; `packhouse scrub` lists what else is damaged.";
    INTERNAL = "internal_error" 500 Error Both "Internal error. See the server log for this request id.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_row_is_there_once() {
        let mut seen = BTreeSet::new();
        for row in ALL {
            assert!(seen.insert((row.code, row.status, row.sentence)), "{} stands twice", row.code);
            assert!(!row.sentence.is_empty(), "{} has no sentence", row.code);
            assert!((400..=599).contains(&row.status), "{} has status {}", row.code, row.status);
        }
    }

    #[test]
    fn one_code_has_one_status_but_for_two() {
        // The specification gives these codes several statuses.
        let exempt = ["step_up_required", "second_factor_required"];
        for row in ALL {
            let statuses: BTreeSet<u16> =
                ALL.iter().filter(|other| other.code == row.code).map(|other| other.status).collect();
            assert!(statuses.len() == 1 || exempt.contains(&row.code), "{}: {statuses:?}", row.code);
        }
    }

    #[test]
    fn sentences_that_end_in_a_number_keep_it_last() {
        assert!(REPOSITORY_NOT_REACHED.sentence.ends_with("2242"));
        assert!(REVOKED_AUTHORITY_CLAMP.sentence.ends_with("7301"));
        assert_eq!(ACTION_NOT_IN_SCOPE.with("read"), "This credential may not do this here: [read]");
    }

    #[test]
    fn every_503_says_when_to_come_back_but_one() {
        for row in ALL.iter().filter(|row| row.status == 503) {
            let expected = (row.code != "membership_lookup_unavailable").then_some(5);
            assert_eq!(row.retry_after(), expected, "{}", row.code);
        }
    }
}
