//! Groups of SCIM: their attributes in bodies, and the view of a team as a group.

use packhouse_store::{MemberRow, TeamRow};
use packhouse_wire::catalogue;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::filter::{AttributePath, Comparison};
use super::patch::{PatchKind, PatchOperation};
use super::schemas::GROUP;
use super::{ScimMeta, attribute, invalid_value, stored_text};
use crate::error::ApiError;
use crate::fields::is_name;
use crate::operations::scim::groups::{GroupChange, MembersChange};

/// Maximum length of a team's name in characters.
const MAX_NAME: usize = 64;

/// Reads a complete group. 400 `invalid_value` without a `displayName`.
pub(super) fn complete(body: &Map<String, Value>) -> Result<GroupChange, ApiError> {
    let mut change = GroupChange::default();
    for (name, value) in body {
        if let Some(path) = AttributePath::parse(name) {
            set(&mut change, PatchKind::Replace, &path, value)?;
        }
    }
    if change.name.is_none() {
        return Err(invalid_value("`displayName` is required"));
    }
    Ok(change)
}

/// Reads the changes of a PATCH.
pub(super) fn patched(operations: &[PatchOperation]) -> Result<GroupChange, ApiError> {
    let mut change = GroupChange::default();
    for PatchOperation { kind, path, value } in operations {
        set(&mut change, *kind, path, value)?;
    }
    Ok(change)
}

fn set(
    change: &mut GroupChange,
    kind: PatchKind,
    path: &AttributePath,
    value: &Value,
) -> Result<(), ApiError> {
    match (path.attribute.as_str(), path.sub.as_deref(), kind) {
        ("displayname", None, PatchKind::Remove) => {
            return Err(ApiError::with(&catalogue::IMMUTABLE_FIELD, "displayName"));
        }
        ("displayname", None, _) => change.name = Some(team_name(value)?),
        ("externalid", None, PatchKind::Remove) => change.external_id = Some(String::new()),
        ("externalid", None, _) => change.external_id = Some(stored_text("externalId", value)?),
        ("members", None, _) => change.members.push(members_change(kind, path, value)?),
        _ => {}
    }
    Ok(())
}

fn team_name(value: &Value) -> Result<String, ApiError> {
    match value.as_str() {
        Some(name) if is_name(name, MAX_NAME) => Ok(name.to_owned()),
        _ => Err(ApiError::from(&catalogue::INVALID_TEAM_NAME)),
    }
}

/// Reads a change of the members. One that removes members names them in the path, or in the value,
/// as Microsoft Entra ID does, or not at all, which removes every member.
fn members_change(kind: PatchKind, path: &AttributePath, value: &Value) -> Result<MembersChange, ApiError> {
    match (kind, path.selection.as_deref(), value) {
        (PatchKind::Remove, Some(selection), _) => Ok(MembersChange::Remove(vec![selected(selection)?])),
        (PatchKind::Remove, None, Value::Null) => Ok(MembersChange::Replace(Vec::new())),
        (PatchKind::Remove, None, value) => Ok(MembersChange::Remove(ids(value)?)),
        (PatchKind::Add, None, value) => Ok(MembersChange::Add(ids(value)?)),
        (PatchKind::Replace, None, value) => Ok(MembersChange::Replace(ids(value)?)),
        (PatchKind::Add | PatchKind::Replace, Some(_), _) => {
            Err(ApiError::with(&catalogue::INVALID_SCIM_PATH, "`members` takes a filter only to remove one"))
        }
    }
}

/// Returns the id in `members[value eq "…"]`.
fn selected(selection: &Comparison) -> Result<String, ApiError> {
    let id = selection.value.as_str().filter(|_| selection.path == AttributePath::of("value", None));
    let wrong = || ApiError::with(&catalogue::INVALID_SCIM_PATH, "members are selected by `value`");
    id.map(str::to_owned).ok_or_else(wrong)
}

/// Reads the ids of members: a list, or one member.
fn ids(value: &Value) -> Result<Vec<String>, ApiError> {
    let id = |value: &Value| match value {
        Value::String(id) => Some(id.clone()),
        Value::Object(member) => attribute(member, "value").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let ids = match value {
        Value::Null => Some(Vec::new()),
        Value::Array(members) => members.iter().map(id).collect(),
        value => id(value).map(|id| vec![id]),
    };
    ids.ok_or_else(|| invalid_value("each item of `members` needs the id of a user as its `value`"))
}

/// Member of a group in SCIM.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ScimMember {
    /// Id of the member as a user.
    value: String,
    #[serde(rename = "$ref")]
    reference: String,
    /// Name or e-mail address of the user.
    display: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

/// A team as a group of SCIM.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScimGroup {
    schemas: Vec<&'static str>,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    /// Name of the team, unique in the organization.
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    /// Persons in the team; service accounts do not appear.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<ScimMember>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<ScimMeta>,
}

