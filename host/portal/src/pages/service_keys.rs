//! `/service-keys`: tokens that belong to the organization or to a repository, and not to a member.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::tokens::{self, KeyKind, TokenFilter};
use packhouse_api::operations::{Listed, PageRequest};
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::TokenId;
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::after;
use super::tokens::{ROWS, choices, common, made, one, rotate, rotation, token_body};
use crate::confirm::{self, Deed};
use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::{Seat, see_other};
use crate::visit;
use crate::{Answer, fault, parts};

/// For how many days a key works where nothing else is said; 90 at most.
const DAYS: i64 = 60;
/// What the form calls the organization.
const ORGANIZATION: &str = "org";

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/service-keys", visit::page(show).merge(visit::form(act)))]
}

async fn show(seat: Arc<Seat>) -> Answer {
    if let Some(id) = seat.query.get("rotate") {
        return rotation(&seat, "Rotate a service key", id, None).await;
    }
    if seat.query.has("confirmed") && !seat.form.0.is_empty() {
        return confirm::ask(&seat, &creating(&seat.form), &seat.form, None).await;
    }
    list(&seat, None).await
}

async fn list(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let owner = seat.holds(ManageOwnerAccount);
    let (of_organization, page) = (owner && seat.query.text("of") != "repo", || after::<TokenId>(seat));
    let kind = if of_organization { KeyKind::Organization } else { KeyKind::Repository };
    let page = PageRequest { limit: ROWS, after: page()? };
    let Listed { rows, more } = tokens::list(&seat.actor, TokenFilter::Keys(kind), page).await?;
    let next = rows.last().filter(|_| more).map(|token| token.row.id.to_string());
    let choices = choices(seat).await?;
    let here = if of_organization { ORGANIZATION } else { "repo" };
    let tab = |of: &str, name: &str| html! { li { a href={ "/service-keys?of=" (of) } aria-current=[(of == here).then_some("page")] { (name) } } };
    let body = html! {
        @if owner { nav.tabs aria-label="Service keys" { ul { (tab(ORGANIZATION, "Of the organization")) (tab("repo", "Of repositories")) } } }
        @if rows.is_empty() && wrong.is_none() {
            div.card.empty {
                h2 { "No service keys here" }
                p { "A service key is a token for a machine. It keeps working when the member who made it leaves, and expires within 90 days." }
            }
        } @else {
            ul.rows { @for token in &rows { li { (one(seat, "/service-keys", token, &choices)) } } }
        }
        (parts::further("/service-keys", &[("of", here)], next.as_deref()))
        (create_form(seat, &choices, wrong))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, ..Sheet::of("Service keys") }, &body))
}

fn create_form(seat: &Seat, choices: &[Choice], wrong: Option<&ApiError>) -> maud::Markup {
    let filled = Filled::new(&seat.form, wrong);
    let organization = Choice { value: ORGANIZATION.to_owned(), label: "The organization".to_owned() };
    let repository = |choice: &Choice| Choice {
        value: choice.value.clone(),
        label: format!("The repository {}", choice.label),
    };
    let writes =
        |choice: &&Choice| choice.value.parse().is_ok_and(|id| seat.actor.permissions().rights(id).write());
    let owner = seat.holds(ManageOwnerAccount);
    let backings: Vec<Choice> = owner
        .then_some(organization)
        .into_iter()
        .chain(choices.iter().filter(|one| owner || writes(one)).map(repository))
        .collect();
    let content = html! {
        (filled.select("Belongs to", "backing", &backings, ""))
        p.hint { "A key of a repository reaches that repository alone: choose it below as well." }
        (common(seat, &filled, choices, DAYS, "Within 90 days. It works to the end of this day, UTC."))
        button.go type="submit" { "Create service key" }
    };
    html! {
        form.card method="post" action="/service-keys" {
            h2 { "Create a service key" }
            (parts::guard(seat))
            (parts::hidden("do", "create"))
            (filled.told(content))
        }
    }
}

async fn act(seat: Arc<Seat>) -> Answer {
    match seat.form.text("do") {
        "revoke" => {
            tokens::revoke(&seat.actor, seat.form.text("id")).await?;
            Ok(see_other("/service-keys?done=revoked"))
        }
        "rotate" => rotate(&seat, "Rotate a service key").await,
        _ if seat.form.has("filter") => list(&seat, None).await,
        _ => match made(&seat, body(&seat.form), creating(&seat.form), "Service key created").await {
            Ok(answer) => Ok(answer),
            Err(error) => list(&seat, Some(&visit::wrong(&seat, error)?)).await,
        },
    }
}

fn creating(form: &Fields) -> Deed<'static> {
    let what = html! { p { "The service key " strong { (parts::said(form.text("name"))) } " is created once you have confirmed that it is you." } };
    Deed { action: Action::CreateToken, title: "Confirm the new service key", what }
}

/// What the form says, as the body of the call.
fn body(form: &Fields) -> Map<String, Value> {
    let mut body = token_body(form);
    body.insert("format".to_owned(), packhouse_identity::access::GENERIC.into());
    let backing = match form.text("backing") {
        ORGANIZATION => json!({"kind": "org"}),
        id => json!({"kind": "repo", "id": id}),
    };
    body.insert("backing".to_owned(), backing);
    body
}
