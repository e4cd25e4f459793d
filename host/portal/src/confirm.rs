//! Fresh confirmation for one sensitive action: the member's password with the code of the second
//! factor, if there is one, or a new sign-in by the organization's provider. The portal keeps the
//! fields of the form until then.
//!
//! A form that needs a confirmation either contains the field `Password` and the button `Confirm`
//! ([`section`]), or leads to a page that contains them ([`check`]). The provider redirects back to
//! the same page, with `confirmed` in the query string and the confirmation in a cookie. The cookie
//! alone has no effect: the member must also submit a form with the session's CSRF token.

use axum::response::Response;
use http::header::SET_COOKIE;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::{self, Action, Confirmation};
use packhouse_api::operations::second_factor::{self, SecondFactorState};
use packhouse_api::operations::sso;
use packhouse_api::portal;
use packhouse_identity::Secret;
use url::Url;

use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::page_context::PageContext;
use crate::{PageResult, draft, fault, parts};

/// Field for the code of a second factor.
pub(crate) const CODE: Text<'static> = Text {
    label: "Code",
    name: "code",
    kind: "",
    hint: "The code of your authenticator app, or a recovery code.",
    autocomplete: "one-time-code",
    required: true,
    first: "",
};

/// Returns the code of a second factor in a form; `None` if it is empty.
pub(crate) fn code(fields: &Fields) -> Option<Secret> {
    Some(fields.text("code")).filter(|code| !code.is_empty()).map(Secret::new)
}

/// Result of looking for a confirmation in a form.
pub(crate) enum ConfirmationCheck {
    /// The form carries a valid confirmation.
    Given(Confirmation),
    /// The page that asks for the confirmation.
    Prompt(Response),
}

/// Request to confirm an action.
pub(crate) struct ConfirmationPrompt<'a> {
    pub(crate) action: Action,
    pub(crate) title: &'a str,
    /// Description of the action for the member.
    pub(crate) what: Markup,
}

/// Part of a page that asks for a confirmation.
pub(crate) struct Section {
    /// Password field with button, or a link to the provider.
    pub(crate) markup: Markup,
    /// Origin of the provider, for the page's Content-Security-Policy.
    pub(crate) issuer: Option<String>,
}

/// Returns the confirmation that the form carries, or a page that asks for one and contains the
/// form's fields.
pub(crate) async fn check(
    ctx: &PageContext,
    prompt: ConfirmationPrompt<'_>,
) -> Result<ConfirmationCheck, ApiError> {
    if !ctx.form.has("confirm") {
        return Ok(ConfirmationCheck::Prompt(prompt_page(ctx, &prompt, &ctx.form, None).await?));
    }
    match take(ctx, prompt.action).await {
        Ok(confirmation) => Ok(ConfirmationCheck::Given(confirmation)),
        Err(wrong) => {
            crate::visit::count(ctx, &wrong);
            Ok(ConfirmationCheck::Prompt(prompt_page(ctx, &prompt, &ctx.form, Some(&wrong)).await?))
        }
    }
}

/// Returns the confirmation of a form that contains a [`section`]: the one that the provider has
/// just given, or one by the password in the form.
pub(crate) async fn take(ctx: &PageContext, action: Action) -> Result<Confirmation, ApiError> {
    let given = portal::confirmation(&ctx.portal.app, &ctx.headers).filter(|_| !ctx.form.has("password"));
    match given {
        Some(token) => Ok(Confirmation::Token(token)),
        None => {
            let password = Secret::new(ctx.form.get("password").unwrap_or_default());
            let code = code(&ctx.form);
            let confirmed = confirmations::confirm_by_password(&ctx.actor, action, password, code).await?;
            Ok(Confirmation::Token(confirmed.token))
        }
    }
}

/// Result of an action that needs a confirmation.
pub(crate) enum ConfirmedOutcome<T> {
    /// The action was confirmed and done.
    Done(T),
    /// The page that asks for the confirmation; the action was not done.
    Prompt(Response),
}

/// Runs `act` if the form carries a confirmation. Otherwise returns the page that asks for one.
pub(crate) async fn run<T>(
    ctx: &PageContext,
    prompt: ConfirmationPrompt<'_>,
    act: impl AsyncFnOnce(&Confirmation) -> Result<T, ApiError>,
) -> Result<ConfirmedOutcome<T>, ApiError> {
    let confirmation = match check(ctx, ConfirmationPrompt { what: prompt.what.clone(), ..prompt }).await? {
        ConfirmationCheck::Prompt(page) => return Ok(ConfirmedOutcome::Prompt(page)),
        ConfirmationCheck::Given(confirmation) => confirmation,
    };
    match act(&confirmation).await {
        Ok(done) => Ok(ConfirmedOutcome::Done(done)),
        Err(error) => match retry_page(ctx, prompt, &error).await? {
            Some(page) => Ok(ConfirmedOutcome::Prompt(page)),
            None => Err(error),
        },
    }
}

