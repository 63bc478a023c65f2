//! The Meta-TF command line: check, format, generate, dump, encode, verify.
