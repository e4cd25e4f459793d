//! A round of load and faults, and proof that the checker finds what it must find.

mod chaos;
mod checker;
