//! The specification of a gem: the YAML of a `Gem::Specification`. The reader ignores the YAML tags
//! that name Ruby classes.

use crate::{name, version};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Largest unpacked `metadata.gz`, in bytes.
pub(crate) const METADATA: u64 = 512 << 10;
/// Most dependencies of a gem, and most requirements of a dependency.
const MANY: usize = 1_000;

/// A gem's specification, as far as indexes and pages need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Spec {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) platform: String,
    pub(crate) authors: Vec<String>,
    pub(crate) email: Vec<String>,
    pub(crate) summary: String,
    pub(crate) description: String,
    pub(crate) homepage: String,
    pub(crate) licenses: Vec<String>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) dependencies: Vec<GemDependency>,
    pub(crate) ruby: Vec<Requirement>,
    pub(crate) rubygems: Vec<Requirement>,
    /// The version of RubyGems that built the gem.
    pub(crate) built_by: String,
    /// The day of the build: `2026-11-21`.
    pub(crate) date: String,
}

/// A dependency of a gem on another gem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GemDependency {
    pub(crate) name: String,
    pub(crate) requirements: Vec<Requirement>,
    /// True if the dependency is needed only for development of the gem.
    pub(crate) development: bool,
}

/// A comparison such as `>=`, and the version to compare with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Requirement(pub(crate) String, pub(crate) String);

/// The specification as it is in the YAML.
#[derive(Deserialize)]
struct Raw {
    name: String,
    version: RawVersion,
    platform: Option<String>,
    authors: Option<Vec<Option<String>>>,
    email: Option<OneOrMany>,
    summary: Option<String>,
    description: Option<String>,
    homepage: Option<String>,
    licenses: Option<Vec<Option<String>>>,
    metadata: Option<BTreeMap<String, Option<String>>>,
    dependencies: Option<Vec<RawDependency>>,
    required_ruby_version: Option<RawRequirement>,
    required_rubygems_version: Option<RawRequirement>,
    rubygems_version: Option<String>,
    date: Option<String>,
}

#[derive(Deserialize)]
struct RawVersion {
    version: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<Option<String>>),
}

#[derive(Deserialize)]
struct RawDependency {
    name: String,
    requirement: Option<RawRequirement>,
    version_requirements: Option<RawRequirement>,
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct RawRequirement {
    requirements: Vec<(String, RawVersion)>,
}

impl Spec {
    /// Reads the YAML of a gem.
    ///
    /// # Errors
    /// Returns a sentence for the publisher of the gem.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_events: 200_000, max_depth: 32, max_documents: 1 },
        };
        let raw: Raw = serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
            let line: String =
                error.to_string().lines().next().unwrap_or_default().chars().take(200).collect();
            format!("Its metadata cannot be read: {line}")
        })?;
        Self::of(raw)
    }

    fn of(raw: Raw) -> Result<Self, String> {
        let version = raw.version.version;
        let platform = raw.platform.filter(|text| !text.is_empty()).unwrap_or_else(|| "ruby".to_owned());
        if !name::is_name(&raw.name) {
            return Err(format!("Its name {:?} is not a valid gem name", raw.name));
        }
        if !version::is_version(&version) {
            return Err(format!("Its version {version:?} is not a valid gem version"));
        }
        if !name::is_platform(&platform) {
            return Err(format!("Its platform {platform:?} is not a valid platform name"));
        }
        let dependencies = raw.dependencies.unwrap_or_default();
        if dependencies.len() > MANY {
            return Err("It has more than 1,000 dependencies".to_owned());
        }
        let mut dependencies =
            dependencies.into_iter().map(GemDependency::of).collect::<Result<Vec<_>, _>>()?;
        dependencies.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self {
            name: raw.name,
            version,
            platform,
            authors: raw.authors.into_iter().flatten().flatten().collect(),
            email: match raw.email {
                None => Vec::new(),
                Some(OneOrMany::One(one)) => vec![one],
                Some(OneOrMany::Many(many)) => many.into_iter().flatten().collect(),
            },
            summary: raw.summary.unwrap_or_default(),
            description: raw.description.unwrap_or_default(),
            homepage: raw.homepage.unwrap_or_default(),
            licenses: raw.licenses.into_iter().flatten().flatten().collect(),
            metadata: raw
                .metadata
                .into_iter()
                .flatten()
                .filter_map(|(name, value)| Some((name, value?)))
                .collect(),
            dependencies,
            ruby: requirements(raw.required_ruby_version)?,
            rubygems: requirements(raw.required_rubygems_version)?,
            built_by: raw.rubygems_version.unwrap_or_default(),
            date: date(&raw.date.unwrap_or_default()),
        })
    }

    /// Returns the version with its platform, as in indexes.
    pub(crate) fn number(&self) -> String {
        name::number(&self.version, &self.platform)
    }

    /// Returns the stem of the file name.
    pub(crate) fn stem(&self) -> String {
        format!("{}-{}", self.name, self.number())
    }
}

impl GemDependency {
    fn of(raw: RawDependency) -> Result<Self, String> {
        if !name::is_name(&raw.name) {
            return Err(format!("It depends on {:?}, which is not a valid gem name", raw.name));
        }
        let development =
            raw.kind.as_deref().is_some_and(|kind| kind.trim_start_matches(':') == "development");
        let requirements = requirements(raw.requirement.or(raw.version_requirements))?;
        Ok(Self { name: raw.name, requirements, development })
    }
}

