//! Users of SCIM: their attributes in bodies, and the view of a member as a user.

use packhouse_identity as identity;
use packhouse_store::MemberRow;
use packhouse_wire::catalogue;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::filter::AttributePath;
use super::patch::{PatchKind, PatchOperation};
use super::schemas::USER;
use super::{ScimMeta, attribute, invalid_value, stored_text};
use crate::error::ApiError;
use crate::operations::scim::users::{NameChange, UserChange};

/// Attributes of a user that a body states.
#[derive(Debug, Default)]
pub(super) struct UserAttributes {
    user_name: Option<String>,
    /// The primary one of its e-mail addresses.
    email: Option<String>,
    display_name: Option<String>,
    formatted: Option<String>,
    given_name: Option<String>,
    family_name: Option<String>,
    external_id: Option<String>,
    active: Option<bool>,
}

impl UserAttributes {
    /// Reads a complete user. 400 `invalid_value` without a `userName`.
    pub(super) fn complete(body: &Map<String, Value>) -> Result<UserAttributes, ApiError> {
        let mut attributes = UserAttributes::default();
        for (name, value) in body {
            if let Some(path) = AttributePath::parse(name) {
                attributes.set(&path, value)?;
            }
        }
        if attributes.user_name.is_none() {
            return Err(invalid_value("`userName` is required"));
        }
        Ok(attributes)
    }

    /// Reads the changes of a PATCH.
    pub(super) fn patched(operations: &[PatchOperation]) -> Result<UserAttributes, ApiError> {
        let mut attributes = UserAttributes::default();
        for PatchOperation { kind, path, value } in operations {
            match kind {
                PatchKind::Add | PatchKind::Replace => attributes.set(path, value)?,
                PatchKind::Remove => attributes.clear(path)?,
            }
        }
        Ok(attributes)
    }

    fn set(&mut self, path: &AttributePath, value: &Value) -> Result<(), ApiError> {
        match (path.attribute.as_str(), path.sub.as_deref()) {
            ("username", None) => self.user_name = Some(stored_text("userName", value)?),
            ("externalid", None) => self.external_id = Some(stored_text("externalId", value)?),
            ("displayname", None) => self.display_name = Some(stored_text("displayName", value)?),
            ("name", Some("formatted")) => self.formatted = Some(stored_text("name.formatted", value)?),
            ("name", Some("givenname")) => self.given_name = Some(stored_text("name.givenName", value)?),
            ("name", Some("familyname")) => self.family_name = Some(stored_text("name.familyName", value)?),
            ("name", None) => {
                for (sub, value) in value.as_object().into_iter().flatten() {
                    self.set(&AttributePath::of("name", Some(&sub.to_ascii_lowercase())), value)?;
                }
            }
            ("emails", None | Some("value")) if selects_work(path) => {
                self.email = primary(value).or_else(|| self.email.take());
            }
            ("active", None) => self.active = Some(boolean(value)?),
            _ => {}
        }
        Ok(())
    }

    fn clear(&mut self, path: &AttributePath) -> Result<(), ApiError> {
        let empty = Some(String::new());
        match (path.attribute.as_str(), path.sub.as_deref()) {
            ("username", None) => return Err(ApiError::with(&catalogue::IMMUTABLE_FIELD, "userName")),
            ("externalid", None) => self.external_id = empty,
            ("displayname" | "name", None) => self.display_name = empty,
            ("name", Some("formatted")) => self.formatted = empty,
            ("name", Some("givenname")) => self.given_name = empty,
            ("name", Some("familyname")) => self.family_name = empty,
            _ => {}
        }
        Ok(())
    }