impl ScimGroup {
    /// View of a team, with its members unless the client excluded them. `base` is the address of
    /// SCIM on this server.
    pub(super) fn new(base: &str, team: TeamRow, members: Option<Vec<MemberRow>>) -> ScimGroup {
        let id = team.id.to_string();
        let meta = ScimMeta::of("Group", team.created_at, format!("{base}/Groups/{id}"));
        let member = |row: MemberRow| {
            let value = row.id.to_string();
            let reference = format!("{base}/Users/{value}");
            let display = if row.name.is_empty() { row.email } else { row.name };
            ScimMember { value, reference, display, kind: "User" }
        };
        ScimGroup {
            schemas: vec![GROUP],
            id,
            external_id: team.external_id,
            display_name: Some(team.name),
            members: members.map(|members| members.into_iter().map(member).collect()),
            meta: Some(meta),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patch::operations;
    use super::*;

    /// Reads an operation on the members, with this value.
    fn on_members(kind: &str, value: &Value) -> Result<GroupChange, &'static str> {
        patched(&json!({"op": kind, "path": "members", "value": value}))
    }

    fn patched(operation: &Value) -> Result<GroupChange, &'static str> {
        let read = operations(json!({"Operations": [operation]}).as_object().unwrap());
        read.and_then(|read| super::patched(&read)).map_err(|error| error.code().unwrap().code)
    }

    fn members(change: MembersChange) -> Result<GroupChange, &'static str> {
        Ok(GroupChange { members: vec![change], ..GroupChange::default() })
    }

    fn some(ids: &[&str]) -> Vec<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn members_are_named_in_the_forms_of_directories() {
        let (two, ids) = (json!([{"value": "1", "display": "A"}, {"Value": "2"}]), some(&["1", "2"]));
        let one = json!({"value": "1"});
        for (read, expected) in [
            (on_members("Add", &two), MembersChange::Add(ids.clone())),
            (patched(&json!({"op": "add", "value": {"members": two}})), MembersChange::Add(ids.clone())),
            (on_members("add", &one), MembersChange::Add(some(&["1"]))),
            (on_members("replace", &two), MembersChange::Replace(ids.clone())),
            (on_members("replace", &json!([])), MembersChange::Replace(Vec::new())),
            (on_members("Remove", &two), MembersChange::Remove(ids.clone())),
            (on_members("remove", &Value::Null), MembersChange::Replace(Vec::new())),
        ] {
            assert_eq!(read, members(expected));
        }
        let selected = patched(&json!({"op": "remove", "path": "members[value eq \"1\"]"}));
        assert_eq!(selected, members(MembersChange::Remove(some(&["1"]))));
    }

    #[test]
    fn a_group_has_a_name_and_an_identifier_of_the_directory() {
        let renamed = patched(&json!({"op": "replace", "value": {"id": "7", "displayName": "New"}}));
        assert_eq!(renamed, Ok(GroupChange { name: Some("New".to_owned()), ..GroupChange::default() }));
        let freed = patched(&json!({"op": "remove", "path": "externalId"}));
        assert_eq!(freed.unwrap().external_id.as_deref(), Some(""));
        let member = json!({"value": "1"});
        let body = json!({"displayName": "Release", "externalId": "x", "members": [member], "other": 7});
        let expected = GroupChange {
            name: Some("Release".to_owned()),
            external_id: Some("x".to_owned()),
            members: vec![MembersChange::Replace(some(&["1"]))],
        };
        assert_eq!(complete(body.as_object().unwrap()).unwrap(), expected);
        for (operation, code) in [
            (json!({"op": "remove", "path": "displayName"}), "immutable_field"),
            (json!({"op": "replace", "path": "displayName", "value": ""}), "invalid_team_name"),
            (json!({"op": "replace", "path": "displayName", "value": "a".repeat(65)}), "invalid_team_name"),
            (json!({"op": "add", "path": "members", "value": [{"display": "A"}]}), "invalid_value"),
            (json!({"op": "add", "path": "members", "value": [7]}), "invalid_value"),
            (json!({"op": "remove", "path": "members[type eq \"User\"]"}), "invalid_path"),
            (json!({"op": "add", "path": "members[value eq \"1\"]", "value": []}), "invalid_path"),
        ] {
            assert_eq!(patched(&operation), Err(code), "{operation}");
        }
        let nameless = complete(json!({"members": []}).as_object().unwrap());
        assert_eq!(nameless.unwrap_err().code().unwrap().code, "invalid_value");
    }
}
