//! Groups of a user, as the provider's ID token states them.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

/// Maximum number of groups in a token.
const MOST: usize = 1_000;
/// Maximum length of the name of a group that a team can name, in characters.
const LONGEST: usize = 256;

/// The claim of an ID token that lists the user's groups.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum GroupsClaim {
    /// The user's groups, without repetition. An empty list means that the user has no group.
    Listed(Vec<String>),
    /// The token does not state the groups, or not all of them. The text is the reason, for the
    /// log.
    Unknown(&'static str),
}

impl GroupsClaim {
    /// Reads the claim `name`, which is a text or a list of texts. Leaves out names that no team
    /// can name. If the claim contains something else, or too many groups, the groups are unknown:
    /// a part of the list would take away memberships.
    pub(crate) fn read(claims: &Map<String, Value>, name: &str) -> GroupsClaim {
        if is_elsewhere(claims, name) {
            return GroupsClaim::Unknown("the ID token only refers to the groups");
        }
        let listed = match claims.get(name) {
            None | Some(Value::Null) => return GroupsClaim::Unknown("the ID token has no such claim"),
            Some(Value::String(only)) => Some(vec![only.as_str()]),
            Some(Value::Array(items)) => items.iter().map(Value::as_str).collect(),
            Some(_) => None,
        };
        let Some(listed) = listed else {
            return GroupsClaim::Unknown("the claim is neither a text nor a list of texts");
        };
        if listed.len() > MOST {
            return GroupsClaim::Unknown("the claim lists more than 1,000 groups");
        }
        let groups: BTreeSet<&str> = listed.into_iter().filter(|group| can_be_named(group)).collect();
        GroupsClaim::Listed(groups.into_iter().map(str::to_owned).collect())
    }
}

/// Reports whether the groups are too many for the token, which then refers to another source
/// (OpenID Connect Core 1.0, section 5.6.2; Microsoft Entra ID also uses `hasgroups`).
fn is_elsewhere(claims: &Map<String, Value>, name: &str) -> bool {
    let is_referred_to = claims.get("_claim_names").is_some_and(|names| names.get(name).is_some());
    let is_hinted_at = claims.get("hasgroups").is_some_and(|hint| *hint != Value::Bool(false));
    is_referred_to || (is_hinted_at && !claims.contains_key(name))
}

fn can_be_named(group: &str) -> bool {
    !group.is_empty() && group.chars().count() <= LONGEST && !group.contains(char::is_control)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(claims: Value) -> GroupsClaim {
        GroupsClaim::read(claims.as_object().unwrap(), "groups")
    }

    fn listed(groups: &[&str]) -> GroupsClaim {
        GroupsClaim::Listed(groups.iter().map(|group| (*group).to_owned()).collect())
    }

    #[test]
    fn a_text_is_one_group_and_a_list_may_be_empty() {
        assert_eq!(read(json!({"groups": "admins"})), listed(&["admins"]));
        assert_eq!(read(json!({"groups": ["b", "a", "b"]})), listed(&["a", "b"]));
        assert_eq!(read(json!({"groups": []})), listed(&[]));
        let long = "x".repeat(257);
        assert_eq!(read(json!({"groups": ["a", "", long, "b\u{0}"]})), listed(&["a"]));
    }

    #[test]
    fn groups_that_the_token_does_not_state_are_unknown() {
        let many: Vec<String> = (0..=MOST).map(|number| number.to_string()).collect();
        for claims in [
            json!({}),
            json!({"groups": null}),
            json!({"roles": ["a"]}),
            json!({"groups": {"a": true}}),
            json!({"groups": ["a", 7]}),
            json!({"groups": many}),
            json!({"hasgroups": true}),
            json!({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}}),
            json!({"groups": ["a"], "_claim_names": {"groups": "src1"}}),
        ] {
            assert!(matches!(read(claims.clone()), GroupsClaim::Unknown(_)), "{claims}");
        }
        // The reference is about another claim, or about nothing.
        assert_eq!(read(json!({"groups": ["a"], "_claim_names": {"roles": "src1"}})), listed(&["a"]));
        assert_eq!(read(json!({"groups": ["a"], "hasgroups": false})), listed(&["a"]));
    }
}
