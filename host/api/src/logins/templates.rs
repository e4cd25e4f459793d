//! How a sign-in's page looks: plain HTML that works without a script, by keyboard, and in light and dark.

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest as _, Sha256};

use crate::operations::logins::Offer;

/// Lives of a token that are offered, in days; the first is chosen where nothing is said.
pub(super) const DAYS: [i64; 4] = [90, 7, 30, 365];

/// The page's whole style; its hash is in the page's policy.
const STYLE: &str = ":root{color-scheme:light dark;--ink:#1c2430;--soft:#4c5767;--ground:#eef1f5;--card:#fff;--line:#7b8696;\
--act:#0b5394;--on:#fff;--bad:#990000;--badground:#fbeaea}\
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--soft:#b4bdca;--ground:#12161c;--card:#1c2129;--line:#8a95a5;\
--act:#8ab8ec;--on:#10151c;--bad:#ff9d94;--badground:#3a1d1d}}\
body{font:1rem/1.5 system-ui,sans-serif;margin:0;color:var(--ink);background:var(--ground)}\
main{box-sizing:border-box;max-width:30rem;margin:3rem auto;padding:2rem;background:var(--card);border-radius:8px;\
box-shadow:0 1px 4px #0003}@media(max-width:32rem){main{margin:0;border-radius:0}}\
h1{font-size:1.5rem;line-height:1.25;margin:0 0 1rem}.name{margin:0;color:var(--soft);font-weight:600}\
label{display:block;margin:1rem 0 .25rem;font-weight:600}\
input,select{box-sizing:border-box;width:100%;padding:.6rem;font:inherit;color:inherit;background:var(--card);\
border:1px solid var(--line);border-radius:4px}\
button,.by{box-sizing:border-box;display:block;width:100%;margin-top:1.5rem;padding:.7rem 1.2rem;font:inherit;font-weight:600;\
text-align:center;text-decoration:none;color:var(--on);background:var(--act);border:1px solid var(--act);border-radius:4px;\
cursor:pointer}.by{color:var(--act);background:none}\
:focus-visible{outline:3px solid #b45f06;outline-offset:2px}\
dl{display:grid;grid-template-columns:auto 1fr;gap:.25rem 1rem;margin:1rem 0}dt{color:var(--soft)}\
dd{margin:0;font-weight:600;overflow-wrap:anywhere}\
[role=alert]{padding:.75rem;border-left:4px solid var(--bad);background:var(--badground)}";

/// How somebody can confirm that they are still there.
pub(super) enum Proof {
    /// A sign-in that has just been done confirms it.
    AlreadyConfirmed,
    /// It is asked for.
    Asked {
        /// Whether the member has a password.
        password: bool,
        /// Where the organization's provider confirms it, if there is one.
        provider: Option<String>,
    },
}

/// What a finished sign-in says.
pub(super) fn done() -> Markup {
    html! { p role="status" { "The client is signed in. You can close this page and go back to it." } }
}

/// The form that signs somebody in, and the way to the organization's provider.
pub(super) fn sign_in(provider: Option<&str>) -> Markup {
    html! {
        p {
            "A package client on your computer asks to be signed in. Sign in here to see what it asks for. "
            "If you have not just started a sign-in, close this page."
        }
        form method="post" {
            label for="email" { "E-mail address" }
            input id="email" name="email" type="email" autocomplete="username" required autofocus;
            label for="password" { "Password" }
            input id="password" name="password" type="password" autocomplete="current-password" required;
            button type="submit" { "Sign in" }
        }
        @if let Some(url) = provider { (link(url, "Sign in with your organization")) }
    }
}

/// What will be granted, and the form that grants it.
pub(super) fn confirmation(offer: &Offer, email: &str, csrf: &str, proof: &Proof) -> Markup {
    let may = if offer.scope.write { "read, publish and delete packages" } else { "read packages" };
    html! {
        p { "A package client asks for a token. If you have not just started a sign-in, close this page." }
        dl {
            dt { "Repository" } dd { (offer.repository.name) }
            dt { "The token may" } dd { (may) }
            dt { "It acts for" } dd { (email) }
        }
        @match proof {
            Proof::AlreadyConfirmed => (grant(csrf, false)),
            Proof::Asked { password, provider } => {
                @if *password || provider.is_none() { (grant(csrf, true)) }
                @if let Some(url) = provider { (link(url, "Confirm with your organization's sign-in")) }
            }
        }
    }
}

/// The form that grants the token; with the password where that is to confirm it.
fn grant(csrf: &str, password: bool) -> Markup {
    html! {
        form method="post" {
            input type="hidden" name="csrf" value=(csrf);
            label for="days" { "The token works for" }
            select id="days" name="days" {
                @for days in DAYS { option value=(days) { (days) " days" } }
            }
            @if password {
                label for="password" { "Your password, to confirm" }
                input id="password" name="password" type="password" autocomplete="current-password" required autofocus;
            }
            button type="submit" { "Grant the token" }
        }
    }
}

fn link(url: &str, text: &str) -> Markup {
    html! { a.by href=(url) { (text) } }
}

/// A text that says what was wrong.
pub(super) fn alert(text: &str) -> Markup {
    html! { p role="alert" { (text) } }
}

/// A whole page, with a policy under which nothing but its own style is used.
pub(super) fn page(status: StatusCode, title: &str, content: &Markup) -> Response {
    let text = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Packhouse" }
                style { (PreEscaped(STYLE)) }
            }
            body { main { p.name { "Packhouse" } h1 { (title) } (content) } }
        }
    };
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let mut answer = (status, text.into_string()).into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Under `no-referrer` browsers say `Origin: null` of a form, which would then be refused as another site's.
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(policy) = HeaderValue::try_from(policy) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_page_is_markup_that_was_not_meant() {
        let hostile = "<a href='x'>&\"</a>";
        let safe = "&lt;a href='x'&gt;&amp;&quot;&lt;/a&gt;";
        assert_eq!(alert(hostile).into_string(), format!("<p role=\"alert\">{safe}</p>"));
        // Every attribute is in double quotes, so that a single one ends none.
        assert_eq!(link(hostile, "t").into_string(), format!("<a class=\"by\" href=\"{safe}\">t</a>"));
        let answer = page(StatusCode::OK, "t", &Markup::default());
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!STYLE.contains('<'), "it stands in an element");
    }
}
