//! `/search`: packages in all repositories that the member may read.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::advisories::Mark;
use packhouse_api::operations::search::{self, SearchPage, SearchRequest};
use packhouse_store::FoundPackage;

use super::Routes;
use super::repositories::ROWS;
use super::repository::search_form;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, dates, parts};

pub(super) fn routes() -> Routes {
    vec![("/search", visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let words = ctx.query.text("q");
    let SearchPage { packages, next } = match words {
        "" => SearchPage { packages: Vec::new(), next: None },
        words => {
            let after = ctx.query.get("after").map(str::to_owned);
            let request =
                SearchRequest { text: words.to_owned(), after, limit: ROWS, ..SearchRequest::default() };
            search::packages(&ctx.actor, request).await?
        }
    };
    let worst = search::worst(&ctx.actor, &packages).await?;
    let body = html! {
        (search_form("/search", words))
        @if words.is_empty() {
            p.soft { "Searches the names and summaries of packages in all repositories that you may read." }
        } @else if packages.is_empty() {
            p { "No package matches " (parts::isolated(words)) ". Every word must occur in the name or the summary." }
        } @else {
            ul.rows { @for (found, worst) in packages.iter().zip(&worst) { li { (one(found, worst.as_ref())) } } }
        }
        (parts::next_page_link("/search", &[("q", words)], next.as_deref()))
    };
    Ok(frame::page(&ctx, Sheet::of("Search"), &body))
}

fn one(found: &FoundPackage, worst: Option<&Mark>) -> Markup {
    html! {
        div.what {
            a href=(parts::package(&found.repository_name, &found.place.name)) { (parts::isolated(&found.place.name)) }
            @if !found.state.is_empty() { " " (parts::tag(&found.state)) }
            @if let Some(mark) = worst { " " (parts::tag(if mark.malware { "malware" } else { mark.severity.as_str() })) " " (parts::short(&mark.id)) }
            @if !found.summary.is_empty() { p { (parts::isolated(&found.summary)) } }
            p.meta {
                span { "in " a href=(parts::repository(&found.repository_name)) { (found.repository_name) } }
                (parts::tag(&found.format))
                @if let Some(latest) = &found.latest { span { (parts::isolated(latest)) } }
                @if let Some(at) = found.updated_at { span { (dates::unsigned_time(at)) } }
            }
        }
    }
}
