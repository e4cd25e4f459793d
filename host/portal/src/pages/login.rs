//! `/npm-login/{id}`: the page that a client's sign-in opens. It says what will be granted, and asks for a fresh confirmation.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::Origin;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::logins::{self, open};
use packhouse_store::OrganizationId;
use packhouse_wire::catalogue;

use super::Routes;
use crate::dates::DAY_MS;
use crate::field::{Choice, Filled};
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::visit;
use crate::{Answer, confirm, fault, parts};

/// Lives of a token that are offered, in days; the first is chosen where nothing is said.
const DAYS: [i64; 4] = [90, 7, 30, 365];
/// The path, up to what names the sign-in.
const PATH: &str = "/npm-login/";

/// What this file answers.
pub(super) fn routes() -> Routes {
    vec![("/npm-login/{id}", visit::page(show).merge(visit::form(finish)))]
}

/// The organization of the sign-in that this path is the page of: who has an account in several signs in to that one.
pub(super) async fn organization(origin: &Origin, path: &str) -> Result<Option<OrganizationId>, ApiError> {
    let Some(id) = path.strip_prefix(PATH) else { return Ok(None) };
    Ok(open(origin, id).await?.map(|login| login.organization))
}

async fn show(seat: Arc<Seat>) -> Answer {
    page(&seat, None).await
}

async fn page(seat: &Seat, wrong: Option<&ApiError>) -> Answer {
    let offer = match logins::offer(&seat.actor, seat.named("id")).await {
        Ok(offer) if offer.is_finished() => {
            return failed(seat, &ApiError::from(&catalogue::ALREADY_FINISHED));
        }
        Ok(offer) => offer,
        Err(error) => return failed(seat, &error),
    };
    let section = confirm::section(seat, Action::FinishNpmLogin, &seat.path, wrong).await?;
    let may = if offer.scope.write { "read, publish and delete packages" } else { "read packages" };
    let days: Vec<Choice> =
        DAYS.iter().map(|days| Choice { value: days.to_string(), label: format!("{days} days") }).collect();
    let filled = Filled::new(&seat.form, wrong.filter(|wrong| !confirm::is_about(wrong)));
    let body = html! {
        p { "A package client asks for a token. If you have not just started a sign-in, close this page." }
        form.card method="post" action=(seat.path) {
            dl {
                dt { "Repository" } dd { (offer.repository.name) }
                dt { "The token may" } dd { (may) }
                dt { "It acts for" } dd { (parts::said(&seat.actor.member().email)) }
            }
            br;
            (parts::guard(seat))
            (filled.told(html! { (filled.select("The token works for", "days", &days, "")) (section.markup) }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(seat, Sheet { status, issuer: section.issuer, ..Sheet::of("Confirm the sign-in") }, &body))
}

async fn finish(seat: Arc<Seat>) -> Answer {
    let days = seat.form.text("days").parse::<i64>().ok().filter(|days| DAYS.contains(days));
    let done = async {
        let days = days.ok_or_else(|| ApiError::invalid("Choose for how long the token is to work."))?;
        let confirmation = confirm::take(&seat, Action::FinishNpmLogin).await?;
        let expires_at = Some(seat.actor.now + days * DAY_MS);
        logins::finish(&seat.actor, &confirmation, seat.named("id"), expires_at).await
    };
    match done.await {
        Ok(_) => {
            let body = html! { p role="status" { "The client is signed in. You can close this page and go back to it." } };
            confirm::spent(&seat, frame::page(&seat, Sheet::of("Signed in"), &body))
        }
        Err(error) => match visit::wrong(&seat, error) {
            Ok(wrong) => page(&seat, Some(&wrong)).await,
            Err(error) => failed(&seat, &error),
        },
    }
}

/// What the page says that cannot show its form.
fn failed(seat: &Seat, error: &ApiError) -> Answer {
    let more = match fault::status(error).as_u16() {
        404 => "This sign-in is unknown, or it was begun more than five minutes ago. Start it again.",
        409 => "You can close this page and go back to the client.",
        _ => return Ok(fault::at(seat, error)),
    };
    let body = html! { (parts::alert(error.message())) p { (more) } };
    Ok(frame::page(seat, Sheet { status: fault::status(error), ..Sheet::of("Sign-in") }, &body))
}
