//! Client setup instructions. Each client sends its token only to the registry that the token is
//! configured for.

use packhouse_sdk::{Client, Install};

const NPMRC: &str = "registry={address}\n//{host}/{path}/:_authToken={token}";

/// Configuration files and commands for reading and publishing.
pub(crate) fn clients() -> Vec<Client> {
    let yarn = "npmRegistryServer: \"{address}\"\nnpmAuthToken: \"{token}\"\nnpmAlwaysAuth: true\n\
                {http}unsafeHttpWhitelist: [\"{hostname}\"]";
    let yarn_publish = "npmPublishRegistry: \"{address}\"\nnpmRegistries:\n  \"//{host}/{path}\":\n    \
                        npmAuthToken: \"{token}\"\n    npmAlwaysAuth: true\n{http}unsafeHttpWhitelist: [\"{hostname}\"]";
    let bun = "[install]\nregistry = {{ url = \"{address}\", token = \"{token}\" }";
    let publish = "npm publish --registry {address}";
    vec![
        Client::read("npm", NPMRC).file(".npmrc", "ini"),
        Client::read("pnpm", NPMRC).file(".npmrc", "ini"),
        Client::read("yarn 1", &format!("{NPMRC}\nalways-auth=true")).file(".npmrc", "ini"),
        Client::read("yarn 4", yarn).file(".yarnrc.yml", "yaml"),
        Client::read("bun", bun).file("bunfig.toml", "toml"),
        Client::publish("npm", "//{host}/{path}/:_authToken={token}").file(".npmrc", "ini"),
        Client::publish("npm", publish),
        Client::publish("pnpm", "//{host}/{path}/:_authToken={token}").file(".npmrc", "ini"),
        Client::publish("pnpm", "pnpm publish --registry {address}"),
        Client::publish("yarn 1", &format!("{NPMRC}\nalways-auth=true")).file(".npmrc", "ini"),
        Client::publish("yarn 1", "yarn publish --registry {address}"),
        Client::publish("yarn 4", yarn_publish).file(".yarnrc.yml", "yaml"),
        Client::publish("yarn 4", "yarn npm publish"),
        Client::publish("bun", "//{host}/{path}/:_authToken={token}").file(".npmrc", "ini"),
        Client::publish("bun", "bun publish --registry {address}"),
    ]
}

/// Commands that install one version, one for each client.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("npm", "npm install {name}@{version}"),
        Install::shell("pnpm", "pnpm add {name}@{version}"),
        Install::shell("yarn", "yarn add {name}@{version}"),
        Install::shell("bun", "bun add {name}@{version}"),
    ]
}
