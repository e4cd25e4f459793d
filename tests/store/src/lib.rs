//! The store's own tests, over each of its databases and storages: they lie in `tests/`. A crate apart from the store, since what is
//! compiled at its level of optimisation takes minutes and gains nothing.
