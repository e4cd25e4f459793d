//! Part of a form with a member's permissions, and its conversion to the body of an API call.

use maud::{Markup, html};
use packhouse_identity::permissions::{Permission, Permissions, RepositoryAction};
use serde_json::{Value, json};

use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::page_context::PageContext;

/// Repository id that stands for all repositories.
const ALL: &str = "*";

fn actions() -> Vec<Choice> {
    [("read", "Read"), ("publish", "Publish"), ("delete", "Delete packages")]
        .map(|(value, label)| Choice { value: value.to_owned(), label: label.to_owned() })
        .into()
}

fn in_words(permission: Permission) -> &'static str {
    match permission {
        Permission::ManageOwnerAccount => {
            "Manage the account: audit log, sign-in, formats, tokens of all members"
        }
        Permission::ManageMembers => "Manage members and invitations",
        Permission::ManageRepositories => "Manage repositories",
        Permission::ManageSubscribers => "Manage subscribers and their access keys",
        Permission::ManageServer => "Manage the server: reload its settings",
    }
}

/// Converts permissions to the fields of the form.
pub(super) fn fields(held: &Permissions) -> Fields {
    let mut fields = Vec::new();
    for permission in &held.organization {
        fields.push(("organization".to_owned(), permission.name().to_owned()));
    }
    for one in &held.repositories {
        let name = if one.repository == ALL { "all".to_owned() } else { format!("of-{}", one.repository) };
        if one.repository != ALL {
            fields.push(("named".to_owned(), one.repository.clone()));
        }
        fields.extend(one.actions.iter().map(|action| (name.clone(), word(*action).to_owned())));
    }
    Fields(fields)
}

fn word(action: RepositoryAction) -> &'static str {
    match action {
        RepositoryAction::Read => "read",
        RepositoryAction::Publish => "publish",
        RepositoryAction::Delete => "delete",
    }
}

/// Builds the part of the form. `choices` are the repositories to choose from. The permission
/// `manage-server` is offered only if the member holds it, or if the form already contains it. This
/// permission exists in only one organization, and only members who hold it can grant it.
pub(super) fn section(ctx: &PageContext, filled: &Filled<'_>, choices: &[Choice]) -> Markup {
    let server = Permission::ManageServer;
    let offers_server = ctx.holds(server) || filled.fields.holds("organization", server.name());
    let organization: Vec<Choice> = Permission::ALL
        .iter()
        .filter(|permission| offers_server || **permission != server)
        .map(|permission| Choice {
            value: permission.name().to_owned(),
            label: in_words(*permission).to_owned(),
        })
        .collect();
    let named: Vec<&str> = filled.fields.all("named").collect();
    let label = |id: &str| {
        choices.iter().find(|choice| choice.value == id).map_or(id, |choice| &choice.label).to_owned()
    };
    let others: Vec<Choice> = choices
        .iter()
        .filter(|choice| !named.contains(&choice.value.as_str()))
        .map(|choice| Choice { value: choice.value.clone(), label: choice.label.clone() })
        .collect();
    html! {
        (filled.checks("In the organization", "organization", &organization, ""))
        (filled.checks("In every repository", "all", &actions(), ""))
        @for id in &named {
            input type="hidden" name="named" value=(id);
            (filled.checks(&format!("In {}", label(id)), &format!("of-{id}"), &actions(), ""))
        }
        @if !others.is_empty() {
            (filled.checks("Repositories", "repositories", &others, "Choose repositories in which the member gets additional permissions."))
            (filled.checks("In the repositories chosen", "chosen", &actions(), ""))
        }
    }
}

/// Converts the form to the body of the API call.
pub(super) fn body(form: &Fields) -> Value {
    let in_one = |repository: &str, name: &str| json!({"repository": repository, "actions": form.list(name)});
    let mut repositories = Vec::new();
    if form.has("all") {
        repositories.push(in_one(ALL, "all"));
    }
    for id in form.all("named").filter(|id| form.has(&format!("of-{id}"))) {
        repositories.push(in_one(id, &format!("of-{id}")));
    }
    if form.has("chosen") {
        repositories.extend(form.all("repositories").map(|id| in_one(id, "chosen")));
    }
    json!({"organization": form.list("organization"), "repositories": repositories})
}

/// Summarizes permissions in a few words.
pub(super) fn in_short(held: &Permissions) -> String {
    let mut words: Vec<String> =
        held.organization.iter().map(|permission| permission.name().to_owned()).collect();
    for one in held.repositories.iter().filter(|one| one.repository == ALL) {
        let actions: Vec<&str> = one.actions.iter().map(|action| word(*action)).collect();
        words.push(format!("{} in all repositories", actions.join(", ")));
    }
    match held.named().count() {
        0 => {}
        1 => words.push("one repository".to_owned()),
        many => words.push(format!("{many} repositories")),
    }
    if words.is_empty() { "no permissions yet".to_owned() } else { words.join("; ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_survive_a_round_trip_through_the_form() {
        let held = Permissions::read(
            r#"{"organization": ["manage-members"], "repositories": [
                {"repository": "*", "actions": ["read"]}, {"repository": "7", "actions": ["publish", "delete"]}]}"#,
        );
        let again: Permissions = serde_json::from_value(body(&fields(&held))).unwrap();
        assert_eq!(again, held);
    }

    #[test]
    fn chosen_repositories_get_the_chosen_actions() {
        let form = Fields::read(b"repositories=3&repositories=4&chosen=read&chosen=publish");
        let parsed: Permissions = serde_json::from_value(body(&form)).unwrap();
        assert_eq!(parsed.named().collect::<Vec<_>>(), ["3", "4"]);
        assert_eq!(in_short(&parsed), "2 repositories");
    }
}
