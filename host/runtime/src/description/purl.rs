//! How the addresses of a format's packages are written that every ecosystem shares (package URLs).

use serde::{Deserialize, Serialize};

/// How package URLs are written.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PurlForm {
    /// Their type, as the specification of package URLs registers it.
    #[serde(rename = "type")]
    pub kind: String,
    /// What joins namespace and name in a package's own name: one character.
    #[serde(default = "slash")]
    pub joint: String,
}

fn slash() -> String {
    "/".to_owned()
}
