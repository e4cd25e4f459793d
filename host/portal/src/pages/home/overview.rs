//! Storage, policies and the server on the home page, each with a link to its own page.

use maud::{Markup, html};
use packhouse_api::operations::home::StorageOverview;
use packhouse_api::operations::policies::Rule;
use packhouse_api::operations::server_health::ServerHealth;
use packhouse_store::RuleMode;

use super::super::health;
use crate::parts;

/// Builds the sizes of the largest repositories, with a bar for each.
pub(super) fn storage(storage: &StorageOverview) -> Markup {
    let totals = &storage.totals;
    let most = storage.largest.first().map_or(0, |one| one.usage.bytes);
    html! {
        section.card aria-labelledby="home-storage" {
            h2 id="home-storage" { "Storage" }
            p.meta {
                (parts::size(totals.bytes))
                (parts::count(totals.repositories, "repository", "repositories"))
                (parts::count(totals.packages, "package", "packages"))
                (parts::count(totals.versions, "version", "versions"))
            }
            ul.shares {
                @for one in &storage.largest {
                    li {
                        a href=(parts::repository(&one.name)) { (one.name) }
                        (parts::size(one.usage.bytes))
                        (health::share(one.usage.bytes, most))
                    }
                }
            }
            p { a href="/settings" { "Usage of all repositories" } }
        }
    }
}

/// Builds the list of the policies that check versions.
pub(super) fn policies(rules: &[Rule]) -> Markup {
    let with = |mode: RuleMode| rules.iter().filter(move |rule| rule.row.mode == mode);
    let (blocks, warns) = (with(RuleMode::Enforced).count(), with(RuleMode::Warn).count());
    html! {
        section.card aria-labelledby="home-policies" {
            h2 id="home-policies" { "Policies" }
            @if blocks + warns == 0 {
                p.soft { "No policy checks versions." }
            } @else {
                p.meta { span { "Blocking: " (blocks) } span { "Warning: " (warns) } }
                ul.shares {
                    @for rule in with(RuleMode::Enforced).chain(with(RuleMode::Warn)) {
                        li {
                            a href={ "/policies/" (rule.row.id) } { (parts::isolated(&rule.row.name)) }
                            span { (parts::tag(if rule.row.mode == RuleMode::Enforced { "blocking" } else { "warning" })) }
                        }
                    }
                }
            }
            p { a href="/policies" { "All policies" } }
        }
    }
}

/// Builds the state of the server.
pub(super) fn server(server: &ServerHealth, now: i64) -> Markup {
    html! {
        section.card aria-labelledby="home-server" {
            h2 id="home-server" { "Server" }
            (health::glance(server, now))
            p { a href="/health" { "Health of the server" } }
        }
    }
}
