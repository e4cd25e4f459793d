//! The Helm chart, against the types of Kubernetes. `just test-all` runs it, because those types
//! take minutes to compile.

#![cfg(test)]

mod helm_chart;
