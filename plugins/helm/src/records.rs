//! What the format remembers: the keys of its records, and what stands in them.
//!
//! | key | what |
//! | --- | --- |
//! | `c/<chart>/<version>` | a version: what it says of itself, its file, its signature, whether it is deprecated |
//! | `f/<file>` | which chart and version has the file of this name, or had it: the record stays when the version goes |
//! | `p/<chart>/<version>` | a proxy's: a version whose file was fetched, as the upstream's index had it |
//!
//! Names of charts hold no slash.

use crate::chart::Chart;
use crate::listed::Listed;
use crate::name;
use packhouse_sdk::{Digest, Error, Repository, Timestamp, Version};
use serde::{Deserialize, Serialize};

pub(crate) const CHARTS: &str = "c/";
pub(crate) const FETCHED: &str = "p/";

pub(crate) fn versions(chart: &str) -> String {
    format!("c/{chart}/")
}

pub(crate) fn version(chart: &str, version: &str) -> String {
    format!("c/{chart}/{version}")
}

pub(crate) fn file(file: &str) -> String {
    format!("f/{file}")
}

pub(crate) fn fetched(chart: &str, version: &str) -> String {
    format!("p/{chart}/{version}")
}

/// A version of a chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ChartRecord {
    pub(crate) chart: Chart,
    pub(crate) sha256: Digest,
    /// Bytes.
    pub(crate) size: u64,
    /// When it was published, in ms since 1970.
    pub(crate) time: u64,
    /// Its signature: a `.prov` file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) provenance: Option<Digest>,
    /// Why nobody should use it any more, as somebody said beside the chart; the reason may be empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<String>,
}

impl ChartRecord {
    /// Every blob that it keeps alive.
    pub(crate) fn blobs(&self) -> Vec<Digest> {
        [self.sha256.clone()].into_iter().chain(self.provenance.clone()).collect()
    }

    /// What people see of it, without its file.
    pub(crate) fn shown(&self) -> Version {
        let mut shown = shown(&self.chart);
        if let Some(reason) = &self.deprecated {
            shown = shown.state("deprecated");
            if !reason.is_empty() {
                shown = shown.property("reason", reason);
            }
        }
        shown
    }

    /// As an index lists it.
    pub(crate) fn listed(self) -> Listed {
        let mut chart = self.chart;
        if self.deprecated.is_some() {
            chart.deprecated = Some(true);
        }
        Listed {
            chart,
            created: Timestamp::from_ms(self.time).to_rfc3339(),
            digest: Some(self.sha256.hex().to_owned()),
            url: String::new(),
        }
    }
}

/// What people see of a chart's version.
pub(crate) fn shown(chart: &Chart) -> Version {
    let mut shown = Version::new(&chart.name, &chart.version).summary(summary(chart));
    for (name, value) in
        [("app_version", &chart.app_version), ("kube_version", &chart.kube_version), ("home", &chart.home)]
    {
        if let Some(value) = value.as_ref().filter(|value| !value.is_empty()) {
            shown = shown.property(name, short(value));
        }
    }
    if let Some(words) = chart.keywords.as_ref().filter(|words| !words.is_empty()) {
        shown = shown.property("keywords", short(&words.join(" ")));
    }
    if chart.deprecated == Some(true) { shown.state("deprecated") } else { shown }
}

fn summary(chart: &Chart) -> String {
    let text = chart.description.as_deref().unwrap_or_default();
    short(text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim())
}

fn short(text: &str) -> String {
    text.chars().filter(|symbol| !symbol.is_control()).take(400).collect()
}

/// Whose a file's name is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// A version whose file a proxy fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fetched {
    pub(crate) listed: Listed,
    /// Whether the upstream lists it no longer.
    #[serde(default)]
    pub(crate) withdrawn: bool,
}

/// The version that has the file of this name.
pub(crate) fn by_file(repository: &Repository, asked: &str) -> Result<Option<ChartRecord>, Error> {
    if name::cuts(asked).is_empty() {
        return Ok(None);
    }
    let Some(holder) = repository.get_json::<Holder>(&file(asked))? else { return Ok(None) };
    let Holder { name, version: number } = holder.value;
    Ok(repository.get_json::<ChartRecord>(&version(&name, &number))?.map(|entry| entry.value))
}
