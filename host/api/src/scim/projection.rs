//! Attributes that a client requests or excludes (RFC 7644, section 3.9). Whole attributes are
//! requested and excluded, also if the client names a sub-attribute.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::filter::AttributePath;
use crate::call::Call;
use crate::error::ApiError;

/// Attributes that every response has.
const ALWAYS: [&str; 2] = ["schemas", "id"];

/// Selection of the attributes in a response. Names are in lower case.
pub(super) struct Projection {
    /// Attributes to return; all of them if it is empty.
    requested: BTreeSet<String>,
    excluded: BTreeSet<String>,
}

impl Projection {
    pub(super) fn of(call: &Call) -> Projection {
        let names = |parameter: &str| names(call.query(parameter).unwrap_or_default());
        Projection { requested: names("attributes"), excluded: names("excludedAttributes") }
    }

    /// Returns whether responses have this attribute, which is named in lower case.
    pub(super) fn includes(&self, name: &str) -> bool {
        if self.requested.is_empty() { !self.excluded.contains(name) } else { self.requested.contains(name) }
    }

    /// Makes the resource of the response.
    pub(super) fn apply(&self, resource: &impl Serialize) -> Result<Value, ApiError> {
        let mut value = serde_json::to_value(resource).map_err(anyhow::Error::from)?;
        if let Value::Object(attributes) = &mut value {
            attributes.retain(|name, _| {
                ALWAYS.contains(&name.as_str()) || self.includes(&name.to_ascii_lowercase())
            });
        }
        Ok(value)
    }
}

/// Reads a list of attributes, separated by commas. Malformed names are left out.
fn names(list: &str) -> BTreeSet<String> {
    list.split(',').filter_map(AttributePath::parse).map(|path| path.attribute).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn project(requested: &str, excluded: &str) -> Value {
        let resource = json!({"schemas": [], "id": "1", "displayName": "A", "members": [], "meta": {}});
        Projection { requested: names(requested), excluded: names(excluded) }.apply(&resource).unwrap()
    }

    #[test]
    fn attributes_are_requested_or_excluded_in_any_case() {
        assert_eq!(project("", "Members").as_object().unwrap().len(), 4);
        assert_eq!(project("displayname, meta.location", "").as_object().unwrap().len(), 4);
        assert_eq!(project("id", "").as_object().unwrap().len(), 2);
        assert_eq!(project("", "id,schemas").as_object().unwrap().len(), 5);
        assert_eq!(project(",,a b", "").as_object().unwrap().len(), 5);
        let name = "urn:ietf:params:scim:schemas:core:2.0:Group:members";
        assert_eq!(project("", name).get("members"), None);
    }
}
