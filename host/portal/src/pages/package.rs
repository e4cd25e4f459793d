//! `/repositories/{name}/packages/{package}`: versions of a package.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::advisories::{self, Mark};
use packhouse_api::operations::packages::VersionPage;
use packhouse_api::operations::policies::{self, RuledVersion};
use packhouse_api::operations::upkeep::{self, Deleted};
use packhouse_api::operations::{activity, packages};
use packhouse_identity::access::Rights;
use packhouse_store::{RepositoryRow, Version};

use super::Routes;
use super::install::install;
use super::repository::named;
use super::version::{ROOM, blocked, readme};
use super::version_lists::severity;
use super::version_side::about;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, chart, dates, fault, parts};

/// Maximum versions on a page.
const ROWS: usize = 30;

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/packages/{package}", visit::page(show).merge(visit::form(delete)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let row = named(ctx).await?;
    let (id, package) = (row.id.to_string(), ctx.named("package"));
    let versions = packages::versions(&ctx.actor, &id, package).await?;
    let begin = ctx.query.text("after").parse::<usize>().unwrap_or_default();
    let page_versions: Vec<&Version> = versions.iter().skip(begin).take(ROWS).collect();
    let listed = listed(ctx, &row, package, &page_versions).await?;
    let next = (begin.saturating_add(ROWS) < versions.len()).then(|| (begin + ROWS).to_string());
    let before = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if let Some(newest) = versions.first() { @if !newest.summary.is_empty() { p.lead { (parts::short(&newest.summary)) } } }
    };
    let list = html! {
        h2 { "Versions " span.soft { (versions.len()) } }
        (parts::table("Versions", &["Version", "State", "Published", "Files", "Size"], &listed))
        (parts::next_page_link(&ctx.path, &[], next.as_deref()))
    };
    let after = html! {
        @if may_delete(ctx, &row) {
            div.card.danger {
                h2 { "Delete" }
                p { "Deletes the package " (parts::isolated(package)) " with " (parts::count(versions.len() as u64, "version", "versions")) "." }
                (parts::two_step_button(ctx, &ctx.path, &[("do", "delete")], "Delete", ""))
            }
        }
    };
    let content = if begin == 0 {
        let used = before.0.len() + list.0.len() + after.0.len();
        overview(ctx, &row, &versions, &list, ROOM.saturating_sub(used)).await?
    } else {
        list
    };
    let body = html! { (before) (content) (after) };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, crumbs: crumbs(&row, None), ..Sheet::of(package) }, &body))
}

/// Builds both columns: the README of the recommended version and the list of versions, and beside
/// them how to install this version.
async fn overview(
    ctx: &PageContext,
    row: &RepositoryRow,
    versions: &[Version],
    list: &Markup,
    room: usize,
) -> Result<Markup, ApiError> {
    let (id, package) = (row.id.to_string(), ctx.named("package"));
    let chart = activity_of(ctx, &id, package).await?;
    let newest = recommended(ctx, &id, versions).await;
    let side = html! {
        @if let Some(newest) = &newest {
            (install(&newest.install, &row.format))
            (about(newest, &html! { "Version " (parts::short(&newest.details.version.version)) }))
        }
        (chart)
    };
    let readme = match &newest {
        Some(newest) => readme(ctx, newest, room.saturating_sub(side.0.len())).await,
        None => Markup::default(),
    };
    Ok(html! {
        div.columns {
            div.side { (side) }
            div { (readme) (list) }
        }
    })
}

/// Returns the version that the page recommends: the newest without a state that warns of it, or
/// else the newest. `None` if it cannot be presented, for example while its format is switched off.
async fn recommended(ctx: &PageContext, id: &str, versions: &[Version]) -> Option<VersionPage> {
    let newest = versions.iter().find(|version| version.state.is_empty()).or(versions.first())?;
    packages::version(&ctx.actor, id, &newest.name, &newest.version).await.ok()
}

/// Draws the activity of a package on the last days.
pub(super) async fn activity_of(ctx: &PageContext, id: &str, package: &str) -> Result<Markup, ApiError> {
    let days = activity::of_package(&ctx.actor, id, package).await?;
    Ok(chart::activity_titled(&format!("All versions, last {} days", days.len()), &days))
}

/// Builds the rows of these versions, with the advisories about them and the policies that refuse
/// them.
async fn listed(
    ctx: &PageContext,
    row: &RepositoryRow,
    package: &str,
    versions: &[&Version],
) -> Result<Markup, ApiError> {
    let numbers: Vec<String> = versions.iter().map(|version| version.version.clone()).collect();
    let marks = advisories::of_versions(&ctx.actor, row, package, &numbers).await?;
    let ruled = policies::of_versions(&ctx.actor, row, package, &numbers).await?;
    Ok(html! {
        @for ((version, marks), ruled) in versions.iter().zip(&marks).zip(&ruled) { (one(row, package, version, marks, ruled)) }
    })
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

fn one(
    row: &RepositoryRow,
    package: &str,
    version: &Version,
    marks: &[Mark],
    ruled: &[RuledVersion],
) -> Markup {
    let bytes = version.files.iter().map(|file| file.size).fold(0, u64::saturating_add);
    html! {
        tr {
            th scope="row" { a href=(parts::version(&row.name, package, &version.version)) { (parts::isolated(&version.version)) } }
            td {
                @if !version.state.is_empty() { (parts::tag(&version.state)) " " }
                (blocked(ruled))
                @if let Some(worst) = marks.first() { " " (parts::tag(severity(worst))) }
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
