//! A value that may change while the program runs. Callers read the value again for each use.

use std::sync::{Arc, PoisonError, RwLock};

/// A shared value. All clones see the same value.
#[derive(Debug, Default)]
pub struct Live<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Live<T> {
    /// Creates the shared value with its first value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(value))))
    }

    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the value for every clone.
    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_sees_the_change_and_an_old_value_stays_valid() {
        let live = Live::new(1);
        let (clone, held) = (live.clone(), live.get());
        clone.set(2);
        assert_eq!((*live.get(), *held), (2, 1));
    }
}
