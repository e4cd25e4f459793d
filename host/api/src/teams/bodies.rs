//! Bodies that create and change teams.

use packhouse_identity::permissions::Permissions;
use packhouse_wire::catalogue;
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::error::ApiError;
use crate::fields::{Field, given, is_name};
use crate::members::bodies;
use crate::operations::teams::{TeamChangeRequest, TeamRequest};

/// Maximum length of a name in characters.
const MAX_NAME: usize = 64;
/// Maximum length of a description in characters.
const MAX_DESCRIPTION: usize = 1_000;
/// Maximum number of external groups of a team.
const MAX_GROUPS: usize = 100;
/// Maximum length of the name of an external group in characters.
const MAX_GROUP: usize = 256;

/// A team to create, without members.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateTeam {
    /// 1 to 64 characters, unique in the organization.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = String, required)]
    name: Field,
    /// Text for people; empty by default.
    description: Option<String>,
    /// Permissions of all members of the team, at most those of the caller.
    permissions: Permissions,
    /// Groups of an identity provider. Their members join the team when they sign in.
    external_groups: Option<Vec<String>>,
}

impl CreateTeam {
    pub(crate) fn request(self) -> Result<TeamRequest, ApiError> {
        Ok(TeamRequest {
            name: name(&self.name)?,
            description: self.description.map(description).transpose()?.unwrap_or_default(),
            permissions: bodies::permissions(self.permissions)?,
            external_groups: self.external_groups.map(groups).transpose()?.unwrap_or_default(),
        })
    }
}

/// Changes to a team. Absent fields stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangeTeam {
    /// 1 to 64 characters, unique in the organization.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    name: Field,
    /// Text for people; may be empty.
    description: Option<String>,
    /// All permissions of the team from now on, at most those of the caller.
    permissions: Option<Permissions>,
    /// All external groups of the team from now on. An empty list ends all memberships that come
    /// from external groups.
    external_groups: Option<Vec<String>>,
}

impl ChangeTeam {
    pub(crate) fn request(self) -> Result<TeamChangeRequest, ApiError> {
        Ok(TeamChangeRequest {
            name: self.name.is_some().then(|| name(&self.name)).transpose()?,
            description: self.description.map(description).transpose()?,
            permissions: self.permissions.map(bodies::permissions).transpose()?,
            external_groups: self.external_groups.map(groups).transpose()?,
        })
    }
}

fn name(field: &Field) -> Result<String, ApiError> {
    match field.as_ref().and_then(Value::as_str) {
        Some(name) if is_name(name, MAX_NAME) => Ok(name.to_owned()),
        _ => Err(ApiError::from(&catalogue::INVALID_TEAM_NAME)),
    }
}

fn description(text: String) -> Result<String, ApiError> {
    // PostgreSQL cannot store a NUL in a text.
    if text.chars().count() > MAX_DESCRIPTION || text.contains('\0') {
        return Err(ApiError::invalid(&format!(
            "`description` must have at most {MAX_DESCRIPTION} characters, and no NUL character."
        )));
    }
    Ok(text)
}

/// Checks the names of external groups and removes repetitions.
fn groups(given: Vec<String>) -> Result<Vec<String>, ApiError> {
    let is_group = |group: &String| (1..=MAX_GROUP).contains(&group.chars().count());
    if given.len() > MAX_GROUPS || !given.iter().all(is_group) {
        return Err(ApiError::invalid(&format!(
            "`external_groups` must be a list of at most {MAX_GROUPS} names, each of 1 to {MAX_GROUP} \
             characters."
        )));
    }
    let mut groups = Vec::with_capacity(given.len());
    for group in given {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn code(body: Value) -> &'static str {
        let Ok(body) = serde_json::from_value::<CreateTeam>(body) else { return "shape" };
        match body.request() {
            Ok(_) => "right",
            Err(ApiError::Refused { code, .. }) => code.code,
            Err(ApiError::Internal(_)) => "internal",
        }
    }

    fn with(name: &str, value: Value) -> &'static str {
        let mut body = json!({"name": "Release", "permissions": {}});
        body[name] = value;
        code(body)
    }

    #[test]
    fn a_name_has_1_to_64_plain_characters() {
        assert_eq!(with("name", json!("é".repeat(64))), "right");
        let texts = ["", "a\nb", "a\u{202e}b"].map(Value::from);
        for wrong in texts.into_iter().chain([json!("é".repeat(65)), json!(7), json!(null)]) {
            assert_eq!(with("name", wrong.clone()), "invalid_team_name", "{wrong}");
        }
        assert_eq!(code(json!({"permissions": {}})), "invalid_team_name");
    }

    #[test]
    fn external_groups_and_permissions_are_bounded() {
        assert_eq!(with("external_groups", json!(["a".repeat(256), "a b", "a b"])), "right");
        assert_eq!(with("external_groups", json!(vec!["g"; 101])), "invalid_request");
        for wrong in [json!([""]), json!(["a".repeat(257)])] {
            assert_eq!(with("external_groups", wrong), "invalid_request");
        }
        assert_eq!(with("description", json!("a".repeat(1_001))), "invalid_request");
        assert_eq!(with("description", json!("a\u{0}")), "invalid_request");
        assert_eq!(with("description", json!("two\nlines")), "right");
        let entry = json!({"repositories": [{"actions": ["read"]}]});
        assert_eq!(with("permissions", entry), "invalid_request");
        assert_eq!(with("members", json!([])), "shape");
        assert_eq!(groups(vec!["a".to_owned(), "b".to_owned(), "a".to_owned()]).unwrap(), ["a", "b"]);
    }

    #[test]
    fn absent_fields_of_a_change_stay_as_they_are() {
        let change: ChangeTeam = serde_json::from_value(json!({"description": ""})).unwrap();
        let change = change.request().unwrap();
        assert_eq!((change.name, change.description.as_deref()), (None, Some("")));
        assert!(change.permissions.is_none() && change.external_groups.is_none());
        let null: ChangeTeam = serde_json::from_value(json!({"name": null})).unwrap();
        assert!(null.request().is_err());
    }
}
