//! `/repositories/{name}/settings`: forms for the settings, the ordered members of a group, the
//! upstream and credentials of a proxy, and the deletion.

mod credentials;
mod form;
mod members;

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::{loaded, repositories};
use packhouse_identity::permissions::Permission::ManageRepositories;
use packhouse_store::RepositoryRow;

use super::repository::{named, sheet, tabs};
use super::{Routes, publishers, retention};
use crate::confirm;
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/settings", visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    if ctx.query.has("confirmed") && ctx.form.text("do") == "credentials" {
        return confirm::prompt_page(&ctx, &credentials::prompt(&row), &ctx.form, None).await;
    }
    page(&ctx, &row, None).await
}

async fn managed(ctx: &PageContext) -> Result<RepositoryRow, ApiError> {
    let row = named(ctx).await?;
    repositories::managed(&ctx.actor, &row.id.to_string()).await
}

/// Builds the page. `wrong` is the name of the refused form with its error.
async fn page(ctx: &PageContext, row: &RepositoryRow, wrong: Option<(&str, &ApiError)>) -> PageResult {
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let plugin = loaded::plugin_of(&ctx.actor.app, row)?;
    let shows_credentials =
        plugin.is_some_and(|plugin| !plugin.description().upstream_credentials.is_empty());
    let proxy = row.kind == repositories::PROXY;
    let body = html! {
        (tabs(ctx, row, "/settings"))
        @if row.kind != "hosted" && !proxy { (members::form(ctx, row, of("members")).await?) }
        (form::form(ctx, row, of("settings")))
        @if proxy && shows_credentials { (credentials::form(ctx, of("credentials"))) }
        @if row.kind == "hosted" { (publishers::section(row)) (retention::section(ctx, Some(row.id)).await?) }
        @if ctx.holds(ManageRepositories) {
            div.card.danger {
                h2 { "Delete" }
                p { "Deletes the repository " strong { (row.name) } " with all its packages. This cannot be undone." }
                @if let Some(wrong) = of("delete") { (parts::alert(wrong.message())) }
                (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, ..sheet(row) }, &body))
}

/// Returns the submitted fields if the member submitted this form, otherwise `none`.
fn sent<'a>(ctx: &'a PageContext, form: &str, none: &'a Fields) -> &'a Fields {
    if ctx.form.text("do") == form { &ctx.form } else { none }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let row = managed(&ctx).await?;
    let id = row.id.to_string();
    let action = ctx.form.text("do");
    let done = match action {
        "members" if ctx.form.has("filter") => return page(&ctx, &row, None).await,
        "members" => {
            let change = forms::repository_change(None, Some(members::value(&row, &ctx.form)), None);
            repositories::change(&ctx.actor, &id, &change).await.map(drop)
        }
        "credentials" => match credentials::set(&ctx, &row).await {
            Ok(answer) => return Ok(answer),
            Err(error) => Err(error),
        },
        "delete" => match repositories::remove(&ctx.actor, &id).await {
            Ok(()) => return Ok(see_other("/repositories?done=deleted")),
            Err(error) => Err(error),
        },
        _ => form::save(&ctx, &row).await,
    };
    match done {
        Ok(()) => Ok(see_other(&format!("{}?done=saved", ctx.path))),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            let about =
                if ["members", "credentials", "delete"].contains(&action) { action } else { "settings" };
            page(&ctx, &row, Some((about, &wrong))).await
        }
    }
}
