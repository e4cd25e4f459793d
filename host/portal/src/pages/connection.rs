//! `/repositories/{name}/connection`: Connection Settings, made from the templates of the
//! repository's format.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::connection::{self, ClientText, EMAIL, TOKEN};
use packhouse_runtime::Purpose;

use super::Routes;
use super::repository::{named, sheet, tabs};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, frame, parts};

pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/connection", visit::page(show))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    let row = named(&ctx).await?;
    let settings = connection::connection(&ctx.actor, &row.id.to_string()).await?;
    let email = ctx.actor.member().email.clone();
    let (publish, read): (Vec<&ClientText>, Vec<&ClientText>) =
        settings.clients.iter().partition(|client| client.purpose == Purpose::Publish);
    let address = html! { code id="address" { (settings.address) } };
    let token = format!("/tokens?repository={}", parts::segment(&row.name));
    let body = html! {
        (tabs(&ctx, &row, "/connection"))
        div.card {
            h2 { "Address" }
            (parts::copyable("address", &address, "Copy address"))
            p.hint { "Use the address exactly as shown." }
        }
        div.card {
            h2 { "Token" }
            p { "A client signs in with your e-mail address as the user name and a token as the password. Replace " code { (TOKEN) } " below with the token." }
            @if let Some(usernames) = &settings.checked_usernames {
                p {
                    "The format refuses a token with a user name that is not its owner's e-mail address"
                    @for name in usernames { " or " code { (name) } }
                    "."
                }
            }
            p { a.button.go href=(token) { "Create a token for this repository" } }
        }
        @if settings.clients.is_empty() {
            p { "No plugin of the format " strong { (row.format) } " is loaded, so client settings are not available." }
        }
        (section("Read", "read", &read, &email))
        (section("Publish", "publish", &publish, &email))
    };
    Ok(frame::page(&ctx, sheet(&row), &body))
}

fn section(heading: &str, purpose: &str, clients: &[&ClientText], email: &str) -> Markup {
    html! {
        @if !clients.is_empty() {
            section aria-labelledby=(purpose) {
                h2 id=(purpose) { (heading) }
                @for (number, client) in clients.iter().enumerate() { (one(&format!("{purpose}-{number}"), client, email)) }
            }
        }
    }
}

fn one(id: &str, client: &ClientText, email: &str) -> Markup {
    html! {
        div.card {
            h3 { (client.client) }
            @match &client.file {
                Some(file) => p.meta { "In the file " code { (file) } },
                None => p.meta { "In a terminal" },
            }
            pre tabindex="0" role="region" aria-label={ (client.client) ", settings" } { code id=(id) data-language=(client.language) { (client.text.replace(EMAIL, email)) } }
            (parts::copyable(id, &Markup::default(), &format!("Copy settings for {}", client.client)))
        }
    }
}
