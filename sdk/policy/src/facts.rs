//! What a policy is given, and what it answers.

/// What for versions are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A client publishes them.
    Publish,
    /// A file of them is fetched through a proxy.
    Fetch,
    /// They stand in a list that a proxy is about to serve.
    List,
    /// Somebody looks at what the policy would do.
    #[default]
    Preview,
}

/// What is the same for all versions of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// What for.
    pub purpose: Purpose,
    /// Now, in ms since 1970.
    pub now: u64,
    /// `npm`, `python`, `maven`, …
    pub format: String,
    /// The repository's name.
    pub repository: String,
    /// `hosted` or `proxy`.
    pub kind: String,
    /// A proxy's upstream address.
    pub upstream: Option<String>,
    /// Who asks, as it may be shown.
    pub caller: Option<String>,
    /// Packages that the organization uses, where the description wants them.
    pub names_in_use: Vec<String>,
}

/// A file of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// In the repository.
    pub path: String,
    /// Bytes.
    pub size: u64,
    /// As `sha256:` and hex.
    pub digest: String,
}

/// A statement about where a version was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Who signed it.
    pub identity: String,
    /// Who vouches for that.
    pub issuer: String,
    /// What it was built of.
    pub source_repository: String,
    /// Of that.
    pub commit: String,
    /// Of the file that it is about.
    pub digest: String,
    /// Whether the signature holds.
    pub verified: bool,
}

/// A known fault.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advisory {
    /// Its identifier.
    pub id: String,
    /// `critical`, `high`, `medium`, `low`, or empty.
    pub severity: String,
    /// Whether the version itself is the fault.
    pub malware: bool,
    /// One line.
    pub summary: String,
}

/// A version, as far as the host knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The package.
    pub name: String,
    /// The version.
    pub version: String,
    /// When it came into the world, in ms since 1970.
    pub published: Option<u64>,
    /// `yanked`, `deprecated`, `withdrawn`, or empty.
    pub state: String,
    /// As its author states it.
    pub license: Option<String>,
    /// Its files.
    pub files: Vec<File>,
    /// The format's own facts.
    pub properties: Vec<(String, String)>,
    /// Where it was built.
    pub provenance: Vec<Provenance>,
    /// Known faults of it.
    pub advisories: Vec<Advisory>,
}

impl Facts {
    /// Package and version, as sentences name it.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.name.as_str(), self.version.as_str()) {
            ("", "") => "A file of no known package".to_owned(),
            (name, "") => format!("A file of {name} without a version"),
            (name, version) => format!("{name} {version}"),
        }
    }
}

/// What a policy says of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It passes.
    Allow,
    /// It passes; the sentence is for the log and for previews.
    Warn(String),
    /// It does not pass yet.
    Hold {
        /// For whoever is refused.
        sentence: String,
        /// From when on it may be judged otherwise, in ms since 1970.
        until: Option<u64>,
    },
    /// It does not pass.
    Deny(String),
}

impl Ruling {
    /// It does not pass, with a sentence for whoever is refused.
    #[must_use]
    pub fn deny(sentence: impl Into<String>) -> Ruling {
        Ruling::Deny(sentence.into())
    }

    /// It passes, with a sentence for the log.
    #[must_use]
    pub fn warn(sentence: impl Into<String>) -> Ruling {
        Ruling::Warn(sentence.into())
    }
}
