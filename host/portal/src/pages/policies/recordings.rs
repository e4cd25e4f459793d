//! The section of a policy's page with recordings of its failing and refusing calls. Each recording
//! is a file that can be replayed.

use maud::{Markup, html};
use packhouse_api::error::ApiError;
use packhouse_api::operations::{PageRequest, policies};
use packhouse_store::MAX_RECORDINGS;

use crate::page_context::PageContext;
use crate::{dates, parts};

/// Number of calls that the form starts to record.
pub(super) const CALLS: u32 = 10;

/// Builds the section with the recordings of a policy and the buttons that start and delete them.
pub(super) async fn section(ctx: &PageContext, id: &str) -> Result<Markup, ApiError> {
    let armed = policies::recording_of(&ctx.actor, id).await?;
    let page = PageRequest { limit: MAX_RECORDINGS, after: None };
    let listed = policies::recordings(&ctx.actor, id, page).await?;
    let action = |name: &str, word: &str| {
        parts::action_button(ctx, &ctx.path, &[("do", name)], &html! { button type="submit" { (word) } })
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
                p { "The last " (armed.max_recordings) " failing or refusing calls are recorded until " (dates::time(armed.armed_until)) ". Started by " (parts::isolated(&armed.created_by)) "." }
            } @else {
                p { "Calls of this policy are not being recorded. A recording contains the input and the result of a call and can be replayed without a server." }
            }
            div.bar {
                (action("record", "Start new recording"))
                @if armed.is_some() || !listed.rows.is_empty() { (action("forget", "Delete recordings")) }
            }
        }
        @if !listed.rows.is_empty() {
            (parts::table("Recorded calls", &["Recording", "Recorded", "Outcome", "Component"], &rows))
            p { "Download a recording with " code { "packhouse policies recordings --policy " (id) " RECORDING" } " or through the API." }
        }
    })
}