/// Reads version requirements. Replaces an empty list by `>= 0`, which accepts any version.
fn requirements(raw: Option<RawRequirement>) -> Result<Vec<Requirement>, String> {
    let all = raw.map(|raw| raw.requirements).unwrap_or_default();
    if all.len() > MANY {
        return Err("A dependency has more than 1,000 requirements".to_owned());
    }
    let read = all.into_iter().map(|(comparison, raw)| {
        let known = matches!(comparison.as_str(), "=" | "!=" | ">" | "<" | ">=" | "<=" | "~>");
        if !known || !version::is_version(&raw.version) {
            return Err(format!("\"{comparison} {}\" is not a valid version requirement", raw.version));
        }
        Ok(Requirement(comparison, raw.version))
    });
    let read = read.collect::<Result<Vec<_>, _>>()?;
    Ok(if read.is_empty() { vec![Requirement(">=".to_owned(), "0".to_owned())] } else { read })
}

/// Returns the day at the start of a time; empty if the text does not start with a day.
fn date(text: &str) -> String {
    let day = text.get(..10).unwrap_or_default();
    let shape = day.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    });
    if day.len() == 10 && shape { day.to_owned() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The specification of a gem as `gem build` writes it.
    const YAML: &str = "--- !ruby/object:Gem::Specification\nname: demo\nversion: !ruby/object:Gem::Version\n  version: '1.10'\nplatform: ruby\nauthors:\n- Ann\n\
        autorequire:\nbindir: bin\ncert_chain: []\ndate: 2026-11-21 00:00:00.000000000 Z\ndependencies:\n- !ruby/object:Gem::Dependency\n  name: rake\n  \
        requirement: &1 !ruby/object:Gem::Requirement\n    requirements:\n    - - \"~>\"\n      - !ruby/object:Gem::Version\n        version: '13.0'\n    - - \">=\"\n      \
        - !ruby/object:Gem::Version\n        version: 13.0.1\n  type: :runtime\n  prerelease: false\n  version_requirements: *1\n\
        - !ruby/object:Gem::Dependency\n  name: minitest\n  requirement: !ruby/object:Gem::Requirement\n    requirements:\n    - - \">=\"\n      \
        - !ruby/object:Gem::Version\n        version: '0'\n  type: :development\n  prerelease: false\n\
        description:\nemail: ann@example.org\nexecutables: []\nfiles:\n- lib/demo.rb\nhomepage: https://example.org\nlicenses:\n- MIT\n\
        metadata:\n  source_code_uri: https://example.org/src\npost_install_message:\nrequire_paths:\n- lib\n\
        required_ruby_version: !ruby/object:Gem::Requirement\n  requirements:\n  - - \">=\"\n    - !ruby/object:Gem::Version\n      version: '2.7'\n\
        required_rubygems_version: !ruby/object:Gem::Requirement\n  requirements:\n  - - \">=\"\n    - !ruby/object:Gem::Version\n      version: '0'\n\
        rubygems_version: 3.3.15\nsigning_key:\nspecification_version: 4\nsummary: About demo\ntest_files: []\n";

    #[test]
    fn the_output_of_gem_build_is_read() {
        let spec = Spec::read(YAML.as_bytes()).unwrap();
        assert_eq!(
            (spec.name.as_str(), spec.version.as_str(), spec.platform.as_str()),
            ("demo", "1.10", "ruby")
        );
        assert_eq!(
            (spec.stem().as_str(), spec.date.as_str(), spec.built_by.as_str()),
            ("demo-1.10", "2026-11-21", "3.3.15")
        );
        assert_eq!(
            (spec.email.as_slice(), spec.licenses.as_slice()),
            (&["ann@example.org".to_owned()][..], &["MIT".to_owned()][..])
        );
        let [minitest, rake] = spec.dependencies.as_slice() else { panic!("two") };
        assert!(minitest.development && !rake.development);
        let pair = |one: &str, other: &str| Requirement(one.to_owned(), other.to_owned());
        assert_eq!(rake.requirements, [pair("~>", "13.0"), pair(">=", "13.0.1")]);
        assert_eq!(spec.ruby, [pair(">=", "2.7")]);
    }

    #[test]
    fn an_invalid_specification_is_refused_with_a_reason() {
        for (from, to, words) in [
            ("name: demo", "name: ../demo", "not a valid gem name"),
            ("version: '1.10'", "version: '1.10-x'", "not a valid gem version"),
            ("platform: ruby", "platform: a b", "not a valid platform name"),
            ("\"~>\"", "\"\\n~>\"", "not a valid version requirement"),
            ("name: rake", "name: 'a,b'", "not a valid gem name"),
            ("name: demo", "name: {}", "cannot be read"),
        ] {
            let refused = Spec::read(YAML.replacen(from, to, 1).as_bytes()).unwrap_err();
            assert!(refused.contains(words), "{from} {to}: {refused}");
        }
        assert!(Spec::read(b"").is_err() && Spec::read(b"[1]").is_err());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "[a-z:\\-\n \\[\\]{}&*!'\"|>#,/]{0,120}") {
            let _ = Spec::read(text.as_bytes());
        }
    }
}
