//! Serialized form of a judging call's context, which all versions of the call share. Recordings
//! name the purpose as the contract does. Older recordings contain the Rust name, such as
//! `Publish`.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{PolicyContext, PolicyPurpose};

const PURPOSES: [PolicyPurpose; 4] =
    [PolicyPurpose::Publish, PolicyPurpose::Fetch, PolicyPurpose::List, PolicyPurpose::Preview];

/// The contract's name of the purpose of a judgement.
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
    if let Some(Value::String(word)) = all.get_mut("purpose")
        && let Some(purpose) = PURPOSES.into_iter().find(|purpose| purpose_word(*purpose) == word)
    {
        // Converts it to the name that the bindings use.
        *word = serde_json::to_value(purpose)
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
    struct Wrapper(#[serde(with = "super")] PolicyContext);

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
    fn a_purpose_has_the_contracts_name_and_the_old_name_is_still_read() {
        for purpose in PURPOSES {
            let mut written = serde_json::to_value(Wrapper(context(purpose))).unwrap();
            assert_eq!(written["purpose"], purpose_word(purpose));
            let read = |value: &Value| serde_json::from_value::<Wrapper>(value.clone()).unwrap().0.purpose;
            assert_eq!(read(&written), purpose);
            written["purpose"] = format!("{purpose:?}").trim_start_matches("Purpose::").into();
            assert_eq!(read(&written), purpose, "{written}");
        }
        let mut other = serde_json::to_value(Wrapper(context(PolicyPurpose::List))).unwrap();
        other["purpose"] = "weather".into();
        assert!(serde_json::from_value::<Wrapper>(other).is_err());
    }
}
