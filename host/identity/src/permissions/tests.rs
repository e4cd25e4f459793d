use packhouse_runtime::Folding;
use packhouse_store::{MemberId, MemberKind, OrganizationId};

use super::*;

fn held(json: &str) -> Permissions {
    serde_json::from_str(json).unwrap()
}

/// Permissions with these entries for repositories.
fn entries(json: &str) -> Permissions {
    held(&format!(r#"{{"repositories": [{json}]}}"#))
}

fn covers(holder: &Permissions, other: &Permissions) -> bool {
    let name_of = |id: &str| match id {
        "1" => Some("team-one".to_owned()),
        "2" => Some("other".to_owned()),
        _ => None,
    };
    holder.covers(other, name_of)
}

#[test]
fn rights_are_the_union_of_all_entries_for_the_repository() {
    let permissions = Permissions::read(
        r#"{"organization": ["manage-repositories"], "repositories": [
            {"repository": "*", "actions": ["read"]}, {"repository": "7", "actions": ["publish"]},
            {"repository_name": "team-*", "actions": ["delete", "manage"]}]}"#,
    );
    assert!(permissions.holds(Permission::ManageRepositories));
    assert!(!permissions.holds(Permission::ManageOwnerAccount));
    let read = Rights { read: true, ..Rights::default() };
    assert_eq!(permissions.rights(RepositoryId(7), "x"), Rights { publish: true, ..read });
    assert_eq!(permissions.rights(RepositoryId(8), "x"), read);
    assert_eq!(permissions.rights_in_a_new_one("x"), read);
    let of_team = Rights { delete: true, manage: true, ..read };
    assert_eq!(permissions.rights(RepositoryId(8), "team-a"), of_team);
    assert_eq!(permissions.rights_in_a_new_one("team-a"), of_team);
    assert_eq!(permissions.rights(RepositoryId(8), "Team-a"), read);
    let all = Rights { publish: true, ..of_team };
    assert_eq!(permissions.rights(RepositoryId(7), "team-a"), all);
    assert!(permissions.reads_all() && permissions.has_name_patterns());
    assert_eq!(permissions.named().collect::<Vec<_>>(), ["7"]);
}

#[test]
fn an_entry_that_names_its_repositories_twice_or_not_at_all_gives_nothing() {
    for entry in [
        r#"{"actions": ["read", "publish", "delete", "manage"]}"#,
        r#"{"repository": "*", "repository_name": "*", "actions": ["read", "publish", "delete", "manage"]}"#,
    ] {
        let permissions = entries(entry);
        assert!(permissions.check().is_err(), "{entry}");
        assert_eq!(permissions.rights(RepositoryId(1), "a"), Rights::default(), "{entry}");
        assert_eq!(permissions.rights_in_a_new_one("a"), Rights::default(), "{entry}");
        assert!(!permissions.reads_all(), "{entry}");
        assert!(!covers(&Permissions::everything(), &permissions), "{entry}");
    }
}

