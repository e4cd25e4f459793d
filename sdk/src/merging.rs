//! An answer that is merged of what several repositories have.

use crate::{Context, Failure, Repository};

/// What several repositories answer, on its way to one document. What a member of a group sends that cannot be read is left out, and
/// logged: one member's odd document does not take away what the others have.
pub struct Merging<'a> {
    cx: &'a Context,
    missed: Option<Failure>,
}

impl<'a> Merging<'a> {
    /// Begins to merge.
    pub fn new(cx: &'a Context) -> Self {
        Self { cx, missed: None }
    }

    /// What a repository answered; none where it sent what [cannot be read](Failure::unreadable).
    ///
    /// # Errors
    /// Any other failure.
    pub fn readable<T>(
        &mut self,
        source: &Repository,
        answer: Result<Option<T>, Failure>,
    ) -> Result<Option<T>, Failure> {
        match answer {
            Err(failure) if failure.unreadable => {
                let said = failure.problems.first().map_or("", |problem| problem.message.as_str());
                let fields = [("repository", source.name()), ("reason", said.to_owned())];
                let fields = fields.each_ref().map(|(name, value)| (*name, value.as_str()));
                self.cx.log().warn("a document of an upstream's is left out", &fields);
                self.missed.get_or_insert(failure);
                Ok(None)
            }
            answer => answer,
        }
    }

    /// Ends it.
    ///
    /// # Errors
    /// The first failure that was passed over, unless something `is_found` elsewhere.
    pub fn end(self, is_found: bool) -> Result<(), Failure> {
        self.missed.filter(|_| !is_found).map_or(Ok(()), Err)
    }
}