    /// Returns the changes of the member. The e-mail address is the `userName`, or the primary
    /// address if the `userName` is not an address. 400 `invalid_value` if neither is one.
    pub(super) fn change(self) -> Result<UserChange, ApiError> {
        let email = match self.user_name {
            None => None,
            Some(user_name) => {
                let email = identity::email(&user_name)
                    .or_else(|| self.email.as_deref().and_then(identity::email))
                    .ok_or_else(|| {
                        invalid_value("`userName` or the primary one of `emails` must be an e-mail address")
                    })?;
                Some(email)
            }
        };
        // Directories leave the displayed name empty if only the parts of the name are mapped.
        let whole = match (self.display_name, self.formatted) {
            (Some(display), Some(formatted)) if display.is_empty() => Some(formatted),
            (Some(display), _) => Some(display),
            (None, formatted) => formatted,
        };
        let has_parts = self.given_name.is_some() || self.family_name.is_some();
        let whole = whole.filter(|whole| !whole.is_empty() || !has_parts);
        let name = NameChange { whole, given: self.given_name, family: self.family_name };
        Ok(UserChange { email, name, external_id: self.external_id, active: self.active })
    }
}

/// Reports whether a path into `emails` selects the address of the member. A member has only one.
pub(super) fn selects_work(path: &AttributePath) -> bool {
    path.selection.as_ref().is_none_or(|selection| match selection.path.attribute.as_str() {
        "type" => selection.value.as_str().is_some_and(|kind| kind.eq_ignore_ascii_case("work")),
        "primary" => boolean(&selection.value).unwrap_or_default(),
        _ => false,
    })
}

/// Returns the primary address of a value of `emails`: a list of addresses, one address, or its
/// text. Without a primary one, prefers the address of the type `work`.
fn primary(value: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(email) => attribute(email, "value").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    };
    let Value::Array(emails) = value else { return text(value) };
    let rank = |email: &&Value| {
        let of = |name: &str| email.as_object().and_then(|email| attribute(email, name));
        let is_primary = of("primary").is_some_and(|value| boolean(value).unwrap_or_default());
        let is_work =
            of("type").and_then(Value::as_str).is_some_and(|kind| kind.eq_ignore_ascii_case("work"));
        (!is_primary, !is_work)
    };
    emails.iter().filter(|email| text(email).is_some()).min_by_key(rank).and_then(text)
}

/// Reads a boolean, which some directories write as a text.
fn boolean(value: &Value) -> Result<bool, ApiError> {
    let read = match value {
        Value::Bool(read) => Some(*read),
        Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
        Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    };
    read.ok_or_else(|| invalid_value("`active` must be `true` or `false`"))
}

/// E-mail address of a user.
#[derive(Serialize, ToSchema)]
struct ScimEmail {
    value: String,
    #[serde(rename = "type")]
    kind: &'static str,
    primary: bool,
}

#[derive(Serialize, ToSchema)]
struct ScimName {
    formatted: String,
}

/// A member as a user of SCIM.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScimUser {
    schemas: Vec<&'static str>,
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    /// E-mail address of the member.
    #[serde(skip_serializing_if = "Option::is_none")]
    user_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<ScimName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    display_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    emails: Option<Vec<ScimEmail>>,
    /// False while the member is suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    active: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<ScimMeta>,
}

impl ScimUser {
    /// View of a member. `base` is the address of SCIM on this server.
    pub(super) fn new(base: &str, row: MemberRow) -> ScimUser {
        let id = row.id.to_string();
        let meta = ScimMeta::of("User", row.created_at, format!("{base}/Users/{id}"));
        let name = Some(row.name).filter(|name| !name.is_empty());
        ScimUser {
            schemas: vec![USER],
            id,
            external_id: row.external_id,
            user_name: Some(row.email.clone()),
            name: name.clone().map(|formatted| ScimName { formatted }),
            display_name: name,
            emails: Some(vec![ScimEmail { value: row.email, kind: "work", primary: true }]),
            active: Some(row.active),
            meta: Some(meta),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patch::operations;
    use super::*;

    fn complete(body: Value) -> Result<UserChange, &'static str> {
        let read = UserAttributes::complete(body.as_object().unwrap()).and_then(UserAttributes::change);
        read.map_err(|error| error.code().unwrap().code)
    }

    fn patched(body: Value) -> Result<UserChange, &'static str> {
        let read = operations(body.as_object().unwrap());
        let read = read.and_then(|read| UserAttributes::patched(&read)).and_then(UserAttributes::change);
        read.map_err(|error| error.code().unwrap().code)
    }

