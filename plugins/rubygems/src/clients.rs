//! Client setup instructions. The server accepts any user name with a token. The instructions use
//! `__token__`, because the `@` of an e-mail address would have to be written as `%40`.

use packhouse_sdk::{Client, Install};

const GEMFILE: &str = "source \"{address}\"";
const BUNDLE: &str = "bundle config set --global {address} __token__:{token}";
const GEM: &str = "{http}gem sources --add http://__token__:{token}@{host}/{path}/\n\
                   {https}gem sources --add https://__token__:{token}@{host}/{path}/";
// `gem` appends a slash and the requested path to this address, so the address must not end with a
// slash.
const CREDENTIALS: &str = "---\n{http}http://{host}/{path}: {token}\n{https}https://{host}/{path}: {token}";
const PUSH: &str = "chmod 0600 ~/.gem/credentials\n\
                    {http}gem push NAME-VERSION.gem --host http://{host}/{path}\n\
                    {https}gem push NAME-VERSION.gem --host https://{host}/{path}";

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("bundler", GEMFILE).file("Gemfile", "text"),
        Client::read("bundler", BUNDLE),
        Client::read("gem", GEM),
        Client::publish("gem", CREDENTIALS).file(".gem/credentials", "yaml"),
        Client::publish("gem", PUSH),
    ]
}

/// Commands and files that install a version, one for each client.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::new("bundler", "text", "gem \"{name}\", \"{version}\""),
        Install::shell("gem", "gem install {name} --version {version}"),
    ]
}
