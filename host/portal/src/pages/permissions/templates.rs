//! Buttons that fill in the rights of a usual role. They only show the form again: nothing is saved
//! before the member submits it.

use maud::{Markup, html};
use packhouse_identity::permissions::{Permission, RepositoryAction};

use super::action_name;
use super::form::packages_field;
use crate::fields::Fields;

/// Name of the buttons in the form.
const FIELD: &str = "template";

/// Rights of a usual role.
struct Template {
    name: &'static str,
    actions: &'static [RepositoryAction],
    /// True if the role manages the organization.
    administers: bool,
}

static TEMPLATES: [Template; 4] = {
    use RepositoryAction::{Delete, Manage, Publish, Read};
    [
        Template { name: "Reader", actions: &[Read], administers: false },
        Template { name: "Publisher", actions: &[Read, Publish], administers: false },
        Template { name: "Maintainer", actions: &[Read, Publish, Delete, Manage], administers: false },
        Template { name: "Administrator", actions: &[Read, Publish, Delete, Manage], administers: true },
    ]
};

pub(super) fn buttons() -> Markup {
    html! {
        // Enter presses the first button of a form. This button is first, so that Enter does not
        // press the button of a role.
        button.away type="submit" tabindex="-1" aria-hidden="true" {}
        div.inline role="group" aria-label="Fill in the permissions of a role" {
            span.soft { "Fill in:" }
            @for template in &TEMPLATES {
                button type="submit" name=(FIELD) value=(template.name) formnovalidate { (template.name) }
            }
        }
        p.hint { "A role fills in the row of all repositories, or of the chosen ones. You can change it before you save." }
    }
}

/// Returns whether the form was submitted by a button that only shows it again: that of a role, or
/// that of a filter.
pub(in crate::pages) fn is_incomplete(form: &Fields) -> bool {
    form.has("filter") || form.has(FIELD)
}

/// Returns the form with the rights of the role whose button was pressed.
pub(in crate::pages) fn filled_in(form: &Fields) -> Fields {
    let pressed = form.get(FIELD);
    let Some(template) = TEMPLATES.iter().find(|template| pressed == Some(template.name)) else {
        return form.clone();
    };
    let row = if form.has("repositories") { "chosen" } else { "all" };
    let packages = packages_field(row);
    let replaced = ["organization", FIELD, row, packages.as_str()];
    let mut fields: Vec<(String, String)> =
        form.0.iter().filter(|(name, _)| !replaced.contains(&name.as_str())).cloned().collect();
    fields.extend(template.actions.iter().map(|action| (row.to_owned(), action_name(*action).to_owned())));
    if template.administers {
        let server = Permission::ManageServer;
        let granted = Permission::ALL.iter().filter(|permission| **permission != server);
        fields.extend(granted.map(|permission| ("organization".to_owned(), permission.name().to_owned())));
    }
    Fields(fields)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::body;
    use super::*;

    fn pressed(form: &str) -> serde_json::Value {
        body(&filled_in(&Fields::read(form.as_bytes())))
    }

    #[test]
    fn a_role_replaces_the_rights_of_its_row_alone() {
        let other = json!({"repository": "7", "actions": ["delete"]});
        let all = json!({"repository": "*", "actions": ["read", "publish"]});
        let form =
            "organization=manage-members&all=delete&all-packages=x&named=7&of-7=delete&template=Publisher";
        assert_eq!(pressed(form), json!({"organization": [], "repositories": [all, other]}));
        let chosen = json!({"repository": "3", "actions": ["read"]});
        assert_eq!(pressed("repositories=3&template=Reader")["repositories"], json!([chosen]));
    }

    #[test]
    fn an_administrator_manages_everything_but_the_server() {
        let organization = pressed("template=Administrator")["organization"].clone();
        assert_eq!(organization.as_array().unwrap().len(), Permission::ALL.len() - 1);
        assert!(!organization.to_string().contains("manage-server"));
    }

    #[test]
    fn an_unknown_role_changes_nothing() {
        let form = Fields::read(b"all=read&template=root");
        assert!(is_incomplete(&form) && !is_incomplete(&Fields::read(b"all=read")));
        assert_eq!(filled_in(&form).0, form.0);
    }
}
