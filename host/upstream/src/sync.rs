//! Locks of this crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose data is valid after every statement, so a panic in another thread leaves nothing half done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
