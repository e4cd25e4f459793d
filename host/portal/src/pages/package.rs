//! `/repositories/{name}/packages/{package}`: the versions of a package.

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
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, chart, dates, fault, parts};

/// Versions of a page.
const ROWS: usize = 60;

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/packages/{package}", visit::page(show).merge(visit::form(delete)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<&packhouse_api::error::ApiError>) -> Answer {
    let row = named(seat).await?;
    let package = seat.named("package");
    let versions = packages::versions(&seat.actor, &row.id.to_string(), package).await?;
    let begin = seat.query.text("after").parse::<usize>().unwrap_or_default();
    let next = (begin.saturating_add(ROWS) < versions.len()).then(|| (begin + ROWS).to_string());
    let shown: Vec<&Version> = versions.iter().skip(begin).take(ROWS).collect();
    let days = activity::of_package(&seat.actor, &row.id.to_string(), package).await?;
    let numbers: Vec<String> = shown.iter().map(|version| version.version.clone()).collect();
    let marks = advisories::of_versions(&seat.actor, &row, package, &numbers).await?;
    let rows =
        html! { @for (version, marks) in shown.iter().zip(&marks) { (one(&row, package, version, marks)) } };
    let body = html! {
        @if let Some(wrong) = wrong { (parts::alert(wrong.message())) }
        @if let Some(newest) = versions.first() { @if !newest.summary.is_empty() { p { (parts::said(&newest.summary)) } } }
        (parts::table("Versions", &["Version", "State", "Published", "Files", "Size"], &rows))
        (parts::further(&seat.path, &[], next.as_deref()))
        @if begin == 0 { (chart::activity(&days)) }
        @if may_delete(seat, &row) {
            div.card.danger {
                h2 { "Delete" }
                p { "The package " (parts::said(package)) " with " (parts::count(versions.len() as u64, "version", "versions")) "." }
                (parts::deed_in_two_steps(seat, &seat.path, &[("do", "delete")], "Delete", ""))
            }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, crumbs: crumbs(&row, None), ..Sheet::of(package) }, &body))
}

/// Where a package or a version stands.
pub(super) fn crumbs(row: &RepositoryRow, package: Option<&str>) -> Markup {
    html! {
        p.crumbs {
            a href="/repositories" { "Repositories" } " / " a href=(parts::repository(&row.name)) { (row.name) }
            @if let Some(package) = package { " / " a href=(parts::package(&row.name, package)) { (parts::said(package)) } }
        }
    }
}

/// What the member holds in a hosted repository whose format lets people change what is there: for what is shown of the way, never for
/// what may be done.
pub(super) fn rights(seat: &Seat, row: &RepositoryRow) -> Rights {
    let plugin = seat.actor.app.runtime.plugin_of(row.id, &row.format);
    if row.kind == "hosted" && plugin.is_some_and(|plugin| plugin.has_upkeep()) {
        seat.actor.permissions().rights(row.id)
    } else {
        Rights::default()
    }
}

fn may_delete(seat: &Seat, row: &RepositoryRow) -> bool {
    rights(seat, row).delete
}

fn one(row: &RepositoryRow, package: &str, version: &Version, marks: &[Mark]) -> Markup {
    let bytes = version.files.iter().map(|file| file.size).fold(0, u64::saturating_add);
    html! {
        tr {
            th scope="row" { a href=(parts::version(&row.name, package, &version.version)) { (parts::said(&version.version)) } }
            td {
                @if !version.state.is_empty() { (parts::tag(&version.state)) " " }
                @if let Some(worst) = marks.first() { (parts::tag(if worst.malware { "malware" } else { worst.severity.as_str() })) }
            }
            td.tight { @if let Some(at) = version.published { (dates::moment(at)) } }
            td.num { (version.files.len()) }
            td.num { (parts::size(bytes)) }
        }
    }
}

async fn delete(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let deleted = upkeep::delete_package(&seat.actor, &row.id.to_string(), seat.named("package")).await;
    match deleted {
        Ok(Deleted::Whole) => Ok(see_other(&format!("{}?done=deleted", parts::repository(&row.name)))),
        Ok(Deleted::Begun { .. }) => {
            Ok(see_other(&format!("{}?done=deleting", parts::repository(&row.name))))
        }
        Err(error) => page(&seat, Some(&visit::wrong(&seat, error)?)).await,
    }
}
