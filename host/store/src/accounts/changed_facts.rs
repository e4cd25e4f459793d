//! The changes of a transaction that may affect look-up answers, as the database triggers announce
//! them. The format is a list of items separated by spaces. An item is a letter, mostly followed by
//! an identifier.

use std::collections::HashSet;

use crate::accounts::snapshots::{LookUp, LookUpQuery};
use crate::ids::RepositoryId;

/// Set of changes that may affect look-up answers.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct ChangedFacts {
    everything: bool,
    /// A process that does not wait for acknowledgements made one of the changes.
    foreign: bool,
    /// A token or an access key was created.
    new_credential: bool,
    /// The repositories of a subscriber group changed, which affects all access keys.
    all_keys: bool,
    tokens: HashSet<i64>,
    keys: HashSet<i64>,
    key_owners: HashSet<i64>,
    members: HashSet<i64>,
    repositories: HashSet<i64>,
    /// Organizations in which a repository has a new name.
    new_repositories: HashSet<i64>,
    organizations: HashSet<i64>,
}

impl ChangedFacts {
    /// Parses an announcement. An item that this version does not know counts as a change of
    /// everything.
    pub(crate) fn read(text: &str) -> ChangedFacts {
        let mut facts = ChangedFacts::default();
        text.split_whitespace().for_each(|item| facts.add(item));
        facts
    }

    /// The change of one repository.
    pub(crate) fn of_repository(repository: RepositoryId) -> ChangedFacts {
        ChangedFacts { repositories: HashSet::from([repository.0]), ..ChangedFacts::default() }
    }

    fn add(&mut self, item: &str) {
        match item {
            "!" => self.foreign = true,
            "c" => self.new_credential = true,
            "K" => self.all_keys = true,
            _ => {
                let mut letters = item.chars();
                let letter = letters.next();
                let set = match letter {
                    Some('t') => &mut self.tokens,
                    Some('k') => &mut self.keys,
                    Some('o') => &mut self.key_owners,
                    Some('m') => &mut self.members,
                    Some('r') => &mut self.repositories,
                    Some('n') => &mut self.new_repositories,
                    Some('g') => &mut self.organizations,
                    _ => {
                        self.everything = true;
                        return;
                    }
                };
                match letters.as_str().parse() {
                    Ok(id) => drop(set.insert(id)),
                    Err(_) => self.everything = true,
                }
            }
        }
    }

    /// Adds the changes of `other`.
    pub(crate) fn extend(&mut self, other: ChangedFacts) {
        self.everything |= other.everything;
        self.foreign |= other.foreign;
        self.new_credential |= other.new_credential;
        self.all_keys |= other.all_keys;
        self.tokens.extend(other.tokens);
        self.keys.extend(other.keys);
        self.key_owners.extend(other.key_owners);
        self.members.extend(other.members);
        self.repositories.extend(other.repositories);
        self.new_repositories.extend(other.new_repositories);
        self.organizations.extend(other.organizations);
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == ChangedFacts::default()
    }

    /// Returns whether a process that does not wait for acknowledgements made one of the changes.
    pub(crate) fn are_foreign(&self) -> bool {
        self.foreign
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// Returns whether these changes may affect this answer.
    pub(super) fn touch(&self, question: &LookUpQuery, answer: &LookUp) -> bool {
        let LookUp { repository, token, owner, key, members, .. } = answer;
        let credential = token.is_some() || key.is_some();
        let mut repositories = repository.iter().chain(members.iter().map(|member| &member.row));
        self.everything
            || self.organizations.contains(&question.organization.0)
            || (self.new_credential && question.secret_sha256.is_some() && !credential)
            || (self.all_keys && key.is_some())
            || token.as_ref().is_some_and(|row| {
                self.tokens.contains(&row.id.0) || row.owner.is_some_and(|id| self.members.contains(&id.0))
            })
            || owner.as_ref().is_some_and(|row| self.members.contains(&row.id.0))
            || key
                .as_ref()
                .is_some_and(|row| self.keys.contains(&row.id.0) || self.key_owners.contains(&row.owner.0))
            || (repository.is_none() && self.new_repositories.contains(&question.organization.0))
            || repositories.any(|row| self.repositories.contains(&row.id.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_parsed_and_unknown_ones_count_as_everything() {
        let facts = ChangedFacts::read(" t12 t13 m5 ");
        assert!(facts.tokens.contains(&12) && facts.tokens.contains(&13) && facts.members.contains(&5));
        assert!(!facts.is_everything() && !facts.is_empty());
        for text in ["*", "x1", "t", "tx", "t1 *"] {
            assert!(ChangedFacts::read(text).is_everything(), "{text}");
        }
        assert!(ChangedFacts::read("  ").is_empty());
    }
}
