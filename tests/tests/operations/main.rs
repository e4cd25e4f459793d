//! The interfaces for operators and for programs: the API, the command line, backups, retention,
//! webhooks, start and stop.

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod wheel;

mod access_keys;
mod api;
mod api_scopes;
mod api_tokens;
mod apply;
mod audit;
mod backup;
mod cli;
mod confirmations;
mod credentials;
mod docs;
mod doctor;
mod explain;
mod foreign_folders;
mod forged_backups;
mod jobs;
mod list_pages;
mod mail;
mod manage_repository;
mod members;
mod metrics_access;
mod monitoring;
mod one_address;
mod operating;
mod operator;
mod operator_commands;
mod organizations;
mod package_patterns_api;
mod packaging;
mod postgres;
mod preview_names;
mod process;
mod proxy_files;
mod quota;
mod rates;
mod readme;
mod reload;
mod remote_cli;
mod request_host;
mod retention;
mod rights;
mod schemathesis;
mod scim;
mod scim_entra;
mod scim_okta;
mod second_factor;
mod service_accounts;
mod sso_settings;
mod starting;
mod stopping;
mod supervisor;
mod suspension;
mod teams;
mod traces;
mod trash;
mod upgrade;
mod upkeep;
mod webhooks;
