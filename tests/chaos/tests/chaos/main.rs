//! A round of load and faults, and proof that the checker finds what it looks for.

mod chaos;
mod checker;
