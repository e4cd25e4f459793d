//! Instructions for users of cargo. Cargo needs a name for each registry. The instructions use the
//! name of the repository.

use packhouse_sdk::{Client, Install};

/// A credential provider is required: without one, cargo sends no request to a registry that needs
/// a token.
const REGISTRY: &str =
    "[registries.{repository}]\nindex = \"sparse+{address}\"\ncredential-provider = \"cargo:token\"";

const REPLACING_CRATES_IO: &str = "[registries.{repository}]\nindex = \"sparse+{address}\"\ncredential-provider = \"cargo:token\"\n\n\
                       [source.crates-io]\nreplace-with = \"{repository}\"";

const TOKEN: &str = "[registries.{repository}]\ntoken = \"{token}\"";

/// Configuration files and commands.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("cargo", REGISTRY).file("~/.cargo/config.toml", "toml"),
        Client::read("cargo", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::read("cargo, in place of crates.io", REPLACING_CRATES_IO)
            .file("~/.cargo/config.toml", "toml"),
        Client::read("cargo, in place of crates.io", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::publish("cargo", REGISTRY).file("~/.cargo/config.toml", "toml"),
        Client::publish("cargo", TOKEN).file("~/.cargo/credentials.toml", "toml"),
        Client::publish("cargo", "cargo publish --registry {repository}"),
    ]
}

/// Commands that install a version. The property `name` has the spelling of the author.
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
