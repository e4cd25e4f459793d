//! What every page has around it: the way through the portal, who is signed in, and the headers under which a browser shows it.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, html};
use packhouse_identity::permissions::Permission::{
    ManageMembers, ManageOwnerAccount, ManageRepositories, ManageServer, ManageSubscribers,
};

use crate::assets::{ICON, SCRIPT, STYLE};
use crate::parts;
use crate::seat::Seat;

/// What a page is, besides its content.
pub(crate) struct Sheet<'a> {
    /// Its heading and title.
    pub(crate) title: &'a str,
    /// Its status.
    pub(crate) status: StatusCode,
    /// Above the heading: where it stands.
    pub(crate) crumbs: Markup,
    /// Beside the heading.
    pub(crate) beside: Markup,
    /// The sign-in provider's origin, where the page has a way there.
    pub(crate) issuer: Option<String>,
}

impl<'a> Sheet<'a> {
    /// An ordinary page of this title.
    pub(crate) fn of(title: &'a str) -> Sheet<'a> {
        Sheet {
            title,
            status: StatusCode::OK,
            crumbs: Markup::default(),
            beside: Markup::default(),
            issuer: None,
        }
    }
}

/// A page of who is signed in.
pub(crate) fn page(seat: &Seat, sheet: Sheet<'_>, content: &Markup) -> Response {
    let done = seat.query.get("done").and_then(done);
    let around = html! {
        div.frame {
            header.top {
                (brand())
                nav aria-label="Main" { ul { @for (path, name) in ways(seat) { (way(&seat.path, path, name)) } } }
                div.me {
                    a href="/account" aria-current=[(seat.path == "/account").then_some("page")] {
                        bdi { (seat.actor.member().email) }
                    }
                    form method="post" action="/sign-out" { (parts::csrf(&seat.csrf)) button.plain type="submit" { "Sign out" } }
                }
            }
            main id="main" tabindex="-1" {
                (sheet.crumbs)
                div.head { h1 { bdi { (sheet.title) } } (sheet.beside) }
                @if let Some(done) = done { p role="status" { (done) } }
                (content)
            }
        }
    };
    whole(&sheet, &around)
}

/// A page of who is not.
pub(crate) fn lone(sheet: Sheet<'_>, content: &Markup) -> Response {
    let around = html! {
        main.lone id="main" tabindex="-1" {
            (brand())
            h1 { (sheet.title) }
            (content)
        }
    };
    whole(&sheet, &around)
}

fn brand() -> Markup {
    html! { a.brand href="/" { img src=(ICON.path) alt="" width="26" height="26"; "Packhouse" } }
}

/// The pages that the member can make use of.
fn ways(seat: &Seat) -> Vec<(&'static str, &'static str)> {
    let owner = seat.holds(ManageOwnerAccount);
    let writes = seat.actor.permissions().repositories.iter().any(|one| one.actions.len() > 1);
    let all = [
        (true, "/repositories", "Repositories"),
        (true, "/search", "Search"),
        (true, "/tokens", "Repository Tokens"),
        (owner || writes, "/service-keys", "Service keys"),
        (seat.holds(ManageSubscribers), "/subscribers", "Subscribers"),
        (seat.holds(ManageSubscribers), "/subscriber-groups", "Subscriber groups"),
        (owner || seat.holds(ManageMembers), "/members", "Members"),
        (owner, "/formats", "Formats"),
        (owner, "/audit", "Audit"),
        (seat.holds(ManageServer), "/backups", "Backups"),
        (owner || seat.holds(ManageRepositories), "/organization", "Organization"),
    ];
    all.into_iter().filter(|(shown, ..)| *shown).map(|(_, path, name)| (path, name)).collect()
}

fn way(here: &str, path: &str, name: &str) -> Markup {
    let below = here.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    html! { li { a href=(path) aria-current=[below.then_some("page")] { (name) } } }
}

/// What a page says that a form has led to.
fn done(what: &str) -> Option<&'static str> {
    Some(match what {
        "created" => "Created.",
        "saved" => "Saved.",
        "deleted" => "Deleted.",
        "restored" => "Brought back, as it was.",
        "deleting" => "It is being deleted, which takes a while; what is left of it is still shown.",
        "revoked" => "Revoked: it is refused from now on.",
        "purged" => "Purged.",
        "ended" => "The session has ended.",
        _ => return None,
    })
}

/// The document.
fn whole(sheet: &Sheet<'_>, around: &Markup) -> Response {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (parts::straight(sheet.title)) " - Packhouse" }
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script type="module" src=(SCRIPT.path) {}
            }
            body { a.skip href="#main" { "Skip to the content" } (around) }
        }
    };
    let mut answer = (sheet.status, text.into_string()).into_response();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Under `no-referrer` browsers say `Origin: null` of a form, which would then be refused as another site's.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(policy) = HeaderValue::try_from(policy(sheet.issuer.as_deref())) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// Nothing but this host's own is loaded, run, sent to or allowed to frame it.
fn policy(issuer: Option<&str>) -> String {
    let forms = issuer.map(|issuer| format!(" {issuer}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'{forms}; base-uri 'none'; frame-ancestors 'none'"
    )
}
