//! Navigation at the side of every page: groups of pages, each with the pages that the member can
//! use, and the search field for all repositories.

use maud::{Markup, html};
use packhouse_identity::permissions::Permission::{
    ManageMembers, ManageOwnerAccount, ManageRepositories, ManageServer, ManageSubscribers,
};
use packhouse_identity::permissions::RepositoryAction;

use crate::page_context::PageContext;

/// A page in the navigation: whether the member can use it, its path and its name.
type Entry = (bool, &'static str, &'static str);

/// Builds the navigation. A phone hides it until the member opens the menu, which needs no script:
/// the style sheet hides what follows a closed `details` element.
pub(crate) fn navigation(ctx: &PageContext) -> Markup {
    let groups = groups(ctx);
    let current = current(&ctx.path, groups.iter().flat_map(|(_, _, entries)| entries));
    html! {
        details.menu { summary.button { "Menu" } }
        nav aria-label="Main" {
            @for (id, name, entries) in &groups {
                div.group {
                    h2 id=(id) { (name) }
                    ul aria-labelledby=(id) {
                        @for (_, path, name) in entries {
                            li { a href=(path) aria-current=[(current == Some(*path)).then_some("page")] { (name) } }
                        }
                    }
                }
            }
        }
    }
}

/// Builds the search field for all repositories. It has no button, so that no page has two buttons
/// to search; Enter sends it.
pub(crate) fn search_everywhere() -> Markup {
    html! {
        form.everywhere method="get" action="/search" role="search" aria-label="Everywhere" {
            label.away for="everywhere" { "Search everywhere" }
            input id="everywhere" name="q" type="search" placeholder="Search everywhere" autocomplete="off"
                enterkeyhint="search" dir="auto";
        }
    }
}

/// Returns the groups that have a page for the member: id of the heading, name, and pages.
fn groups(ctx: &PageContext) -> Vec<(&'static str, &'static str, Vec<Entry>)> {
    let (owner, members) = (ctx.holds(ManageOwnerAccount), ctx.holds(ManageMembers));
    let (repositories, server) = (ctx.holds(ManageRepositories), ctx.holds(ManageServer));
    let subscribers = ctx.holds(ManageSubscribers);
    let rights = &ctx.actor.permissions().repositories;
    let reads = |action: &RepositoryAction| *action == RepositoryAction::Read;
    let writes = rights.iter().any(|one| !one.actions.iter().all(reads));
    let manages = repositories || rights.iter().any(|one| one.actions.contains(&RepositoryAction::Manage));
    let packages =
        vec![(true, "/home", "Home"), (true, "/repositories", "Repositories"), (true, "/search", "Search")];
    let access = vec![
        (owner || members, "/members", "Members"),
        (members, "/teams", "Teams"),
        (true, "/tokens", "Repository Tokens"),
        (owner || writes, "/service-keys", "Service keys"),
        (members, "/service-accounts", "Service accounts"),
        (true, "/api-tokens", "API tokens"),
        (subscribers, "/subscribers", "Subscribers"),
        (subscribers, "/subscriber-groups", "Subscriber groups"),
        (manages, "/trusted-publishers", "Trusted publishers"),
        (true, "/access", "Check access"),
    ];
    let server = vec![
        (owner, "/formats", "Formats"),
        (server, "/health", "Health"),
        (server, "/jobs", "Jobs"),
        (server, "/backups", "Backups"),
        (owner, "/audit", "Audit"),
        (repositories, "/policies", "Policies"),
        (manages, "/retention", "Retention"),
        (owner, "/webhooks", "Webhooks"),
        (owner, "/settings/sign-in", "Sign-in"),
        (owner || repositories, "/settings", "Organization"),
    ];
    let groups = [
        ("nav-packages", "Packages", packages),
        ("nav-access", "Access", access),
        ("nav-server", "Server", server),
    ];
    let groups = groups.into_iter().map(|(id, name, entries)| (id, name, usable(entries)));
    groups.filter(|(_, _, entries)| !entries.is_empty()).collect()
}

/// Returns the pages that the member can use.
fn usable(entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().filter(|(usable, ..)| *usable).collect()
}

/// Returns the path of the page that the member is on or below: the longest that fits.
fn current<'a>(here: &str, entries: impl Iterator<Item = &'a Entry>) -> Option<&'static str> {
    let fits =
        |path: &&str| here.strip_prefix(*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    entries.map(|(_, path, _)| *path).filter(fits).max_by_key(|path| path.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_that_fits_is_the_current_page() {
        let entries = [(true, "/settings", "a"), (true, "/settings/sign-in", "b"), (true, "/set", "c")];
        let current = |here| current(here, entries.iter());
        assert_eq!(current("/settings/sign-in"), Some("/settings/sign-in"));
        assert_eq!(current("/settings/other"), Some("/settings"));
        assert_eq!(current("/settingsx"), None);
    }
}
