//! Part of a form with permissions: a matrix with a row for all repositories, for single ones and
//! for names by pattern, and a column for each action. Each row has a field for patterns of
//! packages.
//!
//! - `form`: converts permissions to the fields of the form, and the form to the body of a call.
//! - `templates`: buttons that fill in the rights of a usual role.
//! - `words`: describes permissions in sentences.

mod form;
mod templates;
mod words;

use maud::{Markup, html};
use packhouse_identity::permissions::{Permission, Permissions, RepositoryAction};

use crate::field::{Choice, Filled, Text};
use crate::fields::Fields;
use crate::page_context::PageContext;
pub(super) use form::{body, fields, lines};
pub(super) use templates::{filled_in, is_incomplete};
pub(super) use words::{action_name, in_short, patterns, sentences};

/// Repository id that stands for all repositories.
const ALL: &str = "*";
/// The columns of the matrix.
const ACTIONS: [(RepositoryAction, &str); 4] = [
    (RepositoryAction::Read, "Read"),
    (RepositoryAction::Publish, "Publish"),
    (RepositoryAction::Delete, "Delete"),
    (RepositoryAction::Manage, "Manage"),
];

fn in_words(permission: Permission) -> &'static str {
    match permission {
        Permission::ManageOwnerAccount => {
            "Manage the account: audit log, sign-in, formats, tokens of all members"
        }
        Permission::ManageMembers => "Manage members, teams, service accounts and invitations",
        Permission::ManageRepositories => "Manage repositories",
        Permission::ManageSubscribers => "Manage subscribers and their access keys",
        Permission::ManageServer => "Manage the server: reload its settings",
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
    html! {
        (templates::buttons())
        (filled.checks("In the organization", "organization", &organization, ""))
        (matrix(filled, choices))
        (result(filled.fields, choices))
    }
}

/// Builds the rows of the matrix.
fn matrix(filled: &Filled<'_>, choices: &[Choice]) -> Markup {
    let named: Vec<&str> = filled.fields.all("named").collect();
    let others: Vec<Choice> = choices
        .iter()
        .filter(|choice| !named.contains(&choice.value.as_str()))
        .map(|choice| Choice { value: choice.value.clone(), label: choice.label.clone() })
        .collect();
    html! {
        p.hint {
            "Packages limits publishing and deleting to packages with such names, one pattern per line; * matches any text. "
            "If it is empty, the row applies to all packages. Reading and managing always apply to the whole repository."
        }
        (row(filled, "All repositories", "all", &Markup::default()))
        @for key in &named {
            (row(filled, &row_title(key, choices), &format!("of-{key}"), &html! { input type="hidden" name="named" value=(key); }))
        }
        @if !others.is_empty() {
            (filled.checks("Repositories", "repositories", &others, "Choose repositories for the next row."))
            (row(filled, "In the repositories chosen", "chosen", &Markup::default()))
        }
        @for index in form::pattern_rows(filled.fields) {
            (row(filled, "Repositories named by a pattern", &format!("like-{index}-may"), &pattern_field(filled, index)))
        }
    }
}

/// Returns the title of the row with this key. A repository with several entries has a row for
/// each.
fn row_title(key: &str, choices: &[Choice]) -> String {
    let (repository, number) = key.split_once('~').unwrap_or((key, ""));
    let title = words::place(repository, choices);
    if number.is_empty() { title } else { format!("{title} ({number})") }
}

/// A row of the matrix. `before` is the content above the checkboxes.
fn row(filled: &Filled<'_>, title: &str, name: &str, before: &Markup) -> Markup {
    html! {
        fieldset.rights {
            legend { (title) }
            (before)
            div.inline {
                @for (action, label) in ACTIONS {
                    label.check {
                        input type="checkbox" name=(name) value=(action_name(action)) checked[filled.fields.holds(name, action_name(action))];
                        (label)
                    }
                }
            }
            (filled.lines("Packages", &form::packages_field(name), "", ""))
        }
    }
}

fn pattern_field(filled: &Filled<'_>, index: usize) -> Markup {
    filled.text(Text {
        label: "Repository names",
        name: &format!("like-{index}"),
        hint: "* matches any text. The row also applies to repositories that are created later.",
        ..Text::default()
    })
}

/// Says what the permissions in the form allow.
fn result(form: &Fields, choices: &[Choice]) -> Markup {
    let held: Permissions = serde_json::from_value(body(form)).unwrap_or_default();
    html! {
        p { "These permissions allow:" }
        (sentences(&held, choices))
    }
}
