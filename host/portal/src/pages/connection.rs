//! `/repositories/{name}/connection`: Connection Settings, from the templates of the repository's format.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::operations::connection::{self, ClientText, EMAIL, TOKEN};
use packhouse_runtime::Purpose;

use super::Routes;
use super::repository::{named, sheet, tabs};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, frame, parts};

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/repositories/{name}/connection", visit::page(show))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    let row = named(&seat).await?;
    let told = connection::connection(&seat.actor, &row.id.to_string()).await?;
    let email = seat.actor.member().email.clone();
    let (publish, read): (Vec<&ClientText>, Vec<&ClientText>) =
        told.clients.iter().partition(|client| client.purpose == Purpose::Publish);
    let address = html! { code id="address" { (told.address) } };
    let token = format!("/tokens?repository={}", parts::segment(&row.name));
    let body = html! {
        (tabs(&seat, &row, "/connection"))
        div.card {
            h2 { "Address" }
            (parts::copied("address", &address, "Copy the address"))
            p.hint { "Use it exactly as it stands here." }
        }
        div.card {
            h2 { "Token" }
            p { "A client signs in with your e-mail address and a token as its password. Put the token where " code { (TOKEN) } " stands below." }
            @if let Some(usernames) = &told.checked_usernames {
                p {
                    "The format refuses a token with a user name that is not its owner's e-mail address"
                    @for name in usernames { " or " code { (name) } }
                    "."
                }
            }
            p { a.button.go href=(token) { "Make a token for this repository" } }
        }
        @if told.clients.is_empty() {
            p { "No plugin of the format " strong { (row.format) } " is loaded here, so nothing is known of its clients." }
        }
        (section("Read", "read", &read, &email))
        (section("Publish", "publish", &publish, &email))
    };
    Ok(frame::page(&seat, sheet(&row), &body))
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
                Some(file) => p.meta { "In " code { (file) } },
                None => p.meta { "In a terminal" },
            }
            pre tabindex="0" role="region" aria-label={ (client.client) ", settings" } { code id=(id) data-language=(client.language) { (client.text.replace(EMAIL, email)) } }
            (parts::copied(id, &Markup::default(), &format!("Copy the settings of {}", client.client)))
        }
    }
}
