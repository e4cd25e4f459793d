//! What people are told who use cargo. Cargo knows a registry by a name of its own; here it is the repository's.

use packhouse_sdk::{Client, Install};

/// Cargo asks no registry that wants a token before it is told where tokens come from.
const REGISTRY: &str =
    "[registries.{repository}]\nindex = \"sparse+{address}\"\ncredential-provider = \"cargo:token\"";

const INSTEAD: &str = "[registries.{repository}]\nindex = \"sparse+{address}\"\ncredential-provider = \"cargo:token\"\n\n\
                       [source.crates-io]\nreplace-with = \"{repository}\"";

const TOKEN: &str = "[registries.{repository}]\ntoken = \"{token}\"";

/// What to write where.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("cargo", REGISTRY).file("~/.cargo/config.toml", "toml"),
        Client::read("cargo", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::read("cargo, in place of crates.io", INSTEAD).file("~/.cargo/config.toml", "toml"),
        Client::read("cargo, in place of crates.io", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::publish("cargo", REGISTRY).file("~/.cargo/config.toml", "toml"),
        Client::publish("cargo", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::publish("cargo", "cargo publish --registry {repository}"),
    ]
}

/// The name as its author spells it stands among the properties.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("cargo", "cargo add --registry {repository} {property:name}@{version}"),
        Install::new(
            "Cargo.toml",
            "toml",
            "{property:name} = {{ version = \"{version}\", registry = \"{repository}\" }",
        ),
    ]
}
