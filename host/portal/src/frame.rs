//! Layout of every page: navigation, search, the signed-in member, and the security headers.

use axum::response::{IntoResponse, Response};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, html};

use crate::assets::{ICON, SCRIPT, STYLE};
use crate::navigation::{navigation, search_everywhere};
use crate::page_context::PageContext;
use crate::parts;

/// Title, status and surroundings of a page.
pub(crate) struct Sheet<'a> {
    pub(crate) title: &'a str,
    pub(crate) status: StatusCode,
    pub(crate) crumbs: Markup,
    /// Content next to the heading.
    pub(crate) beside: Markup,
    /// Origin of the sign-in provider, if a form of the page leads to the provider.
    pub(crate) issuer: Option<String>,
}

impl<'a> Sheet<'a> {
    /// Returns a page of this title with status 200.
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

/// Builds a page for a signed-in member.
pub(crate) fn page(ctx: &PageContext, sheet: Sheet<'_>, content: &Markup) -> Response {
    let done = ctx.query.get("done").and_then(done_message);
    let around = html! {
        div.frame {
            header.top {
                (brand())
                (navigation(ctx))
                div.me {
                    a href="/account" aria-current=[(ctx.path == "/account").then_some("page")] {
                        bdi { (ctx.actor.member().email) }
                    }
                    form method="post" action="/sign-out" { (parts::csrf(&ctx.csrf)) button.plain type="submit" { "Sign out" } }
                }
            }
            div.sheet {
                // The page of the search has its own field.
                @if ctx.path != "/search" { (search_everywhere()) }
                main id="main" tabindex="-1" {
                    (sheet.crumbs)
                    div.head { h1 { bdi { (sheet.title) } } (sheet.beside) }
                    @if let Some(done) = done { p role="status" { (done) } }
                    (content)
                }
            }
        }
    };
    document(&sheet, &around)
}

/// Builds a page without navigation, for a visitor without a session.
pub(crate) fn guest_page(sheet: Sheet<'_>, content: &Markup) -> Response {
    let around = html! {
        main.lone id="main" tabindex="-1" {
            (brand())
            h1 { (sheet.title) }
            (content)
        }
    };
    document(&sheet, &around)
}

fn brand() -> Markup {
    html! { a.brand href="/" { img src=(ICON.path) alt="" width="26" height="26"; "Packhouse" } }
}

/// Returns the message that a page shows after a form succeeded.
fn done_message(what: &str) -> Option<&'static str> {
    Some(match what {
        "created" => "Created.",
        "saved" => "Saved.",
        "deleted" => "Deleted.",
        "restored" => "Restored.",
        "deleting" => {
            "Deletion is in progress and takes a while. Until it finishes, the remaining versions are still listed."
        }
        "revoked" => "Revoked. It can no longer be used.",
        "purged" => "Purged.",
        "added" => "Added.",
        "removed" => "Removed.",
        "suspended" => "Suspended. The account is refused from now on.",
        "reactivated" => "Reactivated.",
        "ended" => "The session has ended.",
        _ => return None,
    })
}

/// Builds the HTML document with its headers.
fn document(sheet: &Sheet<'_>, around: &Markup) -> Response {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (parts::strip_bidi(sheet.title)) " - Packhouse" }
                link rel="icon" type="image/svg+xml" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                script type="module" src=(SCRIPT.path) {}
            }
            body { a.skip href="#main" { "Skip to content" } (around) }
        }
    };
    let mut answer = (sheet.status, text.into_string()).into_response();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Browsers with the policy `no-referrer` send `Origin: null` with a form, and the server would
    // refuse the form as cross-site.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(policy) = HeaderValue::try_from(policy(sheet.issuer.as_deref())) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// Returns the Content-Security-Policy: only this host's resources are loaded, run or submitted to,
/// and no page may be framed. Forms may also lead to `issuer`.
fn policy(issuer: Option<&str>) -> String {
    let forms = issuer.map(|issuer| format!(" {issuer}")).unwrap_or_default();
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         form-action 'self'{forms}; base-uri 'none'; frame-ancestors 'none'"
    )
}
