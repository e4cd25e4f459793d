//! What people are told who use Go. The go command shows a credential of `.netrc`, over TLS alone, to a machine that is named with its
//! port; curl wants the name without.

use packhouse_sdk::{Client, Install};

const NETRC: &str = "machine {host}\nlogin {email}\npassword {token}";
const CURL_NETRC: &str = "machine {hostname}\nlogin {email}\npassword {token}";

/// What to write where.
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

/// One line.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("go", "go get {name}@{version}"),
        Install::new("go.mod", "text", "require {name} {version}"),
    ]
}
