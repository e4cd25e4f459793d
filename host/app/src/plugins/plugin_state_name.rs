//! The states of components, as the API and the portal name them.

/// State of a component in its format.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PluginStateName {
    Active,
    /// The component can be activated.
    Candidate,
    /// The component was active before.
    Retired,
    /// The component cannot run on this server.
    Refused,
    /// The component must be compiled before it can serve, as at the start of the server.
    Compiling,
}

impl PluginStateName {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            PluginStateName::Active => "active",
            PluginStateName::Candidate => "candidate",
            PluginStateName::Retired => "retired",
            PluginStateName::Refused => "refused",
            PluginStateName::Compiling => "compiling",
        }
    }
}
