//! The page that rotates an API token, with its confirmation.

use maud::html;
use packhouse_api::error::ApiError;
use packhouse_api::forms;
use packhouse_api::operations::api_tokens;
use packhouse_api::operations::confirmations::Action;

use super::super::tokens::rotation_body;
use super::{PATH, created};
use crate::confirm;
use crate::field::{Filled, Text};
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::visit;
use crate::{PageResult, fault, parts};

/// Builds the page. `id` is the id of the token.
pub(super) async fn page(ctx: &PageContext, id: &str, wrong: Option<&ApiError>) -> PageResult {
    let back = format!("{PATH}?rotate={}", parts::segment(id));
    let section = confirm::section(ctx, Action::RotateToken, &back, wrong).await?;
    let filled = Filled::new(&ctx.form, wrong.filter(|wrong| !confirm::is_about_confirmation(wrong)));
    let overlap = Text {
        label: "Overlap (hours)",
        name: "overlap_hours",
        kind: "number",
        hint: "How long the old one keeps working, 0 to 168 hours.",
        first: "24",
        ..Text::default()
    };
    let content = html! {
        p { "A new token with the same owner and scopes replaces it. The old one keeps working for the overlap." }
        (filled.required_expiry(ctx.actor.now, None, "If empty, the new one expires when the old one does."))
        (filled.text(overlap))
        (section.markup)
    };
    let body = html! {
        form.card method="post" action=(PATH) {
            (parts::form_tokens(ctx))
            (parts::hidden("do", "rotate"))
            (parts::hidden("id", id))
            (filled.with_error(content))
            p { a href=(PATH) { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    Ok(frame::page(ctx, Sheet { status, issuer: section.issuer, ..Sheet::of("Rotate an API token") }, &body))
}

/// Handles the form of the page.
pub(super) async fn act(ctx: &PageContext) -> PageResult {
    let id = ctx.form.text("id");
    let done = async {
        let request = forms::rotation(rotation_body(&ctx.form), ctx.actor.now)?;
        let confirmation = confirm::take(ctx, Action::RotateToken).await?;
        api_tokens::rotate(&ctx.actor, &confirmation, id, request).await
    };
    match done.await {
        Ok(made) => created(ctx, "Rotated", &made),
        Err(error) => page(ctx, id, Some(&visit::form_error(ctx, error)?)).await,
    }
}
