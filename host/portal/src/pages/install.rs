//! Commands that install a version. One client is visible, and the others are behind radio buttons
//! that need no script.

use maud::{Markup, html};
use packhouse_api::operations::connection::InstallText;

use crate::parts;

/// Builds the commands of all clients. The result is empty without any of them. The script
/// remembers the chosen client of each format.
pub(super) fn install(texts: &[InstallText], format: &str) -> Markup {
    html! {
        @if !texts.is_empty() {
            section.card aria-labelledby="install" {
                h2 id="install" { "Install" }
                @if let [only] = texts {
                    h3 { (only.client) }
                    (command(0, only))
                } @else {
                    div.clients role="group" aria-labelledby="install" {
                        @for (number, one) in texts.iter().enumerate() {
                            @let id = format!("client-{number}");
                            input type="radio" name={ "client-" (format) } id=(id) data-client=(one.client) checked[number == 0];
                            label for=(id) { (one.client) }
                            div { (command(number, one)) }
                        }
                    }
                }
            }
        }
    }
}

fn command(number: usize, one: &InstallText) -> Markup {
    let id = format!("install-{number}");
    html! {
        pre tabindex="0" role="region" aria-label={ (one.client) ", how to install" } { code id=(id) { (one.text) } }
        (parts::copyable(&id, &Markup::default(), &format!("Copy for {}", one.client)))
    }
}
