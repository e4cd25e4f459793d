//! What was recorded of a policy's calls, on the policy's page: what failed and what was refused, as files to be replayed.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, policies};
use packhouse_store::MAX_RECORDINGS;

use crate::seat::Seat;
use crate::{dates, parts};

/// How many calls a form wants recorded.
pub(super) const WANTED: u32 = 10;

/// The recordings of the policy of this id, with the deeds that begin and end them.
pub(super) async fn section(seat: &Seat, id: &str) -> Result<Markup, ApiError> {
    let armed = policies::recording_of(&seat.actor, id).await?;
    let page = PageRequest { limit: MAX_RECORDINGS, after: None };
    let listed = policies::recordings(&seat.actor, id, page).await?;
    let deed = |name: &str, word: &str| {
        parts::deed(seat, &seat.path, &[("do", name)], &html! { button type="submit" { (word) } })
    };
    let rows = html! {
        @for row in &listed.rows {
            tr {
                th scope="row" { (row.id) }
                td { (dates::time(row.recorded_at)) }
                td { (parts::tag(&row.outcome)) }
                td { (parts::short(&row.component)) }
            }
        }
    };
    Ok(html! {
        h2 { "Recordings" }
        div.card {
            @if let Some(armed) = &armed {
                p { "The last " (armed.wanted) " calls that fail or refuse are recorded until " (dates::time(armed.armed_until)) ", as " (parts::said(&armed.created_by)) " wanted." }
            } @else {
                p { "No call of this policy is recorded. A recording holds what was judged and what was said, and runs again without a server." }
            }
            div.bar {
                (deed("record", "Record calls anew"))
                @if armed.is_some() || !listed.rows.is_empty() { (deed("forget", "Delete recordings")) }
            }
        }
        @if !listed.rows.is_empty() {
            (parts::table("Recorded calls", &["Recording", "Recorded", "Outcome", "Component"], &rows))
            p { "Their files are read with " code { "packhouse policies recordings --policy " (id) " RECORDING" } ", or by the API." }
        }
    })
}
