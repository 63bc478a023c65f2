//! The Meta-TF language: a DTD's text to its resolved schema, with diagnostics.
pub mod schema;
