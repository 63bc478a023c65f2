//! Cross-crate tests of Meta-TF: see the `tests` folder beside this crate.
