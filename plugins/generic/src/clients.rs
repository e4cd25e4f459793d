//! What people are told who put and fetch files: any client of HTTP will do.

use packhouse_sdk::{Client, Install};

/// What to write where. The credential stands in a file, so that no list of processes shows it.
pub(crate) fn clients() -> Vec<Client> {
    let netrc = "machine {hostname}\nlogin {email}\npassword {token}";
    vec![
        Client::read("curl", netrc).file("~/.netrc", "text"),
        Client::read("curl", "curl --netrc --fail --remote-name {address}FOLDER/FILE"),
        Client::read("wget", netrc).file("~/.netrc", "text"),
        Client::read("wget", "wget {address}FOLDER/FILE"),
        Client::publish("curl", netrc).file("~/.netrc", "text"),
        Client::publish("curl", "curl --netrc --fail --upload-file FILE {address}FOLDER/"),
    ]
}

/// The address of a file stands, encoded, among its properties.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("curl", "curl --netrc --fail --remote-name {address}{property:path}"),
        Install::shell("wget", "wget {address}{property:path}"),
    ]
}
