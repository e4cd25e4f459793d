//! What Ruby's clients are told.

use packhouse_sdk::{Client, Install};

const GEMFILE: &str = "source \"{address}\"";
const BUNDLE: &str = "bundle config set --global {address} {email}:{token}";
const GEM: &str = "# Once: gem sources --add ADDRESS, with e-mail address (@ as %40) and token before the host\n\
                   gem install NAME --clear-sources --source {address}";
const CREDENTIALS: &str = "---\n{address}: {token}";
const PUSH: &str = "chmod 0600 ~/.gem/credentials\ngem push NAME-VERSION.gem --host {address}";

/// What to write where.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("bundler", GEMFILE).file("Gemfile", "text"),
        Client::read("bundler", BUNDLE),
        Client::read("gem", GEM),
        Client::publish("gem", CREDENTIALS).file(".gem/credentials", "yaml"),
        Client::publish("gem", PUSH),
    ]
}

/// One line for each client.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::new("bundler", "text", "gem \"{name}\", \"{version}\""),
        Install::shell("gem", "gem install {name} --version {version} --source {address}"),
    ]
}
