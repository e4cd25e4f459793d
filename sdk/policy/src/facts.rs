//! Input and output of a policy.

/// Reason for judging versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// A client publishes the versions.
    Publish,
    /// A client fetches a file of the versions through a proxy.
    Fetch,
    /// A proxy is about to list the versions.
    List,
    /// A person looks at what the policy would do.
    #[default]
    Preview,
}

/// Facts that are the same for all versions of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Context {
    /// Reason for the call.
    pub purpose: Purpose,
    /// Current Unix time in ms.
    pub now: u64,
    /// Name of the format: `npm`, `python`, `maven`, …
    pub format: String,
    /// Name of the repository.
    pub repository: String,
    /// Kind of the repository: `hosted` or `proxy`.
    pub kind: String,
    /// Address of a proxy's upstream.
    pub upstream: Option<String>,
    /// Name of the caller; `None` for anonymous callers and for lists.
    pub caller: Option<String>,
    /// Names of the packages that the organization publishes or has downloaded; empty unless the
    /// description requests them.
    pub names_in_use: Vec<String>,
}

/// File of a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Path in the repository.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// Digest as `sha256:` and hex.
    pub digest: String,
}

/// Statement about where a version was built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// Signer.
    pub identity: String,
    /// Issuer of the signer's identity.
    pub issuer: String,
    /// Source repository from which the version was built.
    pub source_repository: String,
    /// Commit of the source repository.
    pub commit: String,
    /// Digest of the file that the statement is about.
    pub digest: String,
    /// True if the signature is valid. Otherwise the other fields are not trustworthy.
    pub verified: bool,
}

/// Known vulnerability or malware.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advisory {
    /// Identifier of the advisory.
    pub id: String,
    /// `critical`, `high`, `medium`, `low`, or empty if the severity is unknown.
    pub severity: String,
    /// True if the version itself is malicious.
    pub malware: bool,
    /// Summary in one line.
    pub summary: String,
}

/// Facts that the host knows about a version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Name of the package.
    pub name: String,
    /// Version number or name.
    pub version: String,
    /// Publication time as Unix time in ms.
    pub published: Option<u64>,
    /// `yanked`, `deprecated`, `withdrawn`, or empty.
    pub state: String,
    /// Licence as stated by the author.
    pub license: Option<String>,
    /// Files of the version.
    pub files: Vec<File>,
    /// Facts of the format as names and values.
    pub properties: Vec<(String, String)>,
    /// Statements about where the version was built.
    pub provenance: Vec<Provenance>,
    /// Known vulnerabilities and malware.
    pub advisories: Vec<Advisory>,
}

impl Facts {
    /// Returns package and version for use in a sentence.
    #[must_use]
    pub fn title(&self) -> String {
        match (self.name.as_str(), self.version.as_str()) {
            ("", "") => "A file of no known package".to_owned(),
            (name, "") => format!("A file of {name} without a version"),
            (name, version) => format!("{name} {version}"),
        }
    }
}

/// Ruling of a policy on a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// The version passes.
    Allow,
    /// The version passes. The host shows the sentence in its log and in previews.
    Warn(String),
    /// The version does not pass yet.
    Hold {
        /// Text for the person whose request is refused.
        sentence: String,
        /// Unix time in ms from which the ruling may change.
        until: Option<u64>,
    },
    /// The version does not pass. The sentence is for the person whose request is refused.
    Deny(String),
}

impl Ruling {
    /// Denies the version, with a sentence for the person whose request is refused.
    #[must_use]
    pub fn deny(sentence: impl Into<String>) -> Ruling {
        Ruling::Deny(sentence.into())
    }

    /// Allows the version, with a sentence for the log.
    #[must_use]
    pub fn warn(sentence: impl Into<String>) -> Ruling {
        Ruling::Warn(sentence.into())
    }
}
