//! `/npm-login/{id}`: the page that a client opens to sign in. It shows the rights of the token
//! that the client will get, and asks for a fresh confirmation.

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
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, confirm, fault, parts};

/// Token lifetimes to choose from, in days. The first is the default.
const DAYS: [i64; 4] = [90, 7, 30, 365];
/// Path prefix before the id of the sign-in.
const PATH: &str = "/npm-login/";

pub(super) fn routes() -> Routes {
    vec![("/npm-login/{id}", visit::page(show).merge(visit::form(finish)))]
}

/// Returns the organization of the client sign-in at this path. A member of several organizations
/// signs in to this organization.
pub(super) async fn organization(origin: &Origin, path: &str) -> Result<Option<OrganizationId>, ApiError> {
    let Some(id) = path.strip_prefix(PATH) else { return Ok(None) };
    Ok(open(origin, id).await?.map(|login| login.organization))
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let offer = match logins::offer(&ctx.actor, ctx.named("id")).await {
        Ok(offer) if offer.is_finished() => {
            return failed(ctx, &ApiError::from(&catalogue::ALREADY_FINISHED));
        }
        Ok(offer) => offer,
        Err(error) => return failed(ctx, &error),
    };
    let section = confirm::section(ctx, Action::FinishNpmLogin, &ctx.path, wrong).await?;
    let may = if offer.scope.write { "read, publish and delete packages" } else { "read packages" };
    let days: Vec<Choice> =
        DAYS.iter().map(|days| Choice { value: days.to_string(), label: format!("{days} days") }).collect();
    let filled = Filled::new(&ctx.form, wrong.filter(|wrong| !confirm::is_about_confirmation(wrong)));
    let body = html! {
        p { "A package client asks for a token. If you have not just started a sign-in, close this page." }
        form.card method="post" action=(ctx.path) {
            dl {
                dt { "Repository" } dd { (offer.repository.name) }
                dt { "The token may" } dd { (may) }
                dt { "It acts on behalf of" } dd { (parts::isolated(&ctx.actor.member().email)) }
            }
            br;
            (parts::form_tokens(ctx))
            (filled.with_error(html! { (filled.select("The token works for", "days", &days, "")) (section.markup) }))
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, issuer: section.issuer, ..Sheet::of("Confirm the sign-in") }, &body))
}

async fn finish(ctx: Arc<PageContext>) -> PageResult {
    let days = ctx.form.text("days").parse::<i64>().ok().filter(|days| DAYS.contains(days));
    let done = async {
        let days = days.ok_or_else(|| ApiError::invalid("Choose how long the token works."))?;
        let confirmation = confirm::take(&ctx, Action::FinishNpmLogin).await?;
        let expires_at = Some(ctx.actor.now + days * DAY_MS);
        logins::finish(&ctx.actor, &confirmation, ctx.named("id"), expires_at).await
    };
    match done.await {
        Ok(_) => {
            let body = html! { p role="status" { "The client is signed in. You can close this page and return to the client." } };
            confirm::finish(&ctx, frame::page(&ctx, Sheet::of("Signed in"), &body))
        }
        Err(error) => match visit::form_error(&ctx, error) {
            Ok(wrong) => page(&ctx, Some(&wrong)).await,
            Err(error) => failed(&ctx, &error),
        },
    }
}

/// Builds the page for a sign-in that cannot be completed.
fn failed(ctx: &PageContext, error: &ApiError) -> PageResult {
    let more = match fault::status(error).as_u16() {
        404 => "This sign-in is unknown or was started more than five minutes ago. Start it again.",
        409 => "You can close this page and return to the client.",
        _ => return Ok(fault::error_page(ctx, error)),
    };
    let body = html! { (parts::alert(error.message())) p { (more) } };
    Ok(frame::page(ctx, Sheet { status: fault::status(error), ..Sheet::of("Sign-in") }, &body))
}