#[test]
fn packages_limit_publishing_and_deleting_alone() {
    let permissions = entries(
        r#"{"repository": "1", "actions": ["read", "publish"], "packages": ["a", "acme-*"]},
           {"repository": "1", "actions": ["publish", "delete", "manage"], "packages": ["b"]},
           {"repository": "2", "actions": ["publish"], "packages": ["a"]},
           {"repository": "2", "actions": ["publish"]},
           {"repository": "3", "actions": ["read", "publish", "delete"], "packages": []},
           {"repository": "4", "actions": ["publish"], "packages": ["**"]}"#,
    );
    let patterns = |id, action| permissions.patterns(RepositoryId(id), "x", action);
    let only = |names: &[&str]| PackagePatterns::Only(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(patterns(1, RepositoryAction::Publish), only(&["a", "acme-*", "b"]));
    assert_eq!(patterns(1, RepositoryAction::Delete), only(&["b"]));
    assert_eq!(patterns(1, RepositoryAction::Read), PackagePatterns::All);
    assert_eq!(patterns(1, RepositoryAction::Manage), PackagePatterns::All);
    assert_eq!(patterns(2, RepositoryAction::Publish), PackagePatterns::All);
    assert!(patterns(2, RepositoryAction::Delete).is_none());
    assert!(patterns(2, RepositoryAction::Manage).is_none());
    assert_eq!(permissions.rights(RepositoryId(3), "x"), Rights { read: true, ..Rights::default() });
    assert!(patterns(3, RepositoryAction::Publish).is_none());
    assert_eq!(patterns(4, RepositoryAction::Publish), PackagePatterns::All);
    let all = Rights { read: true, publish: true, delete: true, manage: true };
    assert_eq!(permissions.rights(RepositoryId(1), "x"), all);
}

#[test]
fn names_are_compared_as_the_format_folds_them() {
    let patterns = PackagePatterns::Only(vec!["Acme.*".to_owned(), "lib".to_owned()]);
    for (folding, name, covered) in [
        (Folding::Pep503, "acme_tool", true),
        (Folding::Pep503, "ACME--tool", true),
        (Folding::Pep503, "acmetool", false),
        (Folding::Pep503, "LIB", true),
        (Folding::Lowercase, "acme.tool", true),
        (Folding::Lowercase, "acme-tool", false),
        (Folding::None, "acme.tool", false),
        (Folding::None, "Acme.tool", true),
        (Folding::None, "lib2", false),
        (Folding::None, "", false),
    ] {
        assert_eq!(patterns.covers(folding, name), covered, "{folding:?} {name}");
    }
    assert!(PackagePatterns::All.covers(Folding::None, "anything"));
    assert!(!PackagePatterns::Only(Vec::new()).covers(Folding::None, "anything"));
    assert!(!PackagePatterns::Only(Vec::new()).covers(Folding::None, ""));
}

#[test]
fn only_held_permissions_are_covered() {
    let one = r#"{"repositories": [{"repository": "1", "actions": ["read", "publish"]}]}"#;
    let all = r#"{"repositories": [{"repository": "*", "actions": ["read"]}]}"#;
    let split = r#"{"repositories": [{"repository": "*", "actions": ["read"]}, {"repository": "1", "actions": ["publish"]}]}"#;
    let manager = r#"{"organization": ["manage-members"]}"#;
    for (holder, other, covered) in [
        (one, one, true),
        (one, all, false),
        (all, one, false),
        (split, one, true),
        (split, all, true),
        (one, split, false),
        (manager, "{}", true),
        ("{}", manager, false),
        (one, r#"{"repositories": [{"repository": "2", "actions": []}]}"#, true),
        (one, r#"{"repositories": [{"repository": "2", "actions": ["read"]}]}"#, false),
    ] {
        assert_eq!(covers(&held(holder), &held(other)), covered, "{holder} {other}");
    }
    assert!(covers(&Permissions::everything(), &held(split)));
}

#[test]
fn packages_and_names_are_covered_as_texts() {
    let acme = r#"{"repository": "1", "actions": ["read", "publish"], "packages": ["@acme/*", "lib"]}"#;
    let wide = r#"{"repository": "1", "actions": ["read", "publish"]}"#;
    let split = r#"{"repository": "1", "actions": ["publish"], "packages": ["a*"]},
                   {"repository": "1", "actions": ["publish"], "packages": ["b*"]}"#;
    let teams = r#"{"repository_name": "team-*", "actions": ["read", "publish"]}"#;
    let publish =
        |packages: &str| format!(r#"{{"repository": "1", "actions": ["publish"], "packages": {packages}}}"#);
    let named = |pattern: &str| format!(r#"{{"repository_name": "{pattern}", "actions": ["publish"]}}"#);
    for (holder, other, covered) in [
        (acme, publish(r#"["@acme/ui-*"]"#), true),
        (acme, publish(r#"["@acme/*"]"#), true),
        (acme, publish(r#"["lib", "@acme/lib"]"#), true),
        (acme, publish(r#"["@acme*"]"#), false),
        (acme, publish(r#"["lib*"]"#), false),
        (acme, publish(r#"["LIB"]"#), false),
        (acme, publish(r#"["*"]"#), false),
        (acme, wide.to_owned(), false),
        (acme, r#"{"repository": "1", "actions": ["read"]}"#.to_owned(), true),
        (acme, r#"{"repository": "1", "actions": ["read"], "packages": ["x"]}"#.to_owned(), true),
        (acme, r#"{"repository": "1", "actions": ["delete"], "packages": ["lib"]}"#.to_owned(), false),
        (wide, acme.to_owned(), true),
        (wide, publish(r#"["*"]"#), true),
        (split, publish(r#"["ab*", "b"]"#), true),
        (split, publish(r#"["*"]"#), false),
        (teams, wide.to_owned(), true),
        (teams, r#"{"repository": "2", "actions": ["publish"]}"#.to_owned(), false),
        (teams, r#"{"repository": "99", "actions": ["publish"]}"#.to_owned(), false),
        (teams, r#"{"repository": "*", "actions": ["publish"]}"#.to_owned(), false),
        (teams, named("team-a*"), true),
        (teams, named("team*"), false),
        (wide, named("team-one"), false),
    ] {
        assert_eq!(covers(&entries(holder), &entries(&other)), covered, "{holder} {other}");
    }
    let everywhere = r#"{"repository_name": "*", "actions": ["publish"]}"#;
    assert!(covers(&entries(everywhere), &entries(r#"{"repository": "*", "actions": ["publish"]}"#)));
    assert!(covers(&entries(everywhere), &entries(r#"{"repository": "99", "actions": ["publish"]}"#)));
    let star = r#"{"repository": "*", "actions": ["publish"]}"#;
    assert!(covers(&entries(star), &entries(&named("team-*"))));
}

#[test]
fn a_pattern_is_covered_in_every_folding() {
    for (held, needed, covered) in [
        ("*", "*", true),
        ("*", "", true),
        ("", "", true),
        ("", "*", false),
        ("a*b", "a*b", true),
        ("a*b", "ab", true),
        ("a*b", "a*", false),
        ("a*", "a**", true),
        ("a**", "a*", true),
        ("*a*", "*ba*", true),
        ("*ba*", "*a*", false),
        ("A*", "a*", false),
        // As PEP 503 folds them, the first matches `a-x-b` but not `a-b`, which is the second.
        ("a-*-b", "a--b", false),
        ("a-*-b", "a-x-b", true),
    ] {
        assert_eq!(pattern_covers(held, needed), covered, "{held} {needed}");
    }
}

#[test]
fn managing_all_repositories_includes_managing_one() {
    let one = entries(r#"{"repository": "1", "actions": ["manage"]}"#);
    assert!(covers(&held(r#"{"organization": ["manage-repositories"]}"#), &one));
    assert!(covers(&one, &one) && !covers(&held("{}"), &one));
    assert!(covers(&entries(r#"{"repository": "*", "actions": ["manage"]}"#), &one));
    assert!(!covers(&one, &held(r#"{"organization": ["manage-repositories"]}"#)));
    assert!(!one.read_only());
}

#[test]
fn a_read_only_member_neither_writes_nor_owns() {
    for (json, read_only) in [
        ("{}", true),
        (r#"{"organization": ["manage-members", "manage-repositories", "manage-subscribers"]}"#, true),
        (r#"{"organization": ["manage-owner-account"]}"#, false),
        (r#"{"repositories": [{"repository": "*", "actions": ["read"]}]}"#, true),
        (r#"{"repositories": [{"repository": "1", "actions": ["read", "delete"]}]}"#, false),
        (r#"{"repositories": [{"repository": "1", "actions": ["publish"]}]}"#, false),
    ] {
        assert_eq!(held(json).read_only(), read_only, "{json}");
    }
}

#[test]
fn duplicates_are_removed() {
    let twice = held(
        r#"{"organization": ["manage-members", "manage-members"], "repositories": [
            {"repository": "1", "actions": ["read", "read"]}, {"repository": "*", "actions": ["read"]},
            {"repository": "1", "actions": ["publish"], "packages": ["a"]},
            {"repository_name": "1", "actions": ["read"]},
            {"repository": "1", "actions": ["publish", "read"]},
            {"repository": "1", "actions": ["delete"], "packages": ["a"]}]}"#,
    );
    let once = held(
        r#"{"organization": ["manage-members"], "repositories": [
            {"repository": "1", "actions": ["read", "publish"]}, {"repository": "*", "actions": ["read"]},
            {"repository": "1", "actions": ["publish", "delete"], "packages": ["a"]},
            {"repository_name": "1", "actions": ["read"]}]}"#,
    );
    assert_eq!(twice.deduplicated(), once);
}

#[test]
fn text_that_cannot_be_parsed_gives_no_permission() {
    for json in ["", "{", r#"{"organization": ["root"]}"#, r#"{"is_admin": true}"#] {
        assert_eq!(Permissions::read(json), Permissions::default(), "{json}");
    }
}

fn member(own: &str, teams: &str) -> MemberRow {
    MemberRow {
        id: MemberId(1),
        organization: OrganizationId(1),
        email: "me@example.com".to_owned(),
        name: String::new(),
        password_hash: String::new(),
        permissions: own.to_owned(),
        created_at: 1,
        kind: MemberKind::Person,
        active: true,
        external_id: None,
        team_permissions: teams.to_owned(),
    }
}

#[test]
fn a_member_has_the_rights_of_all_its_teams() {
    let own = r#"{"repositories": [{"repository": "1", "actions": ["read"]}]}"#;
    let alone = Permissions::of_member(&member(own, ""));
    assert_eq!(alone, held(own));
    let teams = r#"[{"organization": ["manage-members"]}, {"unknown": 1},
        {"repositories": [{"repository": "1", "actions": ["publish"], "packages": ["a"]},
                          {"repository": "1", "actions": ["read"]}]}]"#;
    let all = Permissions::of_member(&member(own, teams));
    assert!(all.holds(Permission::ManageMembers));
    let rights = Rights { read: true, publish: true, ..Rights::default() };
    assert_eq!(all.rights(RepositoryId(1), "x"), rights);
    assert_eq!(all.repositories.len(), 2);
    assert_eq!(Permissions::of_member(&member(own, "[")), held(own));
}

#[test]
fn invalid_entries_are_named() {
    let long = "x".repeat(257);
    let many = vec!["\"a\""; 101].join(",");
    for (entry, word) in [
        (r#"{"actions": []}"#.to_owned(), "exactly one"),
        (r#"{"repository": "1", "repository_name": "a", "actions": []}"#.to_owned(), "exactly one"),
        (r#"{"repository_name": "", "actions": []}"#.to_owned(), "`repository_name`"),
        (format!(r#"{{"repository_name": "{long}", "actions": []}}"#), "`repository_name`"),
        (r#"{"repository": "1", "actions": [], "packages": []}"#.to_owned(), "`packages`"),
        (r#"{"repository": "1", "actions": [], "packages": ["a", ""]}"#.to_owned(), "`packages`"),
        (format!(r#"{{"repository": "1", "actions": [], "packages": ["{long}"]}}"#), "`packages`"),
        (format!(r#"{{"repository": "1", "actions": [], "packages": [{many}]}}"#), "`packages`"),
    ] {
        let sentence = entries(&entry).check().unwrap_err();
        assert!(sentence.contains(word), "{entry}: {sentence}");
    }
    let valid = r#"{"repository_name": "team-*", "actions": ["manage"], "packages": ["a", "*"]}"#;
    assert_eq!(entries(valid).check(), Ok(()));
    assert_eq!(Permissions::everything().check(), Ok(()));
    let many = |entries: usize, patterns: usize| {
        let entry = RepositoryPermission {
            repository: Some("7".to_owned()),
            repository_name: None,
            actions: vec![RepositoryAction::Publish],
            packages: (patterns > 0).then(|| vec!["a".to_owned(); patterns]),
        };
        Permissions { repositories: vec![entry; entries], ..Permissions::default() }.check()
    };
    assert!(many(1_000, 0).is_ok() && many(10, 100).is_ok());
    assert!(many(1_001, 0).is_err() && many(11, 100).is_err());
}

#[test]
fn new_forms_are_recognized_and_absent_fields_are_not_written() {
    for (entry, new) in [
        (r#"{"repository":"1","actions":["read","publish","delete"]}"#, false),
        (r#"{"repository":"1","actions":["manage"]}"#, true),
        (r#"{"repository_name":"a","actions":["read"]}"#, true),
        (r#"{"repository":"1","actions":["read"],"packages":["a"]}"#, true),
    ] {
        let permissions = entries(entry);
        assert_eq!(permissions.needs_new_servers(), new, "{entry}");
        let written = serde_json::to_string(&permissions.repositories).unwrap();
        assert_eq!(written, format!("[{entry}]"));
    }
    assert!(!Permissions::everything().needs_new_servers());
    let unknown = r#"{"repositories": [{"repository": "1", "actions": [], "package": ["a"]}]}"#;
    assert!(serde_json::from_str::<Permissions>(unknown).is_err());
}

#[test]
fn the_server_is_managed_from_the_first_organization_alone() {
    let named = r#"{"organization": ["manage-server"]}"#;
    for (json, first, manages) in [
        (r#"{"organization": ["manage-owner-account"]}"#, true, true),
        (r#"{"organization": ["manage-owner-account"]}"#, false, false),
        (named, true, true),
        (named, false, false),
        (r#"{"organization": ["manage-members"]}"#, true, false),
    ] {
        let held = held(json).of_organization(first);
        assert_eq!(held.holds(Permission::ManageServer), manages, "{json} {first}");
    }
    assert!(!Permissions::everything().holds(Permission::ManageServer));
}

#[test]
fn serialized_names_match_the_api_names() {
    for permission in Permission::ALL {
        assert_eq!(serde_json::to_value(permission).unwrap(), permission.name());
    }
}
