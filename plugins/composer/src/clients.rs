//! Instructions for users of Composer, and for publishing with curl.

use packhouse_sdk::{Client, Install};

const REPOSITORY: &str = "composer config repositories.{repository} composer {address}\n\
     composer config --global --auth http-basic.{host} {email} {token}\n\
     {http}composer config --global secure-http false";
const FILE: &str = "{{\n  \"repositories\": [\n    {{\"type\": \"composer\", \"url\": \"{address}\"}\n  ]\n}";
const CURL: &str = "curl --fail-with-body --user {email}:{token} --upload-file PACKAGE.zip \
     '{address}?version=VERSION'";

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("composer", REPOSITORY),
        Client::read("composer", FILE).file("composer.json", "json"),
        Client::publish("curl", CURL),
    ]
}

/// Commands that install a version.
pub(crate) fn install() -> Vec<Install> {
    vec![Install::shell("composer", "composer require {name}:{version}")]
}
