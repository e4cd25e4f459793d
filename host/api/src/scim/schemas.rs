//! Schemas of users and groups (RFC 7643, section 7), with the attributes that the server uses.

use serde_json::{Value, json};

pub(super) const USER: &str = "urn:ietf:params:scim:schemas:core:2.0:User";
pub(super) const GROUP: &str = "urn:ietf:params:scim:schemas:core:2.0:Group";
const SCHEMA: &str = "urn:ietf:params:scim:schemas:core:2.0:Schema";
const RESOURCE_TYPE: &str = "urn:ietf:params:scim:schemas:core:2.0:ResourceType";

/// Both schemas. `base` is the address of SCIM on this server.
pub(super) fn schemas(base: &str) -> Vec<Value> {
    let email = json!([
        text("value", "E-mail address", false),
        text("type", "Kind of the address: work", false),
        boolean("primary", "True for the only address"),
    ]);
    let name = json!([
        text("formatted", "Displayed name", false),
        text("givenName", "Given name, a part of the displayed name; never returned", false),
        text("familyName", "Family name, a part of the displayed name; never returned", false),
    ]);
    let member = json!([
        text("value", "Id of the user", false),
        text("$ref", "Address of the user", false),
        text("display", "Name or e-mail address of the user", false),
        text("type", "Kind of the member: User", false),
    ]);
    let user = json!([
        unique(text("userName", "E-mail address of the member", true)),
        complex("name", "Name of the person", name, false),
        text("displayName", "Displayed name", false),
        complex("emails", "E-mail address of the member", email, true),
        boolean("active", "False while the member is suspended"),
    ]);
    let group = json!([
        unique(text("displayName", "Name of the team", true)),
        complex("members", "Persons in the team", member, true),
    ]);
    let schema = |id: &str, name: &str, description: &str, attributes: Value| {
        json!({
            "schemas": [SCHEMA], "id": id, "name": name, "description": description,
            "attributes": attributes,
            "meta": {"resourceType": "Schema", "location": format!("{base}/Schemas/{id}")},
        })
    };
    vec![schema(USER, "User", "A member", user), schema(GROUP, "Group", "A team", group)]
}

/// Types of resources: users and groups.
pub(super) fn resource_types(base: &str) -> Vec<Value> {
    let resource_type = |name: &str, endpoint: &str, schema: &str, description: &str| {
        json!({
            "schemas": [RESOURCE_TYPE], "id": name, "name": name, "description": description,
            "endpoint": endpoint, "schema": schema,
            "meta": {"resourceType": "ResourceType", "location": format!("{base}/ResourceTypes/{name}")},
        })
    };
    vec![
        resource_type("User", "/Users", USER, "A member"),
        resource_type("Group", "/Groups", GROUP, "A team"),
    ]
}

fn text(name: &str, description: &str, required: bool) -> Value {
    json!({
        "name": name, "type": "string", "multiValued": false, "description": description,
        "required": required, "caseExact": false, "mutability": "readWrite", "returned": "default",
        "uniqueness": "none",
    })
}

fn unique(mut attribute: Value) -> Value {
    if let Value::Object(properties) = &mut attribute {
        properties.insert("uniqueness".to_owned(), json!("server"));
    }
    attribute
}

fn boolean(name: &str, description: &str) -> Value {
    json!({
        "name": name, "type": "boolean", "multiValued": false, "description": description,
        "required": false, "mutability": "readWrite", "returned": "default",
    })
}

fn complex(name: &str, description: &str, parts: Value, is_list: bool) -> Value {
    json!({
        "name": name, "type": "complex", "multiValued": is_list, "description": description,
        "required": false, "subAttributes": parts, "mutability": "readWrite", "returned": "default",
    })
}
