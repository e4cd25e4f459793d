//! A fresh confirmation, given on the spot: the member's password, or a new sign-in by the organization's provider, for one deed. What
//! was filled in stays.
//!
//! A form that wants one either has the field `Password` and the button `Confirm` itself ([`section`]), or is followed by a page that
//! does ([`given`]). The way to the provider leads back to the same page, with `confirmed` in its address and the confirmation in a
//! cookie that confirms nothing before a form with the session's token comes along.

use axum::response::Response;
use http::header::SET_COOKIE;
use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::confirmations::{self, Action, Confirmation};
use packhouse_api::operations::sso;
use packhouse_api::portal;
use packhouse_identity::Secret;
use url::Url;

use crate::field::{Filled, Text};
use crate::fields::Fields;
use crate::frame::{self, Sheet};
use crate::seat::Seat;
use crate::{Answer, draft, fault, parts};

/// What a form that wants a confirmation comes to.
pub(crate) enum Given {
    /// It was given.
    Confirmation(Confirmation),
    /// It is asked for: the next page.
    Asked(Response),
}

/// A deed that is to be confirmed.
pub(crate) struct Deed<'a> {
    /// What for.
    pub(crate) action: Action,
    /// The page's heading.
    pub(crate) title: &'a str,
    /// What will be done, in words.
    pub(crate) what: Markup,
}

/// How a page asks for a confirmation.
pub(crate) struct Section {
    /// Field and button, or the way to the provider.
    pub(crate) markup: Markup,
    /// The provider's origin, for the page's policy.
    pub(crate) issuer: Option<String>,
}

/// The confirmation that the form carries, or the page that asks for one with the form's fields carried along.
pub(crate) async fn given(seat: &Seat, deed: Deed<'_>) -> Result<Given, ApiError> {
    if !seat.form.has("confirm") {
        return Ok(Given::Asked(ask(seat, &deed, &seat.form, None).await?));
    }
    match take(seat, deed.action).await {
        Ok(confirmation) => Ok(Given::Confirmation(confirmation)),
        Err(wrong) => {
            crate::visit::count(seat, &wrong);
            Ok(Given::Asked(ask(seat, &deed, &seat.form, Some(&wrong)).await?))
        }
    }
}

/// The confirmation that a form with a [`section`] of its own carries: by password, or as the provider gave it a moment ago.
pub(crate) async fn take(seat: &Seat, action: Action) -> Result<Confirmation, ApiError> {
    let given = portal::confirmation(&seat.portal.app, &seat.headers).filter(|_| !seat.form.has("password"));
    match given {
        Some(token) => Ok(Confirmation::Token(token)),
        None => {
            let password = Secret::new(seat.form.get("password").unwrap_or_default());
            let confirmed = confirmations::confirm_by_password(&seat.actor, action, password).await?;
            Ok(Confirmation::Token(confirmed.token))
        }
    }
}

/// What came of a form that wants a confirmation.
pub(crate) enum Outcome<T> {
    /// It was confirmed and done.
    Done(T),
    /// It is to be confirmed first: the next page.
    Asked(Response),
}

/// Acts once the form is confirmed; until then, answers the page that asks for it.
pub(crate) async fn then<T>(
    seat: &Seat,
    deed: Deed<'_>,
    act: impl AsyncFnOnce(&Confirmation) -> Result<T, ApiError>,
) -> Result<Outcome<T>, ApiError> {
    let confirmation = match given(seat, Deed { what: deed.what.clone(), ..deed }).await? {
        Given::Asked(page) => return Ok(Outcome::Asked(page)),
        Given::Confirmation(confirmation) => confirmation,
    };
    match act(&confirmation).await {
        Ok(done) => Ok(Outcome::Done(done)),
        Err(error) => match again(seat, deed, &error).await? {
            Some(page) => Ok(Outcome::Asked(page)),
            None => Err(error),
        },
    }
}

/// Whether the browser comes back from the provider to a form that was filled in.
pub(crate) fn is_back(seat: &Seat) -> bool {
    seat.query.has("confirmed") && !seat.form.0.is_empty()
}

