//! `/search`: across all that the member may read.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::advisories::Mark;
use packhouse_api::operations::search::{self, Found, SearchRequest};
use packhouse_store::FoundPackage;

use super::Routes;
use super::repositories::ROWS;
use super::repository::search_form;
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, dates, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/search", visit::page(show))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    let words = seat.query.text("q");
    let Found { packages, next } = match words {
        "" => Found { packages: Vec::new(), next: None },
        words => {
            let after = seat.query.get("after").map(str::to_owned);
            let wanted =
                SearchRequest { text: words.to_owned(), after, limit: ROWS, ..SearchRequest::default() };
            search::packages(&seat.actor, wanted).await?
        }
    };
    let worst = search::worst(&seat.actor, &packages).await?;
    let body = html! {
        (search_form("/search", words))
        @if words.is_empty() {
            p.soft { "Packages of all repositories that you may read, by words in their names and summaries." }
        } @else if packages.is_empty() {
            p { "No package matches " (parts::said(words)) ". Every word must stand in its name or its summary." }
        } @else {
            ul.rows { @for (found, worst) in packages.iter().zip(&worst) { li { (one(found, worst.as_ref())) } } }
        }
        (parts::further("/search", &[("q", words)], next.as_deref()))
    };
    Ok(frame::page(&seat, Sheet::of("Search"), &body))
}

fn one(found: &FoundPackage, worst: Option<&Mark>) -> Markup {
    html! {
        div.what {
            a href=(parts::package(&found.repository_name, &found.place.name)) { (parts::said(&found.place.name)) }
            @if !found.state.is_empty() { " " (parts::tag(&found.state)) }
            @if let Some(mark) = worst { " " (parts::tag(if mark.malware { "malware" } else { mark.severity.as_str() })) " " (parts::short(&mark.id)) }
            @if !found.summary.is_empty() { p { (parts::said(&found.summary)) } }
            p.meta {
                span { "in " a href=(parts::repository(&found.repository_name)) { (found.repository_name) } }
                span { (found.format) }
                @if let Some(latest) = &found.latest { span { (parts::said(latest)) } }
                @if let Some(at) = found.updated_at { span { (dates::moment(at)) } }
            }
        }
    }
}
