//! A value that may change while the program runs: whoever uses it asks for it each time, and keeps what it got for one use.

use std::sync::{Arc, PoisonError, RwLock};

/// See the module. Clones are one value.
#[derive(Debug, Default)]
pub struct Live<T>(Arc<RwLock<Arc<T>>>);

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Live<T> {
    /// With its first value.
    pub fn new(value: T) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(value))))
    }

    /// The value at present.
    pub fn get(&self) -> Arc<T> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place, for every clone.
    pub fn set(&self, value: T) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_sees_the_change_and_who_holds_the_old_value_keeps_it() {
        let live = Live::new(1);
        let (clone, held) = (live.clone(), live.get());
        clone.set(2);
        assert_eq!((*live.get(), *held), (2, 1));
    }
}
