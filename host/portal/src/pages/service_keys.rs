//! `/service-keys`: tokens that belong to the organization or to a repository, not to a member.

use std::sync::Arc;

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::Action;
use packhouse_api::operations::tokens::{self, KeyKind, TokenFilter};
use packhouse_api::operations::{PageRequest, RowPage};
use packhouse_identity::permissions::Permission::ManageOwnerAccount;
use packhouse_store::TokenId;
use serde_json::{Map, Value, json};

use super::Routes;
use super::repositories::after;
use super::tokens::{ROWS, choices, common, made, one, rotate, rotation, token_body};
use crate::confirm::{self, ConfirmationPrompt};
use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::{PageContext, see_other};
use crate::visit;
use crate::{PageResult, fault, parts};

/// Default lifetime of a key in days; the maximum is 90.
const DAYS: i64 = 60;
/// Value in the form that stands for the organization.
const ORGANIZATION: &str = "org";

pub(super) fn routes() -> Routes {
    vec![("/service-keys", visit::page(show).merge(visit::form(act)))]
}

async fn show(ctx: Arc<PageContext>) -> PageResult {
    if let Some(id) = ctx.query.get("rotate") {
        return rotation(&ctx, "Rotate a service key", id, None).await;
    }
    if ctx.query.has("confirmed") && !ctx.form.0.is_empty() {
        return confirm::prompt_page(&ctx, &creation_prompt(&ctx.form), &ctx.form, None).await;
    }
    list(&ctx, None).await
}

async fn list(ctx: &PageContext, wrong: Option<&ApiError>) -> PageResult {
    let owner = ctx.holds(ManageOwnerAccount);
    let (of_organization, page) = (owner && ctx.query.text("of") != "repo", || after::<TokenId>(ctx));
    let kind = if of_organization { KeyKind::Organization } else { KeyKind::Repository };
    let page = PageRequest { limit: ROWS, after: page()? };
    let RowPage { rows, more } = tokens::list_newest(&ctx.actor, TokenFilter::Keys(kind), page).await?;
    let next = rows.last().filter(|_| more).map(|token| token.row.id.to_string());
    let choices = choices(ctx).await?;
    let here = if of_organization { ORGANIZATION } else { "repo" };
    let tab = |of: &str, name: &str| html! { li { a href={ "/service-keys?of=" (of) } aria-current=[(of == here).then_some("page")] { (name) } } };
    let body = html! {
        @if owner { nav.tabs aria-label="Service keys" { ul { (tab(ORGANIZATION, "Of the organization")) (tab("repo", "Of repositories")) } } }
        @if rows.is_empty() && wrong.is_none() {
            div.card.empty {
                h2 { "No service keys yet" }
                p { "A service key is a token for a machine. It keeps working when the member who created it leaves, and expires within 90 days." }
            }
        } @else {
            (parts::list_length(ctx, rows.len(), more, "service key", "service keys"))
            ul.rows { @for token in &rows { li { (one(ctx, "/service-keys", token, &choices)) } } }
        }
        (parts::next_page_link("/service-keys", &[("of", here)], next.as_deref()))
        (create_form(ctx, &choices, wrong))
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, ..Sheet::of("Service keys") }, &body))
}

fn create_form(ctx: &PageContext, choices: &[Choice], wrong: Option<&ApiError>) -> maud::Markup {
    let filled = Filled::new(&ctx.form, wrong);
    let organization = Choice { value: ORGANIZATION.to_owned(), label: "The organization".to_owned() };
    let repository = |choice: &Choice| Choice {
        value: choice.value.clone(),
        label: format!("The repository {}", choice.label),
    };
    let allowed = |choice: &&Choice| {
        let rights = choice.value.parse().map(|id| ctx.actor.permissions().rights(id, &choice.label));
        rights.is_ok_and(|rights| rights.write() || rights.manage)
    };
    let owner = ctx.holds(ManageOwnerAccount);
    let backings: Vec<Choice> = owner
        .then_some(organization)
        .into_iter()
        .chain(choices.iter().filter(|one| owner || allowed(one)).map(repository))
        .collect();
    let content = html! {
        (filled.select("Belongs to", "backing", &backings, ""))
        p.hint { "A key that belongs to a repository can access only that repository. Choose it below as well." }
        (common(ctx, &filled, choices, DAYS, "At most 90 days from now. The key works until the end of this day (UTC)."))
        button.go type="submit" { "Create service key" }
    };
    html! {
        form.card method="post" action="/service-keys" {
            h2 { "Create a service key" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "create"))
            (filled.with_error(content))
        }
    }
}

async fn act(ctx: Arc<PageContext>) -> PageResult {
    match ctx.form.text("do") {
        "revoke" => {
            tokens::revoke(&ctx.actor, ctx.form.text("id")).await?;
            Ok(see_other("/service-keys?done=revoked"))
        }
        "rotate" => rotate(&ctx, "Rotate a service key").await,
        _ if ctx.form.has("filter") => list(&ctx, None).await,
        _ => match made(&ctx, body(&ctx.form), creation_prompt(&ctx.form), "Service key created").await {
            Ok(answer) => Ok(answer),
            Err(error) => list(&ctx, Some(&visit::form_error(&ctx, error)?)).await,
        },
    }
}

fn creation_prompt(form: &Fields) -> ConfirmationPrompt<'static> {
    let what = html! { p { "The service key " strong { (parts::isolated(form.text("name"))) } " will be created after you confirm your identity." } };
    ConfirmationPrompt { action: Action::CreateToken, title: "Confirm the new service key", what }
}

/// Converts the form to the body of the API call.
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
