//! Client setup instructions for uploads and downloads. Any HTTP client works.

use packhouse_sdk::{Client, Install};

/// Configuration files and commands for reading and publishing. The credential is in a file,
/// because other users of the machine can see command lines.
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

/// Commands that download one file. `{property:path}` stands for the version's property `path`, in
/// which an upload stores the encoded path.
pub(crate) fn install() -> Vec<Install> {
    vec![
        Install::shell("curl", "curl --netrc --fail --remote-name {address}{property:path}"),
        Install::shell("wget", "wget {address}{property:path}"),
    ]
}
