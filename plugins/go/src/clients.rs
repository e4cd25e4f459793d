//! Client setup instructions: the go command for reading, curl for publishing. The go command sends
//! a credential from `.netrc` only over TLS. The machine name in `.netrc` must have the port for
//! the go command, and must not have it for curl.

use packhouse_sdk::{Client, Install};

const NETRC: &str = "machine {host}\nlogin {email}\npassword {token}";
const CURL_NETRC: &str = "machine {hostname}\nlogin {email}\npassword {token}";

/// Configuration files and commands for reading and publishing.
pub(crate) fn clients() -> Vec<Client> {
    vec![
        Client::read("go", NETRC).file("~/.netrc", "text"),
        Client::read("go", "go env -w GOPROXY={address} GONOSUMDB=OWN.MODULES/*"),
        Client::publish("curl", CURL_NETRC).file("~/.netrc", "text"),
        Client::publish(
            "curl",
            "curl --netrc --fail --upload-file MODULE.zip {address}MODULE/@v/VERSION.zip",
        ),
    ]
}

/// Commands and lines that install one version.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("go", "go get {name}@{version}"),
        Install::new("go.mod", "text", "require {name} {version}"),
    ]
}
