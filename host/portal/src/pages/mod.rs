//! The pages, one file each, with their routes.

mod access;
mod access_keys;
mod account;
mod api_tokens;
mod attestations;
mod audit;
mod backups;
mod cache;
mod codes;
mod connection;
mod formats;
mod health;
mod home;
mod image;
mod install;
mod jobs;
mod key_owners;
mod link;
mod login;
mod members;
mod moved;
mod new_repository;
mod organization;
mod package;
mod package_table;
mod permissions;
mod policies;
mod publishers;
mod repositories;
mod repository;
mod repository_header;
mod retention;
mod search;
mod second_factor;
mod service_accounts;
mod service_keys;
mod settings;
mod sign_in;
mod sign_in_settings;
mod sso;
mod teams;
mod tokens;
mod trash;
mod version;
mod version_lists;
mod version_side;
mod webhooks;

use std::sync::Arc;

use axum::routing::MethodRouter;

use crate::{Portal, visit};

type Routes = Vec<(&'static str, MethodRouter<Arc<Portal>>)>;

/// Returns the route of the first page that a member sees.
fn home() -> Routes {
    vec![("/home", visit::page(|ctx| async move { home::page(&ctx).await }))]
}

/// Returns the routes of all pages.
pub(crate) fn all() -> Routes {
    let pages = [
        sign_in::routes(),
        link::routes(),
        home(),
        repositories::routes(),
        new_repository::routes(),
        repository::routes(),
        connection::routes(),
        settings::routes(),
        cache::routes(),
        trash::routes(),
        package::routes(),
        version::routes(),
        search::routes(),
        tokens::routes(),
        service_keys::routes(),
        key_owners::routes(),
        api_tokens::routes(),
        members::routes(),
        teams::routes(),
        service_accounts::routes(),
        access::routes(),
        codes::routes(),
        formats::routes(),
        audit::routes(),
        health::routes(),
        jobs::routes(),
        backups::routes(),
        organization::routes(),
        sign_in_settings::routes(),
        publishers::routes(),
        retention::routes(),
        policies::routes(),
        webhooks::routes(),
        moved::routes(),
        account::routes(),
        second_factor::routes(),
        login::routes(),
    ];
    pages.into_iter().flatten().collect()
}
