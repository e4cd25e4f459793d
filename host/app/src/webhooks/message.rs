//! Body of a webhook delivery: a CloudEvents 1.0 object in structured mode. Every attempt sends the
//! same bytes.

use packhouse_store::{ClaimedWebhook, DueDelivery};
use serde_json::{Value, json};

use crate::App;

pub(super) const CONTENT_TYPE: &str = "application/cloudevents+json";

/// Returns the id of an event or a delivery in the form that the API uses.
pub fn wire_id(id: i64) -> String {
    id.to_string()
}

/// Returns the body, whose bytes are signed and sent.
pub(super) fn body(app: &App, hook: &ClaimedWebhook, due: &DueDelivery) -> Vec<u8> {
    let data: Value = serde_json::from_str(&due.data).unwrap_or_default();
    let base = hook.base_url.clone().unwrap_or_else(|| app.base_url());
    json!({
        "specversion": "1.0",
        "id": wire_id(due.event),
        "source": base,
        "type": due.kind,
        "subject": due.subject,
        "time": time(due.at),
        "datacontenttype": "application/json",
        "data": data,
    })
    .to_string()
    .into_bytes()
}

/// Formats a time as RFC 3339 in UTC. A time outside the calendar's range becomes the last time in
/// the calendar.
fn time(at: i64) -> String {
    let at = jiff::Timestamp::from_millisecond(at).unwrap_or(jiff::Timestamp::MAX);
    format!("{at:.3}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_calendar_has_them() {
        for (at, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (1_732_366_800_000, "2024-11-23T13:00:00.000Z"),
            (4_102_444_799_000, "2099-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(time(at), text);
        }
    }
}
