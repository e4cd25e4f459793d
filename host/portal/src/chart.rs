//! Bar charts of daily numbers: an inline SVG that needs no script. Its label states the numbers in
//! words.

use maud::{Markup, html};
use packhouse_store::DayOfActivity;

use crate::dates;

/// Width of a day, in units of the SVG's view box.
const STEP: usize = 10;
/// Height of the chart, in units of the SVG's view box.
const HEIGHT: f64 = 48.0;

/// Draws charts of the publishes and the downloads of the last days. The result is empty
/// without any of them.
pub(crate) fn activity(days: &[DayOfActivity]) -> Markup {
    let downloads = bars("Downloads", days, |day| day.downloads);
    let publishes = bars("Publishes", days, |day| day.publishes);
    if downloads.is_none() && publishes.is_none() {
        return Markup::default();
    }
    html! {
        section.card aria-labelledby="activity" {
            h2 id="activity" { "Last " (days.len()) " days" }
            div.charts { @for one in [downloads, publishes].iter().flatten() { (one) } }
        }
    }
}

/// Draws one chart; `None` if all values are 0.
fn bars(name: &str, days: &[DayOfActivity], of: fn(&DayOfActivity) -> u64) -> Option<Markup> {
    let (first, last) = (days.first()?, days.last()?);
    let all = days.iter().map(of).fold(0, u64::saturating_add);
    let most = days.iter().max_by_key(|day| of(day)).filter(|day| of(day) > 0)?;
    let most_on = dates::day(most.begins);
    let summary = format!("{name} by day: {all} in all, {} of them on {most_on}", of(most));
    let height = |count: u64| (count as f64 / of(most) as f64 * (HEIGHT - 2.0)).max(1.5);
    Some(html! {
        figure {
            figcaption { (name) " " strong { (all) } }
            svg.days viewBox={ "0 0 " (days.len() * STEP) " " (HEIGHT) } role="img" aria-label=(summary) {
                @for (at, day) in days.iter().enumerate().filter(|(_, day)| of(day) > 0) {
                    @let high = height(of(day));
                    rect x=(at * STEP + 1) y=(format!("{:.1}", HEIGHT - high)) width=(STEP - 2) height=(format!("{high:.1}")) {
                        title { (dates::day(day.begins)) ": " (of(day)) }
                    }
                }
            }
            p.axis { span { (dates::day(first.begins)) } span { (dates::day(last.begins)) " UTC" } }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn days(downloads: &[u64]) -> Vec<DayOfActivity> {
        let day = |(at, downloads): (i64, &u64)| DayOfActivity {
            begins: at * dates::DAY_MS,
            publishes: 0,
            downloads: *downloads,
        };
        (0..).zip(downloads).map(day).collect()
    }

    #[test]
    fn bar_height_is_proportional_to_the_maximum() {
        let html = activity(&days(&[0, 46, 23, 1])).into_string();
        assert!(
            html.contains("aria-label=\"Downloads by day: 70 in all, 46 of them on 1970-01-02\""),
            "{html}"
        );
        assert_eq!(html.matches("<rect").count(), 3, "a day without downloads has no bar");
        for bar in [
            "x=\"11\" y=\"2.0\" width=\"8\" height=\"46.0\"",
            "x=\"21\" y=\"25.0\"",
            "height=\"1.5\"><title>1970-01-04: 1<",
        ] {
            assert!(html.contains(bar), "{bar} in {html}");
        }
        assert!(!html.contains("Publishes"), "a chart without values is left out");
    }

    #[test]
    fn days_without_activity_have_no_chart() {
        assert_eq!(activity(&days(&[0; 30])).into_string(), "");
        assert_eq!(activity(&[]).into_string(), "");
        assert!(activity(&days(&[u64::MAX, u64::MAX])).into_string().contains("18446744073709551615"));
    }
}
