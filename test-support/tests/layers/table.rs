//! The table of layers: the modules of each crate, lowest first. A module may name those before it, and no other.

/// The layers of a crate, or of one of its modules.
pub(crate) struct Layers {
    /// Its folder.
    pub(crate) folder: &'static str,
    /// The module whose modules these are; none: those of the crate.
    pub(crate) within: Option<&'static str>,
    /// Its modules, lowest first.
    pub(crate) modules: &'static [&'static str],
}

/// The crates whose layers hold, lowest first.
pub(crate) const TABLE: &[Layers] = &[Layers { folder: "metatf-derive", within: None, modules: &["attribute"] }];

/// Those that are not held yet: what is wrong with them is printed.
pub(crate) const NOT_YET: &[(&str, Option<&str>)] = &[
    ("metatf-parser", None),
    ("metatf-codegen", None),
    ("metatf", None),
    ("metatfc", None),
    ("hatf", None),
    ("hatf-record", None),
    ("hatf-record", Some("preload")),
];
