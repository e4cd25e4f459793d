//! What is the same for all versions of a judging call, as it stands in a recording: its purpose as the contract names it. In those that were
//! made before, it stands as `Publish`.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{PolicyContext, PolicyPurpose};

const PURPOSES: [PolicyPurpose; 4] =
    [PolicyPurpose::Publish, PolicyPurpose::Fetch, PolicyPurpose::List, PolicyPurpose::Preview];

/// What versions are judged for, as the contract names it.
#[must_use]
pub fn purpose_word(purpose: PolicyPurpose) -> &'static str {
    match purpose {
        PolicyPurpose::Publish => "publish",
        PolicyPurpose::Fetch => "fetch",
        PolicyPurpose::List => "list",
        PolicyPurpose::Preview => "preview",
    }
}

pub(super) fn serialize<S: Serializer>(context: &PolicyContext, serializer: S) -> Result<S::Ok, S::Error> {
    let mut all = serde_json::to_value(context).map_err(S::Error::custom)?;
    if let Some(purpose) = all.get_mut("purpose") {
        *purpose = purpose_word(context.purpose).into();
    }
    all.serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PolicyContext, D::Error> {
    let mut all = Value::deserialize(deserializer)?;
    if let Some(Value::String(told)) = all.get_mut("purpose")
        && let Some(purpose) = PURPOSES.into_iter().find(|purpose| purpose_word(*purpose) == told)
    {
        // As the bindings' own reading has it.
        *told = serde_json::to_value(purpose)
            .ok()
            .and_then(|own| own.as_str().map(str::to_owned))
            .unwrap_or_default();
    }
    serde_json::from_value(all).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Held(#[serde(with = "super")] PolicyContext);

    fn context(purpose: PolicyPurpose) -> PolicyContext {
        PolicyContext {
            purpose,
            now: 1,
            format: "a".to_owned(),
            repository: "b".to_owned(),
            kind: "hosted".to_owned(),
            upstream: None,
            caller: None,
            names_in_use: Vec::new(),
        }
    }

    #[test]
    fn a_purpose_is_written_as_the_contract_names_it_and_read_as_it_was_before() {
        for purpose in PURPOSES {
            let mut written = serde_json::to_value(Held(context(purpose))).unwrap();
            assert_eq!(written["purpose"], purpose_word(purpose));
            let read = |value: &Value| serde_json::from_value::<Held>(value.clone()).unwrap().0.purpose;
            assert_eq!(read(&written), purpose);
            written["purpose"] = format!("{purpose:?}").trim_start_matches("Purpose::").into();
            assert_eq!(read(&written), purpose, "{written}");
        }
        let mut other = serde_json::to_value(Held(context(PolicyPurpose::List))).unwrap();
        other["purpose"] = "weather".into();
        assert!(serde_json::from_value::<Held>(other).is_err());
    }
}
