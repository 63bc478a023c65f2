//! Generates Rust readers and writers from Meta-TF DTDs.
