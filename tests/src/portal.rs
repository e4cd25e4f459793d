//! What tests of the portal in a browser have in common: two people, one with scripts and one without, and what both do everywhere.

use crate::chromium::Chromium;
use crate::server::{PASSWORD, Server};
use crate::skip;

/// The two browsers: each test is a person with scripts, and one without.
pub fn both(test: impl Fn(&Chromium, bool)) {
    for scripts in [false, true] {
        let browser = if scripts { Chromium::with_scripts() } else { Chromium::start() };
        match browser {
            Ok(browser) => test(&browser, scripts),
            Err(reason) => return skip("chromium", &reason),
        }
    }
}

/// The address of a page.
pub fn at(server: &Server, path: &str) -> String {
    format!("http://{}{path}", server.api())
}

/// Signs in by password; the list of repositories is shown then.
#[track_caller]
pub fn sign_in(browser: &Chromium, server: &Server, email: &str) {
    browser.open(&at(server, "/sign-in"));
    browser.fill("E-mail", email);
    browser.fill("Password", PASSWORD);
    browser.press("Sign in");
    browser.comes_to("Repositories - Packhouse");
}

/// Confirms on the page that asks for it.
#[track_caller]
pub fn confirm(browser: &Chromium) {
    browser.fill("Password", PASSWORD);
    browser.press("Confirm");
}

/// The secret that the page shows this once.
#[track_caller]
pub fn secret(browser: &Chromium) -> String {
    let secret = browser.text("[data-secret]");
    assert!(secret.starts_with("pkh_"), "{secret}");
    secret
}

/// Nothing on any page was against its policy.
#[track_caller]
pub fn no_complaints(browser: &Chromium) {
    let complaints = browser.complaints();
    let policy: Vec<&String> =
        complaints.iter().filter(|line| line.contains("Content Security Policy")).collect();
    assert!(policy.is_empty(), "{policy:?}");
}
