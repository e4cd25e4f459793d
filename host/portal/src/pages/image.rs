//! Details of a container image on a version's page.

use maud::{Markup, html};
use packhouse_runtime::Image;

use crate::parts;

/// Maximum rows of each list.
const ROWS: usize = 25;

/// Builds the details of an image: platforms, layers, history, labels and referrers.
pub(super) fn image(image: &Image) -> Markup {
    html! {
        h2 { "Image" }
        div.card { dl { dt { "Manifest" } dd { code { (image.digest) } } dt { "Media type" } dd { (parts::short(&image.media_type)) } } }
        @if !image.platforms.is_empty() { h3 { "Platforms" } (platforms(image)) }
        @if !image.layers.is_empty() { h3 { "Layers" } (layers(image)) }
        @if !image.history.is_empty() { h3 { "History" } (history(image)) }
        @if !image.labels.is_empty() {
            div.card {
                h3 { "Labels" }
                dl { @for (name, value) in image.labels.iter().take(ROWS) { dt { (parts::short(name)) } dd { (parts::short(value)) } } }
            }
        }
        @if !image.referrers.is_empty() { h3 { "Signatures and other referrers" } (referrers(image)) }
    }
}

fn platforms(image: &Image) -> Markup {
    let rows = html! {
        @for one in image.platforms.iter().take(ROWS) {
            tr {
                th scope="row" { (parts::short(&format!("{}/{}", one.os, one.architecture))) @if !one.variant.is_empty() { " " (parts::short(&one.variant)) } }
                td.num { @if let Some(size) = one.size { (parts::size(size)) } }
                td { code { (one.digest) } }
            }
        }
    };
    parts::table("Platforms", &["Platform", "Size", "Manifest"], &rows)
}

fn layers(image: &Image) -> Markup {
    let rows = html! {
        @for one in image.layers.iter().take(ROWS) {
            tr { td.num { (parts::size(one.size)) } td { code { (one.digest) } } td { (parts::short(&one.media_type)) } }
        }
    };
    parts::table("Layers", &["Size", "Digest", "Media type"], &rows)
}

fn history(image: &Image) -> Markup {
    let rows = html! {
        @for one in image.history.iter().take(ROWS) {
            tr { td { (parts::short(&one.created)) } td { code { (parts::short(&one.created_by)) } @if !one.comment.is_empty() { " " (parts::short(&one.comment)) } } }
        }
    };
    parts::table("History", &["Time", "Command"], &rows)
}

fn referrers(image: &Image) -> Markup {
    let rows = html! {
        @for one in image.referrers.iter().take(ROWS) {
            tr { th scope="row" { (parts::short(&one.artifact_type)) } td.num { (parts::size(one.size)) } td { code { (one.digest) } } }
        }
    };
    parts::table("Referrers", &["Kind", "Size", "Manifest"], &rows)
}