/// Returns whether the provider has just redirected the browser back to a form with saved fields.
pub(crate) fn returned_from_provider(ctx: &PageContext) -> bool {
    ctx.query.has("confirmed") && !ctx.form.0.is_empty()
}

/// Returns the page that asks again after the confirmation turned out to be invalid; `None` for any
/// other refusal.
pub(crate) async fn retry_page(
    ctx: &PageContext,
    prompt: ConfirmationPrompt<'_>,
    wrong: &ApiError,
) -> Result<Option<Response>, ApiError> {
    let unconfirmed = wrong.code().is_some_and(|code| code.code == "step_up_required");
    if !unconfirmed {
        return Ok(None);
    }
    prompt_page(ctx, &prompt, &ctx.form, Some(wrong)).await.map(Some)
}

/// Builds the page that asks for the confirmation of a submitted or restored form.
pub(crate) async fn prompt_page(
    ctx: &PageContext,
    prompt: &ConfirmationPrompt<'_>,
    form: &Fields,
    wrong: Option<&ApiError>,
) -> PageResult {
    let back = format!("{}?confirmed=1", ctx.path);
    let section = section(ctx, prompt.action, &back, wrong).await?;
    let body = html! {
        form.card method="post" action=(ctx.path) {
            (prompt.what)
            (parts::form_tokens(ctx))
            (parts::hidden_fields(form))
            (section.markup)
            p { a href={ (ctx.path) "?draft=1" } { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let sheet = Sheet { status, issuer: section.issuer, ..Sheet::of(prompt.title) };
    let mut answer = frame::page(ctx, sheet, &body);
    if let Some(cookie) = draft::save(&ctx.portal.app, &ctx.path, form)? {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// Builds the part of a form that asks for the confirmation. The provider redirects to the path
/// `back`. `wrong` is the refusal of the form, which may concern the confirmation.
pub(crate) async fn section(
    ctx: &PageContext,
    action: Action,
    back: &str,
    wrong: Option<&ApiError>,
) -> Result<Section, ApiError> {
    let confirm =
        html! { input type="hidden" name="confirm" value="yes"; button.go type="submit" { "Confirm" } };
    let given = wrong.is_none() && portal::confirmation(&ctx.portal.app, &ctx.headers).is_some();
    if given {
        let markup = html! { p { "You have just confirmed your identity." } p { (confirm) } };
        return Ok(Section { markup, issuer: None });
    }
    let member = ctx.actor.member();
    let settings = ctx.actor.app.store.sso_settings(member.organization).await?;
    let settings = settings.as_deref().and_then(packhouse_app::sso::SsoSettings::read);
    let issuer = settings.and_then(|settings| issuer_origin(&settings.issuer));
    let provider = match issuer {
        Some(_) => Some(sso::ticket(&ctx.actor, member, action.name(), Some(back)).await?.url),
        None => None,
    };
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong.filter(|wrong| is_about_confirmation(wrong)));
    let password = Text {
        label: "Password",
        name: "password",
        kind: "password",
        hint: "Enter your own password to confirm this action.",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let needs_code = matches!(second_factor::state(&ctx.actor).await?, SecondFactorState::Confirmed { .. });
    let inputs = html! {
        @if !member.password_hash.is_empty() || provider.is_none() {
            (filled.text(password))
            @if needs_code { (filled.text(CODE)) }
            p { (confirm) }
        }
        @if let Some(url) = &provider { p { a.button href=(url) { "Confirm with your organization's sign-in" } } }
    };
    Ok(Section { markup: filled.with_error(inputs), issuer })
}

/// Returns whether a refusal is about the confirmation, not about the rest of the form.
pub(crate) fn is_about_confirmation(wrong: &ApiError) -> bool {
    let codes = [
        "invalid_credentials",
        "second_factor_required",
        "too_many_attempts",
        "step_up_required",
        "missing_confirmation_token",
    ];
    wrong.code().is_some_and(|code| codes.contains(&code.code))
}

/// Returns the origin of a provider, as a Content-Security-Policy names it.
pub(crate) fn issuer_origin(issuer: &str) -> Option<String> {
    Url::parse(issuer).ok().map(|url| url.origin().ascii_serialization())
}

/// Clears the cookies of a confirmation and of saved fields after the action is done.
pub(crate) fn finish(ctx: &PageContext, mut answer: Response) -> PageResult {
    let app = &ctx.portal.app;
    for cookie in [portal::forget_confirmation(app)?, draft::forget(app)?] {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}
