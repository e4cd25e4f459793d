//! The portal, sign-in, and the pages for people.

#[path = "../../../plugins/npm/tests/release.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod release;

#[path = "../../../plugins/python/tests/wheel.rs"]
#[allow(dead_code, reason = "shared with tests that use more of this module")]
mod wheel;

mod access_browser;
mod access_pages;
mod browser_page;
mod home;
mod navigation;
mod passwords;
mod people;
mod portal;
mod portal_browser;
mod portal_choices;
mod portal_deeds;
mod portal_deletions;
mod portal_hostile;
mod portal_lists;
mod portal_packages;
mod portal_pages;
mod portal_picture;
mod second_factor;
mod secrets;
mod settings_pages;
mod sso;
