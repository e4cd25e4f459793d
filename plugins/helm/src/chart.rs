//! What a chart says of itself: Chart.yaml, and the same in an index.

use crate::name;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Bytes of a Chart.yaml.
pub(crate) const CHART_YAML: u64 = 256 << 10;

/// The fields that Helm knows. Others are left out, because it refuses an index that has one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Chart {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) annotations: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) app_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dependencies: Option<Vec<Dependency>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deprecated: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) icon: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keywords: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) kube_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) maintainers: Option<Vec<Maintainer>>,
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sources: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tags: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) kind: Option<String>,
    pub(crate) version: String,
}

/// Who looks after a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Maintainer {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// A chart that another one needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) condition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    import_values: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<String>,
}

impl Chart {
    /// Reads a Chart.yaml.
    ///
    /// # Errors
    /// A sentence for whoever made the chart.
    pub(crate) fn read(text: &[u8]) -> Result<Self, String> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! { max_events: 100_000, max_depth: 64, max_documents: 1 },
        };
        let chart: Self = serde_saphyr::from_slice_with_options(text, options)
            .map_err(|error| format!("Its Chart.yaml cannot be read: {}", first_line(&error.to_string())))?;
        if !name::is_name(&chart.name) {
            return Err(format!("Its Chart.yaml says name {:?}, which is no name of a chart", chart.name));
        }
        if name::version(&chart.version).is_none() {
            return Err(format!(
                "Its Chart.yaml says version {:?}, which is no semantic version",
                chart.version
            ));
        }
        match chart.api_version.as_deref() {
            Some("v1" | "v2") => Ok(chart),
            _ => Err("Its Chart.yaml says no apiVersion that Helm knows: v2, or v1".to_owned()),
        }
    }

    /// Whether it is one of this name and a version that Helm could sort: what an upstream's index says may be anything.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.name == name && name::is_name(name) && name::version(&self.version).is_some()
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::Chart;
    use proptest::prelude::*;

    #[test]
    fn a_chart_yaml_is_read() {
        let text = "apiVersion: v2\nname: demo\nversion: 1.2.0\nappVersion: \"1.16\"\ntype: application\nkeywords: [a, b]\n\
                    maintainers:\n- name: Ann\n  email: ann@example.org\ndependencies:\n- name: redis\n  version: ^17\n  \
                    repository: https://example.org\n  import-values: [data, {child: a, parent: b}]\nunknown: 7\nhome: null\n";
        let chart = Chart::read(text.as_bytes()).unwrap();
        assert_eq!((chart.name.as_str(), chart.version.as_str()), ("demo", "1.2.0"));
        assert_eq!(chart.app_version.as_deref(), Some("1.16"));
        assert_eq!(chart.dependencies.as_ref().unwrap()[0].version.as_deref(), Some("^17"));
        let json = serde_json::to_value(&chart).unwrap();
        assert!(json.get("unknown").is_none() && json.get("home").is_none());
        assert_eq!(json["type"], "application");
        assert_eq!(json["dependencies"][0]["import-values"][1]["child"], "a");
    }

    #[test]
    fn what_is_no_chart_is_refused_in_words() {
        for (text, words) in [
            ("", "Chart.yaml"),
            ("apiVersion: v2\nname: a/b\nversion: 1.0.0", "no name"),
            ("apiVersion: v2\nname: demo\nversion: latest", "no semantic version"),
            ("name: demo\nversion: 1.0.0", "apiVersion"),
            ("apiVersion: v9\nname: demo\nversion: 1.0.0", "apiVersion"),
            ("[1, 2", "cannot be read"),
            ("a: &a [x]\nb: [*a, *a]\napiVersion: v2\nname: demo\nversion: {}", "Chart.yaml"),
        ] {
            let refused = Chart::read(text.as_bytes()).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Chart::read(&bytes);
        }

        #[test]
        fn any_text_is_read(text in "(apiVersion: v2\n)?[a-z:\\-\n \\[\\]{}&*!'\"|>#,]{0,80}") {
            let _ = Chart::read(text.as_bytes());
        }
    }
}
