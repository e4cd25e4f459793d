//! Form of package URLs (purl), a notation for packages that all ecosystems share.

use serde::{Deserialize, Serialize};

/// Form of a format's package URLs.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct PurlForm {
    /// Type that the specification of package URLs registers.
    #[serde(rename = "type")]
    pub kind: String,
    /// Separator of namespace and name in a package's own name: one character.
    #[serde(default = "slash")]
    pub joint: String,
}

fn slash() -> String {
    "/".to_owned()
}
