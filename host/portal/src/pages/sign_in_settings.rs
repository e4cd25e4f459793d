//! `/settings/sign-in`: how members sign in. Sign-in by a provider, the second factor, and the
//! directory that manages members and teams.

use std::sync::Arc;

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::organization;
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use serde_json::json;

use super::{Routes, permissions, sso};
use crate::confirm::{self, ConfirmedOutcome};
use crate::field::Filled;
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

const PATH: &str = "/settings/sign-in";

pub(super) fn routes() -> Routes {
    vec![(PATH, visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if confirm::returned_from_provider(&ctx) {
        return confirm::prompt_page(&ctx, &sso::prompt(), &ctx.form, None).await;
    }
    page(&ctx, None).await
}

async fn page(ctx: &PageContext, wrong: Option<(&str, &ApiError)>) -> PageResult {
    ctx.actor.needs(ManageOwnerAccount)?;
    let of = |form: &str| wrong.filter(|(about, _)| *about == form).map(|(_, wrong)| wrong);
    let body = html! {
        (sso::section(ctx, of("sso")).await?)
        (second_factor_form(ctx, of("factor")).await?)
        div.card {
            h2 { "Directory (SCIM)" }
            p { "A directory such as Entra ID or Okta can create, suspend and delete members, and fill teams. Give it this address and an API token with the scope SCIM, of a service account that manages members:" }
            p { code { (ctx.actor.api_url()) "/scim/v2" } }
            p { a href="/service-accounts" { "Service accounts" } " · " a href="/api-tokens" { "API tokens" } " · " a href="/teams" { "Teams" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, |(_, wrong)| fault::status(wrong));
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Sign-in settings") }, &body))
}

async fn second_factor_form(ctx: &PageContext, wrong: Option<&ApiError>) -> Result<Markup, ApiError> {
    let required = organization::show(&ctx.actor).await?.row.require_second_factor;
    let none = Fields::default();
    let filled = Filled::new(if ctx.form.text("do") == "factor" { &ctx.form } else { &none }, wrong);
    let fields = html! {
        (filled.check("Require a second factor", "require_second_factor", required))
        p.hint { "Members who sign in with a password then need a code of an authenticator app. Those without one can only set one up. Sign-in through the provider needs no code here." }
        button.go type="submit" { "Save" }
    };
    Ok(html! {
        form.card method="post" action=(PATH) {
            h2 { "Second factor" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "factor"))
            (parts::hidden("sent", "yes"))
            (filled.with_error(fields))
        }
    })
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    let action = ctx.form.text("do");
    let done = match action {
        "sso" if permissions::is_incomplete(&ctx.form) => return page(&ctx, None).await,
        "sso" | "no-sso" => sso::act(&ctx, action).await,
        _ => require_second_factor(&ctx).await.map(ConfirmedOutcome::Done),
    };
    match done {
        Ok(ConfirmedOutcome::Done(())) => confirm::finish(&ctx, see_other(&format!("{PATH}?done=saved"))),
        Ok(ConfirmedOutcome::Prompt(page)) => Ok(page),
        Err(error) => {
            let wrong = visit::form_error(&ctx, error)?;
            let form = if matches!(action, "sso" | "no-sso") { "sso" } else { "factor" };
            page(&ctx, Some((form, &wrong))).await
        }
    }
}

async fn require_second_factor(ctx: &PageContext) -> Result<(), ApiError> {
    let required = ctx.form.has("require_second_factor");
    let change = forms::organization_change(json!({"require_second_factor": required}))?;
    organization::change(&ctx.actor, change).await.map(drop)
}
