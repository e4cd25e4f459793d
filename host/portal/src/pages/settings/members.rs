//! The ordered members of a group.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_store::{RepositoryId, RepositoryRow};
use serde_json::Value;

use super::sent;
use crate::field::{Choice, Filled};
use crate::fields::Fields;
use crate::page_context::PageContext;
use crate::pages::tokens::{choice, reachable};
use crate::parts;

/// Builds the form with a group's members and the position of each.
pub(super) async fn form(
    ctx: &PageContext,
    row: &RepositoryRow,
    wrong: Option<&ApiError>,
) -> Result<Markup, ApiError> {
    let all = reachable(ctx).await?;
    let name = |id: RepositoryId| {
        all.iter().find(|other| other.id == id).map_or_else(|| id.to_string(), |other| other.name.clone())
    };
    // Members must have the format of the group and must not be groups themselves.
    let fits = |other: &&RepositoryRow| {
        other.format == row.format && other.kind != row.kind && !row.members.contains(&other.id)
    };
    let others: Vec<Choice> = all.iter().filter(fits).map(choice).collect();
    let none = Fields::default();
    let filled = Filled::new(sent(ctx, "members", &none), wrong);
    let fields = html! {
        @if !row.members.is_empty() {
            fieldset {
                legend { "Order" }
                p.hint { "A client gets a package from the first member that has it. Clear a position to remove the member." }
                @for (at, id) in row.members.iter().enumerate() {
                    div.field.inline {
                        label for={ "place-" (id) } { "Position of " (name(*id)) }
                        input id={ "place-" (id) } name={ "place-" (id) } type="number" min="1" value=(at + 1);
                    }
                }
            }
        }
        (filled.checks("Members", "members", &others, "New members are added at the end."))
        button.go type="submit" { "Save" }
    };
    Ok(html! {
        form.card method="post" action=(ctx.path) {
            h2 { "Members of the group" }
            (parts::form_tokens(ctx))
            (parts::hidden("do", "members"))
            (filled.with_error(fields))
        }
    })
}

/// Returns the new list of members in their order.
pub(super) fn value(row: &RepositoryRow, form: &Fields) -> Value {
    let mut held: Vec<(u32, String)> = Vec::new();
    for id in row.members.iter().map(ToString::to_string) {
        if let Ok(place) = form.text(&format!("place-{id}")).parse() {
            held.push((place, id));
        }
    }
    held.sort_by_key(|(place, _)| *place);
    let remaining = held.into_iter().map(|(_, id)| Value::from(id));
    remaining.chain(form.all("members").map(Value::from)).collect()
}
