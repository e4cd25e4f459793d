//! Settings as inputs of forms: the input element, the words for people, and the group in the form.
//! A plugin's own settings get their words from its description.

use packhouse_runtime::{Description, Setting, SettingUnit};

use super::words::{self, Words};
use super::{Shape, declared_shape, own};

/// Input element for a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Form {
    Switch,
    Number,
    /// One line of text, or empty.
    Text,
    /// Several lines of text, or empty.
    Lines,
    Choice(Vec<String>),
    /// Texts, one on each line.
    List,
}

/// Part of a form that a setting belongs to, in the order of the form.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum SettingGroup {
    Publishing,
    Space,
    Names,
    Releases,
    Cache,
    Connection,
    /// Settings that only the format's plugin declares.
    Format,
    /// Settings that expose packages, or let a package change under its users.
    Danger,
}

impl SettingGroup {
    /// Returns the heading of the group. Headings of settings of a format come from the form.
    pub fn title(self) -> &'static str {
        match self {
            Self::Publishing => "Publishing",
            Self::Space => "Space and deletion",
            Self::Names => "Names",
            Self::Releases => "New releases",
            Self::Cache => "Cache",
            Self::Connection => "Connection to the upstream",
            Self::Format => "Format",
            Self::Danger => "Dangerous settings",
        }
    }
}

/// A setting as an input of a form.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FormSetting {
    pub shape: Form,
    /// Label of the input in the portal.
    pub title: String,
    /// Help of one sentence for people; may be empty.
    pub summary: String,
    /// Unit of the values of a number; `None` for other settings and for plain numbers.
    pub unit: Option<SettingUnit>,
    pub group: SettingGroup,
    /// Kinds of repository that the setting applies to; empty for all.
    pub kinds: Vec<String>,
}

impl FormSetting {
    /// Returns the input of a setting with this name. A setting that is not the host's gets its
    /// label and its unit from the name.
    pub fn named(name: &str, shape: Form) -> FormSetting {
        let Some(words) = words::of(name) else {
            let (title, unit) = words::from_name(name);
            let unit = unit.filter(|_| shape == Form::Number);
            let (group, summary, kinds) = (SettingGroup::Format, String::new(), Vec::new());
            return FormSetting { shape, title, summary, unit, group, kinds };
        };
        let Words { group, kinds, unit, title, summary } = words;
        let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
        FormSetting { shape, title: title.to_owned(), summary: summary.to_owned(), unit, group, kinds }
    }

    /// Takes the words of the plugin's declaration where it has any.
    fn reword(&mut self, declared: &Setting) {
        if !declared.title.is_empty() {
            self.title.clone_from(&declared.title);
        }
        if !declared.summary.is_empty() {
            self.summary.clone_from(&declared.summary);
        }
    }

    fn applies_to(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|known| known == kind)
    }
}

fn form(shape: Shape<'_>) -> Form {
    match shape {
        Shape::Switch => Form::Switch,
        Shape::Seconds | Shape::Bytes => Form::Number,
        Shape::Text => Form::Lines,
        Shape::Address => Form::Text,
        Shape::Choice(choices) => Form::Choice(choices.into_iter().map(str::to_owned).collect()),
        Shape::List => Form::List,
    }
}

/// Returns every setting by its name: first the host's settings, then those that only the format's
/// plugin declares.
pub fn form_settings(description: Option<&Description>) -> Vec<(String, FormSetting)> {
    let own = own().into_iter();
    let mut all: Vec<(String, FormSetting)> =
        own.map(|(name, shape, _)| (name.to_owned(), FormSetting::named(name, form(shape)))).collect();
    for (name, declared) in description.into_iter().flat_map(|one| &one.settings) {
        if let Some((_, known)) = all.iter_mut().find(|(known, _)| known == name) {
            // The host checks its own setting, but the plugin knows what the setting does here.
            known.reword(declared);
            continue;
        }
        let mut setting = FormSetting::named(name, form(declared_shape(declared)));
        setting.unit = declared.unit.or(setting.unit).filter(|_| setting.shape == Form::Number);
        setting.kinds.clone_from(&declared.repository_kinds);
        setting.reword(declared);
        all.push((name.clone(), setting));
    }
    all
}

/// Returns the settings that apply to a repository of this kind and format, ordered by group.
pub fn settings_of_kind(kind: &str, description: Option<&Description>) -> Vec<(String, FormSetting)> {
    let unused = description.map(|one| one.unused_settings.as_slice()).unwrap_or_default();
    let mut settings = form_settings(description);
    settings.retain(|(name, setting)| setting.applies_to(kind) && !unused.contains(name));
    settings.sort_by_key(|(_, setting)| setting.group);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(kind: &str, description: Option<&Description>) -> Vec<String> {
        settings_of_kind(kind, description).into_iter().map(|(name, _)| name).collect()
    }

    fn description(settings: &str) -> Description {
        let text = format!(r#"{{"format": "x", "version": "1", {settings}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn every_setting_of_the_host_has_a_label_and_help() {
        for (name, setting) in form_settings(None) {
            assert!(words::of(&name).is_some(), "{name}");
            assert!(!setting.title.is_empty() && setting.summary.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn a_kind_has_only_its_settings() {
        let hosted = names("hosted", None);
        assert!(hosted.iter().any(|name| name == "quota_bytes"));
        for name in ["metadata_ttl_s", "negative_ttl_s", "ca_pem", "offline", "egress_proxy"] {
            assert!(!hosted.iter().any(|known| known == name), "{name}");
            assert!(names("proxy", None).iter().any(|known| known == name), "{name}");
        }
        assert_eq!(names("group", None), ["claimed_names", "public"]);
        assert_eq!(hosted.last().map(String::as_str), Some("republish_deleted"), "dangerous ones come last");
        let format = description(r#""unused_settings": ["keep_untagged"]"#);
        assert!(!names("hosted", Some(&format)).iter().any(|name| name == "keep_untagged"));
    }

    #[test]
    fn a_plugin_names_its_own_settings() {
        let format = description(
            r#""settings": {
                "redeploy": {"kind": "choice", "default": "deny", "choices": ["deny", "identical"], "summary": "Own words"},
                "wait_s": {"kind": "integer", "default": 1},
                "depth": {"kind": "integer", "default": 1, "title": "Levels", "repository_kinds": ["proxy"], "unit": "days"}}"#,
        );
        let all = form_settings(Some(&format));
        assert_eq!(all.iter().filter(|(name, _)| name == "redeploy").count(), 1);
        let one = |name: &str| all.iter().find(|(known, _)| known == name).unwrap().1.clone();
        assert_eq!(one("redeploy").summary, "Own words");
        assert_eq!((one("wait_s").title.as_str(), one("wait_s").unit), ("Wait", Some(SettingUnit::Seconds)));
        assert_eq!((one("depth").title.as_str(), one("depth").unit), ("Levels", Some(SettingUnit::Days)));
        assert!(!names("hosted", Some(&format)).iter().any(|name| name == "depth"));
    }
}
