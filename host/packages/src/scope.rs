//! Scopes of bearer tokens: a repository, a subject in it, and actions, written as a claim's
//! template requires. The grammar is that of the token services of container registries,
//! `TYPE:NAME:ACTION,…`. The description defines all words in a scope.

use packhouse_runtime::TokenService;

use packhouse_identity::ScopeGrant;
use packhouse_identity::access::AccessAction;

const REPOSITORY: &str = "{repository}";
const SUBJECT: &str = "{subject}";
const ACTION: &str = "{action}";
/// Word that stands for all actions.
const ALL: &str = "*";

/// The scopes of one format below one of its claims.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scopes<'a> {
    template: &'a str,
    words: &'a TokenService,
}

impl<'a> Scopes<'a> {
    /// Creates scopes from a claim's template and the words in the description.
    pub(crate) fn new(template: &'a str, words: &'a TokenService) -> Self {
        Self { template, words }
    }

    /// Reports whether scopes contain a subject.
    pub(crate) fn has_subject(&self) -> bool {
        self.template.contains(SUBJECT)
    }

    /// Returns the scope that a request requires. Returns `None` if the template needs a subject
    /// and the request has none, or if a header cannot contain the scope.
    pub(crate) fn text(
        &self,
        repository: &str,
        subject: Option<&str>,
        required: AccessAction,
    ) -> Option<String> {
        let words = self.words;
        let actions = match required {
            AccessAction::Open | AccessAction::Read { .. } => words.read.clone(),
            AccessAction::Publish => format!("{},{}", words.read, words.publish),
            AccessAction::Delete => format!("{},{}", words.read, words.delete),
        };
        if subject.is_none() && self.has_subject() {
            return None;
        }
        let named = self.template.replace(REPOSITORY, repository).replace(ACTION, &actions);
        let text = named.replace(SUBJECT, subject.unwrap_or_default());
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        text.bytes().all(plain).then_some(text)
    }

    /// Parses a scope, and ignores unknown actions in it. Returns `None` if the scope does not
    /// match the template.
    pub(crate) fn read(&self, scope: &str) -> Option<ScopeGrant> {
        let (head, rest) = self.template.split_once(REPOSITORY)?;
        let (middle, tail) = rest.split_once(ACTION)?;
        let scope = scope.strip_prefix(head)?.strip_suffix(tail)?;
        let (repository, subject, actions) = match middle.split_once(SUBJECT) {
            Some((before, after)) => {
                let (repository, rest) = scope.split_once(before)?;
                let (subject, actions) = rest.rsplit_once(after)?;
                (repository, Some(subject), actions)
            }
            None => {
                let (repository, actions) = scope.rsplit_once(middle)?;
                (repository, None, actions)
            }
        };
        let requests = |word: &str| actions.split(',').any(|action| action == ALL || action == word);
        Some(ScopeGrant {
            repository: repository.to_owned(),
            subject: subject.map(str::to_owned),
            read: requests(&self.words.read),
            publish: requests(&self.words.publish),
            delete: requests(&self.words.delete),
        })
    }

    /// Formats a grant as a scope.
    pub(crate) fn of(&self, grant: &ScopeGrant) -> String {
        let words = [
            (grant.read, &self.words.read),
            (grant.publish, &self.words.publish),
            (grant.delete, &self.words.delete),
        ];
        let actions: Vec<&str> =
            words.iter().filter(|(granted, _)| *granted).map(|(_, word)| word.as_str()).collect();
        let named = self.template.replace(REPOSITORY, &grant.repository).replace(ACTION, &actions.join(","));
        named.replace(SUBJECT, grant.subject.as_deref().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words() -> TokenService {
        serde_json::from_str(r#"{"path": "/v2/token"}"#).unwrap()
    }

    const TEMPLATE: &str = "repository:repositories/{repository}/{subject}:{action}";

    #[test]
    fn a_scope_is_read_as_it_is_written() {
        let words = words();
        let scopes = Scopes::new(TEMPLATE, &words);
        let read = AccessAction::Read { for_publish: false };
        for (subject, required, text) in [
            ("team/app", read, "repository:repositories/r/team/app:pull"),
            ("app", AccessAction::Publish, "repository:repositories/r/app:pull,push"),
            ("app", AccessAction::Delete, "repository:repositories/r/app:pull,delete"),
        ] {
            assert_eq!(scopes.text("r", Some(subject), required).as_deref(), Some(text));
            let grant = scopes.read(text).unwrap();
            assert_eq!((grant.repository.as_str(), grant.subject.as_deref()), ("r", Some(subject)));
            assert!(grant.covers("r", Some(subject), required));
            assert_eq!(scopes.of(&grant), text);
        }
        assert!(scopes.text("r", None, read).is_none());
        assert!(scopes.text("r", Some("a\"b"), read).is_none());
    }

    #[test]
    fn a_star_asks_for_all_and_odd_words_for_nothing() {
        let words = words();
        let scopes = Scopes::new(TEMPLATE, &words);
        let all = scopes.read("repository:repositories/r/a:*").unwrap();
        assert!(all.read && all.publish && all.delete);
        let none = scopes.read("repository:repositories/r/a:fly,PULL").unwrap();
        assert!(!none.read && !none.publish && !none.delete);
        for other in ["registry:catalog:*", "repository:r:pull", "repository:repositories/r:pull", "", ":"] {
            assert!(scopes.read(other).is_none(), "{other}");
        }
        // The colon before a port in the name must not be taken for the separator.
        let ported = scopes.read("repository:repositories/r/a:5000/b:pull").unwrap();
        assert_eq!(ported.subject.as_deref(), Some("a:5000/b"));
    }

    #[test]
    fn a_template_may_do_without_a_subject() {
        let words = words();
        let scopes = Scopes::new("packages:{repository}:{action}", &words);
        assert_eq!(scopes.text("r", None, AccessAction::Publish).as_deref(), Some("packages:r:pull,push"));
        let grant = scopes.read("packages:r:push").unwrap();
        assert!(
            grant.covers("r", Some("anything"), AccessAction::Publish)
                && !grant.covers("s", None, AccessAction::Publish)
        );
    }
}
