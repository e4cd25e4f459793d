//! How a sign-in's page looks: plain HTML that works without a script, by keyboard, and in light and dark.

use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};
use http::{HeaderValue, StatusCode};
use sha2::{Digest as _, Sha256};

use super::Offer;
use super::page::DAYS;

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

/// What a finished sign-in says.
pub(super) const DONE: &str =
    "<p role=\"status\">The client is signed in. You can close this page and go back to it.</p>";

/// How somebody can confirm that they are still there.
pub(super) enum Proof {
    /// By a sign-in that has just been done.
    Brought,
    /// By a password, where the member has one, or at the address of the provider, where there is one.
    Asked { password: bool, provider: Option<String> },
}

/// The form that signs somebody in, and the way to the organization's provider.
pub(super) fn sign_in(provider: Option<&str>) -> String {
    let by = provider.map(|url| link(url, "Sign in with your organization")).unwrap_or_default();
    format!(
        "<p>A package client on your computer asks to be signed in. Sign in here to see what it asks for. \
         If you have not just started a sign-in, close this page.</p>\
         <form method=\"post\"><label for=\"email\">E-mail address</label>\
         <input id=\"email\" name=\"email\" type=\"email\" autocomplete=\"username\" required autofocus>\
         <label for=\"password\">Password</label>\
         <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required>\
         <button type=\"submit\">Sign in</button></form>{by}"
    )
}

/// What will be granted, and the form that grants it.
pub(super) fn confirmation(offer: &Offer, email: &str, csrf: &str, proof: &Proof) -> String {
    let may = match offer.scope.write {
        true => "read, publish and delete packages",
        false => "read packages",
    };
    let told = format!(
        "<p>A package client asks for a token. If you have not just started a sign-in, close this page.</p>\
         <dl><dt>Repository</dt><dd>{}</dd><dt>The token may</dt><dd>{may}</dd><dt>It acts for</dt><dd>{}</dd></dl>",
        escaped(&offer.repository.name),
        escaped(email),
    );
    match proof {
        Proof::Brought => format!("{told}{}", form(csrf, "")),
        Proof::Asked { password, provider } => {
            let by = provider.as_deref().map(|url| link(url, "Confirm with your organization's sign-in"));
            let form = if *password || by.is_none() { form(csrf, PASSWORD) } else { String::new() };
            format!("{told}{form}{}", by.unwrap_or_default())
        }
    }
}

const PASSWORD: &str = "<label for=\"password\">Your password, to confirm</label>\
    <input id=\"password\" name=\"password\" type=\"password\" autocomplete=\"current-password\" required autofocus>";

fn form(csrf: &str, more: &str) -> String {
    let options: String =
        DAYS.iter().map(|days| format!("<option value=\"{days}\">{days} days</option>")).collect();
    format!(
        "<form method=\"post\"><input type=\"hidden\" name=\"csrf\" value=\"{}\">\
         <label for=\"days\">The token works for</label><select id=\"days\" name=\"days\">{options}</select>\
         {more}<button type=\"submit\">Grant the token</button></form>",
        escaped(csrf)
    )
}

fn link(url: &str, text: &str) -> String {
    format!("<a class=\"by\" href=\"{}\">{text}</a>", escaped(url))
}

/// A text that says what was wrong.
pub(super) fn alert(text: &str) -> String {
    format!("<p role=\"alert\">{}</p>", escaped(text))
}

/// A whole page, with a policy under which nothing but its own style is used.
pub(super) fn page(status: StatusCode, title: &str, content: &str) -> Response {
    let text = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>{title} - Packhouse</title><style>{STYLE}</style></head>\
         <body><main><p class=\"name\">Packhouse</p><h1>{title}</h1>{content}</main></body></html>"
    );
    let style = STANDARD.encode(Sha256::digest(STYLE.as_bytes()));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    let mut answer = (status, text).into_response();
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    // Under `no-referrer` browsers say `Origin: null` of a form, which would then be refused as another site's.
    answer.headers_mut().insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if let Ok(policy) = HeaderValue::try_from(policy) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

/// A text as it may stand in an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_page_is_markup_that_was_not_meant() {
        assert_eq!(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
        let answer = page(StatusCode::OK, "t", "");
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert!(!STYLE.contains('<'), "it stands in an element");
    }
}
