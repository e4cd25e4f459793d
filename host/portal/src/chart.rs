//! Bar charts of daily numbers: an inline SVG that needs no script. Its label states the numbers in
//! words, and a table below it lists them.

use maud::{Markup, html};
use packhouse_store::DayOfActivity;

use crate::{dates, parts};

/// Width of a day, in units of the SVG's view box.
const STEP: usize = 10;
/// Height of the chart, in units of the SVG's view box.
const HEIGHT: f64 = 48.0;

/// A kind of number that the chart draws for each day.
struct Series {
    name: &'static str,
    of: fn(&DayOfActivity) -> u64,
}

static SERIES: [Series; 2] = [
    Series { name: "Downloads", of: |day| day.downloads },
    Series { name: "Publishes", of: |day| day.publishes },
];

/// Draws charts of the publishes and the downloads of the last days. The result is empty
/// without any of them.
pub(crate) fn activity(days: &[DayOfActivity]) -> Markup {
    activity_titled(&format!("Last {} days", days.len()), days)
}

/// Draws the charts of [`activity`] under another heading.
pub(crate) fn activity_titled(heading: &str, days: &[DayOfActivity]) -> Markup {
    let has_values = |series: &&Series| days.iter().any(|day| (series.of)(day) > 0);
    let all: Vec<&Series> = SERIES.iter().filter(has_values).collect();
    if all.is_empty() {
        return Markup::default();
    }
    html! {
        section.card aria-labelledby="activity" {
            h2 id="activity" { (heading) }
            div.charts { @for series in &all { (bars(series, days)) } }
            details {
                summary { "Numbers by day" }
                (numbers(&all, days))
            }
        }
    }
}

/// Draws one chart. The result is empty if all values are 0.
fn bars(series: &Series, days: &[DayOfActivity]) -> Markup {
    let (name, of) = (series.name, series.of);
    let most = days.iter().max_by_key(|day| of(day)).filter(|day| of(day) > 0);
    let (Some(first), Some(last), Some(most)) = (days.first(), days.last(), most) else {
        return Markup::default();
    };
    let all = days.iter().map(of).fold(0, u64::saturating_add);
    let most_on = dates::day(most.begins);
    let summary = format!("{name} by day: {all} in all, {} of them on {most_on}", of(most));
    let height = |count: u64| (count as f64 / of(most) as f64 * (HEIGHT - 2.0)).max(1.5);
    html! {
        figure {
            figcaption { (name) " " strong { (all) } }
            p.axis { span { "Most on a day: " (of(most)) } }
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
    }
}

/// Lists the numbers of the days with activity, the newest first.
fn numbers(all: &[&Series], days: &[DayOfActivity]) -> Markup {
    let head: Vec<&str> = std::iter::once("Day").chain(all.iter().map(|series| series.name)).collect();
    let has_values = |day: &&DayOfActivity| all.iter().any(|series| (series.of)(day) > 0);
    let rows = html! {
        @for day in days.iter().rev().filter(has_values) {
            tr { th scope="row" { (dates::day(day.begins)) } @for series in all { td.num { ((series.of)(day)) } } }
        }
    };
    parts::table("Numbers by day", &head, &rows)
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
        assert!(html.contains("Most on a day: 46<"), "{html}");
        assert!(html.contains("<th scope=\"row\">1970-01-03</th><td class=\"num\">23</td>"), "{html}");
    }

    #[test]
    fn days_without_activity_have_no_chart() {
        assert_eq!(activity(&days(&[0; 30])).into_string(), "");
        assert_eq!(activity(&[]).into_string(), "");
        assert!(activity(&days(&[u64::MAX, u64::MAX])).into_string().contains("18446744073709551615"));
    }
}