/// The page that asks again, for a confirmation that was no good when it was spent: `None` for any other refusal.
pub(crate) async fn again(
    seat: &Seat,
    deed: Deed<'_>,
    wrong: &ApiError,
) -> Result<Option<Response>, ApiError> {
    let unconfirmed = wrong.code().is_some_and(|code| code.code == "step_up_required");
    if !unconfirmed {
        return Ok(None);
    }
    ask(seat, &deed, &seat.form, Some(wrong)).await.map(Some)
}

/// Asks for the confirmation of a form that was sent or come back to.
pub(crate) async fn ask(seat: &Seat, deed: &Deed<'_>, form: &Fields, wrong: Option<&ApiError>) -> Answer {
    let back = format!("{}?confirmed=1", seat.path);
    let section = section(seat, deed.action, &back, wrong).await?;
    let body = html! {
        form.card method="post" action=(seat.path) {
            (deed.what)
            (parts::guard(seat))
            (parts::carried(form))
            (section.markup)
            p { a href={ (seat.path) "?draft=1" } { "Go back" } }
        }
    };
    let status = wrong.map_or(http::StatusCode::OK, fault::status);
    let sheet = Sheet { status, issuer: section.issuer, ..Sheet::of(deed.title) };
    let mut answer = frame::page(seat, sheet, &body);
    if let Some(cookie) = draft::keep(&seat.portal.app, &seat.path, form)? {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}

/// The part of a form that asks for the confirmation. `back` is this page's path, for the way to the provider; `wrong` is what the
/// form was refused with, which may have been the confirmation.
pub(crate) async fn section(
    seat: &Seat,
    action: Action,
    back: &str,
    wrong: Option<&ApiError>,
) -> Result<Section, ApiError> {
    let confirm =
        html! { input type="hidden" name="confirm" value="yes"; button.go type="submit" { "Confirm" } };
    let given = wrong.is_none() && portal::confirmation(&seat.portal.app, &seat.headers).is_some();
    if given {
        let markup = html! { p { "You have just confirmed that it is you." } p { (confirm) } };
        return Ok(Section { markup, issuer: None });
    }
    let member = seat.actor.member();
    let settings = seat.actor.app.store.sso_settings(member.organization).await?;
    let settings = settings.as_deref().and_then(packhouse_app::sso::Settings::read);
    let issuer = settings.and_then(|settings| issuer_origin(&settings.issuer));
    let provider = match issuer {
        Some(_) => Some(sso::ticket(&seat.actor, member, action.name(), Some(back)).await?.url),
        None => None,
    };
    let fields = Fields::default();
    let filled = Filled::new(&fields, wrong.filter(|wrong| is_about(wrong)));
    let password = Text {
        label: "Password",
        name: "password",
        kind: "password",
        hint: "Yours, to confirm that it is you.",
        autocomplete: "current-password",
        required: true,
        ..Text::default()
    };
    let asked = html! {
        @if !member.password_hash.is_empty() || provider.is_none() { (filled.text(password)) p { (confirm) } }
        @if let Some(url) = &provider { p { a.button href=(url) { "Confirm with your organization's sign-in" } } }
    };
    Ok(Section { markup: filled.told(asked), issuer })
}

/// Whether a refusal is about the confirmation, and not about the rest of the form.
pub(crate) fn is_about(wrong: &ApiError) -> bool {
    let codes =
        ["invalid_credentials", "too_many_attempts", "step_up_required", "missing_confirmation_token"];
    wrong.code().is_some_and(|code| codes.contains(&code.code))
}

/// The origin of a provider, as a policy names it.
pub(crate) fn issuer_origin(issuer: &str) -> Option<String> {
    Url::parse(issuer).ok().map(|url| url.origin().ascii_serialization())
}

/// The answer to what was confirmed: what was kept for it is of no more use.
pub(crate) fn spent(seat: &Seat, mut answer: Response) -> Answer {
    let app = &seat.portal.app;
    for cookie in [portal::forget_confirmation(app)?, draft::forget(app)?] {
        answer.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(answer)
}
