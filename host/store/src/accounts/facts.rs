//! What a transaction changed of what look-ups answer, as the triggers of the database say it: things parted by spaces, each a
//! letter and most with a number.

use std::collections::HashSet;

use crate::accounts::snapshots::{LookUp, Question};
use crate::ids::RepositoryId;

/// Things that changed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Facts {
    everything: bool,
    /// A transaction of a process that waits for nobody was among them.
    foreign: bool,
    /// A token or an access key was made.
    new_credential: bool,
    /// What groups of subscribers reach.
    all_keys: bool,
    tokens: HashSet<i64>,
    keys: HashSet<i64>,
    key_owners: HashSet<i64>,
    members: HashSet<i64>,
    repositories: HashSet<i64>,
    /// Organizations with a repository that has this name from now on.
    new_repositories: HashSet<i64>,
    organizations: HashSet<i64>,
}

impl Facts {
    /// Reads them. What is not understood, a newer version's, is everything.
    pub(crate) fn read(text: &str) -> Facts {
        let mut facts = Facts::default();
        text.split_whitespace().for_each(|thing| facts.add(thing));
        facts
    }

    /// What is known of this repository.
    pub(crate) fn of_repository(repository: RepositoryId) -> Facts {
        Facts { repositories: HashSet::from([repository.0]), ..Facts::default() }
    }

    fn add(&mut self, thing: &str) {
        match thing {
            "!" => self.foreign = true,
            "c" => self.new_credential = true,
            "K" => self.all_keys = true,
            _ => {
                let mut letters = thing.chars();
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

    /// These and the others.
    pub(crate) fn extend(&mut self, other: Facts) {
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
        *self == Facts::default()
    }

    /// Whether a process wrote that waits for nobody.
    pub(crate) fn are_foreign(&self) -> bool {
        self.foreign
    }

    pub(super) fn is_everything(&self) -> bool {
        self.everything
    }

    /// Whether what they change may be in this answer.
    pub(super) fn touch(&self, question: &Question, answer: &LookUp) -> bool {
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
    fn things_are_read_and_what_is_not_understood_is_everything() {
        let facts = Facts::read(" t12 t13 m5 ");
        assert!(facts.tokens.contains(&12) && facts.tokens.contains(&13) && facts.members.contains(&5));
        assert!(!facts.is_everything() && !facts.is_empty());
        for text in ["*", "x1", "t", "tx", "t1 *"] {
            assert!(Facts::read(text).is_everything(), "{text}");
        }
        assert!(Facts::read("  ").is_empty());
    }
}