    #[test]
    fn the_e_mail_address_is_the_user_name_or_the_primary_one() {
        let home = json!({"value": "home@x.example", "type": "home"});
        let emails = json!([home, {"value": "w@x.example", "type": "work"}]);
        let marked = json!([{"value": "a@x.example"}, {"Value": "p@x.example", "primary": true}]);
        for (user_name, emails, expected) in [
            ("Jane@X.example", json!(null), Ok("jane@x.example")),
            ("jane@x.example", emails.clone(), Ok("jane@x.example")),
            ("jane", emails.clone(), Ok("w@x.example")),
            ("jane", marked, Ok("p@x.example")),
            ("jane", json!([{"value": 7}]), Err("invalid_value")),
            ("jane", json!("p@x.example"), Ok("p@x.example")),
            ("jane", json!(7), Err("invalid_value")),
        ] {
            let found = complete(json!({"USERNAME": user_name, "emails": emails}));
            assert_eq!(found.map(|change| change.email.unwrap()), expected.map(str::to_owned), "{user_name}");
        }
        assert_eq!(complete(json!({"emails": emails})), Err("invalid_value"));
    }

    #[test]
    fn the_name_is_the_displayed_one_or_made_of_its_parts() {
        let name = |body: Value| {
            let mut user = json!({"userName": "a@x.example"});
            user.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
            complete(user).unwrap().name.apply("Old Name")
        };
        let parts = json!({"givenName": "Jane", "familyName": "Doe"});
        assert_eq!(name(json!({"displayName": "J. Doe", "name": parts})), "J. Doe");
        assert_eq!(name(json!({"displayName": "", "name": parts})), "Jane Doe");
        assert_eq!(name(json!({"name": {"formatted": "Dr. Doe", "familyName": "Doe"}})), "Dr. Doe");
        assert_eq!(name(json!({"name": {"FamilyName": "New"}})), "Old New");
        assert_eq!(name(json!({"name": {"givenName": "New"}})), "New Name");
        assert_eq!(name(json!({})), "Old Name");
        assert_eq!(name(json!({"name": null})), "Old Name");
    }

    #[test]
    fn operations_are_read_in_the_forms_of_directories() {
        let department = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department";
        let entra = patched(json!({"Operations": [
            {"op": "Replace", "path": "active", "value": "False"},
            {"op": "Add", "path": "emails[type eq \"work\"].value", "value": "w@x.example"},
            {"op": "Replace", "path": "userName", "value": "jane"},
            {"op": "Add", "path": department, "value": "x"},
            {"op": "Remove", "path": "externalId"},
        ]}));
        let entra = entra.unwrap();
        assert_eq!((entra.active, entra.email.as_deref()), (Some(false), Some("w@x.example")));
        assert_eq!(entra.external_id.as_deref(), Some(""));
        let okta = patched(json!({"Operations": [{"op": "replace", "value": {"active": false}}]}));
        assert_eq!(okta, Ok(UserChange { active: Some(false), ..UserChange::default() }));
        let home = json!({"op": "replace", "path": "emails[type eq \"home\"].value", "value": "h@x.example"});
        let both = json!({"Operations": [{"op": "replace", "path": "userName", "value": "jane"}, home]});
        assert_eq!(patched(both), Err("invalid_value"));
        for (operation, code) in [
            (json!({"op": "replace", "path": "active", "value": "perhaps"}), "invalid_value"),
            (json!({"op": "replace", "path": "userName", "value": 7}), "invalid_value"),
            (json!({"op": "replace", "path": "externalId", "value": "a\u{0}"}), "invalid_value"),
            (json!({"op": "remove", "path": "userName"}), "immutable_field"),
        ] {
            assert_eq!(patched(json!({"Operations": [operation.clone()]})), Err(code), "{operation}");
        }
    }
}
