//! The store's own tests, over each of its databases and storages. The tests are in `tests/`. They
//! have a crate of their own, because compiling tests at the store's optimisation level would take
//! minutes and gain nothing.
