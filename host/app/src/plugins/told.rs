//! What is kept of a component beside its bytes: what it says of itself, so that it can be shown and compared without being compiled.

use packhouse_runtime::{Inspection, Plugin};
use serde::{Deserialize, Serialize};

use super::Capabilities;

/// The interface that every component exports.
const FORMAT: &str = "packhouse:format/format@";

/// See the module.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Told {
    /// The plugin's own version.
    pub version: String,
    /// The version of the contract that it was built for.
    pub contract: String,
    /// What it imports, as `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// What it exports, as `packhouse:format/format@0.1.0`.
    pub exports: Vec<String>,
    /// What it asks for by its description.
    pub capabilities: Capabilities,
}

impl Told {
    /// Of what was found in a file.
    pub fn of_inspection(found: &Inspection) -> Told {
        let capabilities = Capabilities::of(&found.description, &found.description.limits);
        Told::of(&found.description.version, &found.imports, &found.exports, capabilities)
    }

    /// Of what is loaded: its own bounds, whatever the operator allows.
    pub fn of_plugin(plugin: &Plugin) -> Told {
        let capabilities = Capabilities::of(plugin.description(), plugin.described_limits());
        Told::of(plugin.version(), plugin.imports(), plugin.exports(), capabilities)
    }

    fn of(version: &str, imports: &[String], exports: &[String], capabilities: Capabilities) -> Told {
        let contract = exports.iter().find_map(|export| export.strip_prefix(FORMAT));
        Told {
            version: version.to_owned(),
            contract: contract.unwrap_or_default().to_owned(),
            imports: imports.to_vec(),
            exports: exports.to_vec(),
            capabilities,
        }
    }
}
