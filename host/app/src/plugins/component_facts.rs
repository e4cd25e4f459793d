//! Facts about a component. The database stores them with the component's bytes, so that the server
//! can list and compare components without compiling them.

use packhouse_runtime::{Inspection, Plugin};
use serde::{Deserialize, Serialize};

use super::Capabilities;

/// Prefix of the interface that every component exports.
const FORMAT: &str = "packhouse:format/format@";

/// Versions, interfaces and capabilities of a component.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct ComponentFacts {
    pub version: String,
    /// Version of the plugin contract for which the component was built.
    pub contract: String,
    /// Imported interfaces, for example `packhouse:format/blobs@0.1.0`.
    pub imports: Vec<String>,
    /// Exported interfaces, for example `packhouse:format/format@0.1.0`.
    pub exports: Vec<String>,
    /// Capabilities that the component's description requests.
    pub capabilities: Capabilities,
}

impl ComponentFacts {
    /// Returns the facts about an inspected file.
    pub fn of_inspection(found: &Inspection) -> ComponentFacts {
        let capabilities = Capabilities::of(&found.description, &found.description.limits);
        ComponentFacts::of(&found.description.version, &found.imports, &found.exports, capabilities)
    }

    /// Returns the facts about a loaded plugin. Contains the limits from its description, not the
    /// limits that the operator set.
    pub fn of_plugin(plugin: &Plugin) -> ComponentFacts {
        let capabilities = Capabilities::of(plugin.description(), plugin.described_limits());
        ComponentFacts::of(plugin.version(), plugin.imports(), plugin.exports(), capabilities)
    }

    fn of(
        version: &str,
        imports: &[String],
        exports: &[String],
        capabilities: Capabilities,
    ) -> ComponentFacts {
        let contract = exports.iter().find_map(|export| export.strip_prefix(FORMAT));
        ComponentFacts {
            version: version.to_owned(),
            contract: contract.unwrap_or_default().to_owned(),
            imports: imports.to_vec(),
            exports: exports.to_vec(),
            capabilities,
        }
    }
}
