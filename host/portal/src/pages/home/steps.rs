//! The four steps from an empty organization to its first package.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::tokens::{self, TokenFilter};
use packhouse_api::operations::{PageRequest, repositories};
use packhouse_store::{RankedRepository, RepositoryTotals};

use crate::page_context::PageContext;
use crate::parts;

/// Builds the steps, each with its state. The address is that of the member's repository, if there
/// is one already.
pub(super) async fn section(
    ctx: &PageContext,
    totals: &RepositoryTotals,
    own: &[RankedRepository],
) -> Result<Markup, ApiError> {
    let base_url = repositories::base_url(&ctx.actor).await?;
    let page = PageRequest { limit: 1, after: None };
    let has_token = !tokens::list(&ctx.actor, TokenFilter::Own, page).await?.rows.is_empty();
    let repository = own.iter().find(|one| one.kind == "hosted").or(own.first()).map(|one| one.name.as_str());
    let address = format!("{base_url}/repositories/{}/", repository.unwrap_or("NAME"));
    let token = match repository {
        Some(name) => format!("/tokens?repository={}", parts::segment(name)),
        None => "/tokens".to_owned(),
    };
    let address = html! { code id="home-address" { (address) } };
    Ok(html! {
        section.card aria-labelledby="home-steps" {
            h2 id="home-steps" { "Four steps to the first package" }
            ol.steps {
                li {
                    a href="/repositories/new" { "Create a repository" } (done(totals.repositories > 0))
                    " It contains packages of one format."
                }
                li {
                    a href=(token) { "Create a token" } (done(has_token))
                    " It is the password of your package client. Allow it to read and write."
                }
                li {
                    @match repository {
                        Some(name) => { a href={ (parts::repository(name)) "/connection" } { "Configure a client" } ". The page has the text for each client. The address is:" }
                        None => { "Configure a client. The address will be as follows, with the name of the repository:" }
                    }
                    (parts::copyable("home-address", &address, "Copy the address"))
                }
                li { "Publish a package with your usual command. It then appears on this page." }
            }
        }
    })
}

fn done(is_done: bool) -> Markup {
    html! { @if is_done { " " (parts::tag("done")) } "." }
}
