//! `/repositories/{name}/packages/{package}`: versions of a package.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::advisories::{self, Mark};
use packhouse_api::operations::upkeep::{self, Deleted};
use packhouse_api::operations::{activity, packages};
use packhouse_identity::access::Rights;
use packhouse_store::{RepositoryRow, Version};

use super::Routes;
use super::repository::named;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, chart, dates, fault, parts};

/// Maximum versions on a page.
const ROWS: usize = 60;

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/packages/{package}", visit::page(show).merge(visit::form(delete)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&packhouse_api::error::ApiError>) -> PageResult {
    let row = named(ctx).await?;
    let package = ctx.named("package");
    let versions = packages::versions(&ctx.actor, &row.id.to_string(), package).await?;
    let begin = ctx.query.text("after").parse::<usize>().unwrap_or_default();
    let next = (begin.saturating_add(ROWS) < versions.len()).then(|| (begin + ROWS).to_string());
    let listed: Vec<&Version> = versions.iter().skip(begin).take(ROWS).collect();
    let days = activity::of_package(&ctx.actor, &row.id.to_string(), package).await?;
    let numbers: Vec<String> = listed.iter().map(|version| version.version.clone()).collect();
    let marks = advisories::of_versions(&ctx.actor, &row, package, &numbers).await?;
    let rows =
        html! { @for (version, marks) in listed.iter().zip(&marks) { (one(&row, package, version, marks)) } };
    let body = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if let Some(newest) = versions.first() { @if !newest.summary.is_empty() { p { (parts::isolated(&newest.summary)) } } }
        (parts::table("Versions", &["Version", "State", "Published", "Files", "Size"], &rows))
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
        @if begin == 0 { (chart::activity(&days)) }
        @if may_delete(ctx, &row) {
            div.card.danger {
                h2 { "Delete" }
                p { "Deletes the package " (parts::isolated(package)) " with " (parts::count(versions.len() as u64, "version", "versions")) "." }
                (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs: crumbs(&row, None), ..Sheet::of(package) }, &body))
}

/// Builds the breadcrumbs of a package or a version.
pub(super) fn crumbs(row: &RepositoryRow, package: Option<&str>) -> Markup {
    html! {
        p.crumbs {
            a href="/repositories" { "Repositories" } " / " a href=(parts::repository(&row.name)) { (row.name) }
            @if let Some(package) = package { " / " a href=(parts::package(&row.name, package)) { (parts::isolated(package)) } }
        }
    }
}

/// Returns the member's rights in a hosted repository whose format supports changes; no rights
/// otherwise. Pages use them only to decide which forms they show; operations check rights
/// themselves.
pub(super) fn rights(ctx: &PageContext, row: &RepositoryRow) -> Rights {
    let plugin = ctx.actor.app.runtime.plugin_of(row.id, &row.format);
    if row.kind == "hosted" && plugin.is_some_and(|plugin| plugin.has_upkeep()) {
        ctx.actor.rights_in(row)
    } else {
        Rights::default()
    }
}

fn may_delete(ctx: &PageContext, row: &RepositoryRow) -> bool {
    rights(ctx, row).delete
}

fn one(row: &RepositoryRow, package: &str, version: &Version, marks: &[Mark]) -> Markup {
    let bytes = version.files.iter().map(|file| file.size).fold(0, u64::saturating_add);
    html! {
        tr {
            th scope="row" { a href=(parts::version(&row.name, package, &version.version)) { (parts::isolated(&version.version)) } }
            td {
                @if !version.state.is_empty() { (parts::tag(&version.state)) " " }
                @if let Some(worst) = marks.first() { (parts::tag(if worst.malware { "malware" } else { worst.severity.as_str() })) }
            }
            td.tight { @if let Some(at) = version.published { (dates::unsigned_time(at)) } }
            td.num { (version.files.len()) }
            td.num { (parts::size(bytes)) }
        }
    }
}

async fn delete(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let deleted = upkeep::delete_package(&ctx.actor, &row.id.to_string(), ctx.named("package")).await;
    match deleted {
        Ok(Deleted::Whole) => Ok(see_other(&format!("{}?done=deleted", parts::repository(&row.name)))),
        Ok(Deleted::InProgress { .. }) => {
            Ok(see_other(&format!("{}?done=deleting", parts::repository(&row.name))))
        }
        Err(error) => page(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
    }
}
