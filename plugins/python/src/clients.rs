//! Client configuration for Python's package managers. The user name for a token is the e-mail
//! address of the token's owner.

use packhouse_sdk::{Client, Install};

const PIP: &str = "[global]\nindex-url = {address}simple/\n{http}trusted-host = {hostname}";
const NETRC: &str = "machine {hostname}\nlogin {email}\npassword {token}";
const UV: &str = "[[index]]\nname = \"{repository}\"\nurl = \"{address}simple/\"\ndefault = true";
const UV_PUBLISH: &str = "uv publish --publish-url {address} --username {email} --password {token}";
const POETRY: &str = "poetry source add --priority=primary {repository} {address}simple/\n\
                      poetry config http-basic.{repository} {email} {token}";
const POETRY_PUBLISH: &str = "poetry config repositories.{repository} {address}\n\
                              poetry config http-basic.{repository} {email} {token}\n\
                              poetry publish --build --repository {repository}";
const PYPIRC: &str = "[distutils]\nindex-servers = {repository}\n\n[{repository}]\nrepository = {address}\n\
                      username = {email}\npassword = {token}";

/// Configuration files and commands for reading and publishing.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("pip", PIP).file("pip.conf", "ini"),
        Client::read("pip", NETRC).file(".netrc", "text"),
        Client::read("uv", UV).file("uv.toml", "toml"),
        Client::read("uv", NETRC).file(".netrc", "text"),
        Client::read("poetry", POETRY),
        Client::publish("twine", PYPIRC).file(".pypirc", "ini"),
        Client::publish("twine", "twine upload --repository {repository} dist/*"),
        Client::publish("uv", UV_PUBLISH),
        Client::publish("poetry", POETRY_PUBLISH),
    ]
}

/// Commands that install one version, one for each client.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("pip", "pip install {name}=={version}"),
        Install::shell("uv", "uv add {name}=={version}"),
        Install::shell("poetry", "poetry add --source {repository} {name}=={version}"),
    ]
}
