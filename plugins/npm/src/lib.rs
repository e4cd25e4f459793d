//! Format plugin for the npm registry protocol: npm, pnpm, yarn, bun and other clients.
//!
//! A package has one small record, and each version has its own record. The cost of a publish
//! therefore does not depend on the number of versions. The plugin renders packuments from the
//! records on request. docs/clients/npm.md describes the protocol and the design decisions.

mod accept;
mod account;
mod address;
mod attestation;
mod audit;
mod audit_request;
mod bin;
mod bulk;
mod change;
mod clients;
mod confusion;
mod difference;
mod dist;
mod document;
mod fetch;
mod hosted;
mod manifest;
mod merge;
mod name;
mod not_offered;
mod packument;
mod pieces;
mod present;
mod proxy;
mod publish;
mod readme;
mod records;
mod remove;
mod restrictions;
mod retention;
mod revision;
mod search;
mod settings;
mod tags;
mod tar;
mod tree_audit;
mod upkeep;
mod upstream_packument;
mod upstream_pieces;
mod upstream_statements;
mod version;
mod version_content;
mod version_text;
mod versions;
mod withdrawn;

use packhouse_sdk::{CodeKind, Description, Exchange, Failure, Format, Plan, Router, SentencePlace, Setting};
use serde_json::json;

/// Maximum number of bytes of a tarball after base64 decoding: 210 MB.
const FILE_LIMIT: u64 = 210_000_000;

/// Maximum number of bytes of a publish: the tarball as base64, which makes four bytes of three,
/// and the document around it.
const BODY_LIMIT: u64 = FILE_LIMIT.div_ceil(3) * 4 + document::DOCUMENT_LIMIT;

/// The format plugin. It has no state.
#[derive(Clone, Copy, Debug)]
pub struct Npm;

impl Format for Npm {
    fn describe() -> Description {
        Description::new("npm", env!("CARGO_PKG_VERSION"))
            .ecosystem("npm")
            .purl("npm", "/")
            .kinds(&["hosted", "proxy", "group"])
            .unused_settings(&["redeploy", "keep_untagged"])
            .follows_redirects()
            .encoded_slash()
            .refused_status(404, 401)
            .tags_of_package("p/", "tags")
            .request_headers(&["npm-command"])
            .own_code("NPM_CLI_TOKEN_CREATE_DISABLED", CodeKind::Code)
            .own_code("LEGACY_NPM_LOGIN_DISABLED", CodeKind::Code)
            .own_tokens()
            // npm shows the code in the body of an error response, and the text of its header
            // `npm-notice`. The other clients show only the status line. Newer versions of Yarn
            // send `got` as their `User-Agent`.
            .sentence_clients(&["npm/"], &SentencePlace::Header("npm-notice".to_owned()))
            .sentence_clients(&["pnpm/", "yarn/", "got (", "Bun/"], &SentencePlace::Reason)
            .trusted_publishing(&["/-/{scope}/v1/oidc", "/-/{scope}/v1/oidc/{rest..}"])
            .exchange(
                Exchange::token(
                    "POST /-/npm/v1/oidc/token/exchange/package/{package..}",
                    json!({"token": "{token}"}),
                )
                .for_audience("npm:{hostname}")
                .refused(401, json!({"message": "{message}", "code": "{code}"})),
            )
            .open_requests(&[
                "POST /-/v1/login",
                "GET /-/v1/login/{id}",
                "PUT /-/user/{user..}",
                "POST /-/npm/v1/tokens",
            ])
            .clients(clients::clients())
            .install(clients::install())
            .max_file_bytes(FILE_LIMIT)
            .max_body_bytes(BODY_LIMIT)
            .setting(
                settings::LEGACY_NAMES,
                Setting::boolean(
                    false,
                    "Allow packages with names that npm reserves for existing packages: with capital letters or one of ~'!()*",
                )
                .title("Old package names"),
            )
    }

    fn routes(router: &mut Router) {
        router.get("/", Plan::read, account::root);
        router.get("/-/ping", Plan::read, account::ping);
        router.get("/-/whoami", Plan::read, account::whoami);
        router.get("/-/npm/v1/user", Plan::read, account::user);
        router.post("/-/v1/login", Plan::open, account::begin_login);
        router.get("/-/v1/login/{id}", Plan::open, account::finish_login);
        router.put("/-/user/{user..}", Plan::open, account::legacy_login);
        router.delete("/-/user/token/{token}", Plan::read, account::log_out);
        router.get("/-/npm/v1/tokens", Plan::read, account::tokens);
        router.post("/-/npm/v1/tokens", Plan::open, account::create_token);
        router.delete("/-/npm/v1/tokens/token/{token}", Plan::read, account::revoke_token);
        router.post("/-/npm/v1/security/advisories/bulk", audit::plan, audit::advisories);
        router.post("/-/npm/v1/security/audits", audit::plan, audit::audits);
        router.post("/-/npm/v1/security/audits/quick", audit::plan, audit::audits);
        router.get("/-/npm/v1/keys", Plan::read_many, audit::keys);
        router.get("/-/npm/v1/attestations/{of..}", fetch::plan_attestations, fetch::attestations);
        router.get("/-/v1/search", Plan::read_many, search::search);
        router.get("/-/package/{rest..}", tags::plan_get, tags::get);
        router.put("/-/package/{rest..}", tags::plan_put, tags::put);
        router.post("/-/package/{rest..}", tags::plan_put, tags::put);
        router.delete("/-/package/{rest..}", tags::plan_delete, tags::delete);
        router.get("/-/user/{user}", Plan::read, account::named_user);
        for method in ["GET", "PUT", "POST", "PATCH", "DELETE"] {
            router.row(method, "/-/{path..}", not_offered::plan, not_offered::answer);
        }
        router.get("/{path..}", fetch::plan, fetch::get);
        router.put("/{path..}", publish::plan, publish::put);
        router.delete("/{path..}", remove::plan, remove::delete);
    }
}

packhouse_sdk::export!(Npm, upkeep, present, retention, versions);

/// The error when every retry of a commit lost the race.
fn busy() -> Failure {
    Failure::busy("the same package")
}

#[cfg(test)]
extern crate self as packhouse_npm;

#[cfg(test)]
#[path = "../tests/mod.rs"]
mod protocol_tests;
