//! Shared code of the portal's browser tests: two browsers, one with scripts and one without, and
//! the steps that most tests repeat.

use crate::chromium::Chromium;
use crate::server::{PASSWORD, Server};
use crate::skip;

/// Runs the test in two browsers: one with scripts, and one without.
pub fn both(test: impl Fn(&Chromium, bool)) {
    for scripts in [false, true] {
        let browser = if scripts { Chromium::with_scripts() } else { Chromium::start() };
        match browser {
            Ok(browser) => test(&browser, scripts),
            Err(reason) => return skip("chromium", &reason),
        }
    }
}

/// The URL of a page.
pub fn at(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.api())
}

/// Signs in by password and waits for the list of repositories.
#[track_caller]
pub fn sign_in(browser: &Chromium, server: &Server, email: &str) {
    browser.open(&at(server, "/sign-in"));
    browser.fill("E-mail", email);
    browser.fill("Password", PASSWORD);
    browser.press("Sign in");
    browser.comes_to("Repositories - Packhouse");
}

/// Confirms on the confirmation page.
#[track_caller]
pub fn confirm(browser: &Chromium) {
    browser.fill("Password", PASSWORD);
    browser.press("Confirm");
}

/// The secret that the page shows only once.
#[track_caller]
pub fn secret(browser: &Chromium) -> String {
    let secret = browser.text("[data-secret]");
    assert!(secret.starts_with("pkh_"), "{secret}");
    secret
}

/// Asserts that the browser reported no violation of a page's content security policy.
#[track_caller]
pub fn no_complaints(browser: &Chromium) {
    let complaints = browser.complaints();
    let policy: Vec<&String> =
        complaints.iter().filter(|line| line.contains("Content Security Policy")).collect();
    assert!(policy.is_empty(), "{policy:?}");
}
