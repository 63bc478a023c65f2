//! The #[metatf(dtd = "..")] attribute: a typed reader and writer from a Meta-TF DTD.
