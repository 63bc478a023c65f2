//! The DTDs included in the project.
//!
//! ```
//! use metatf::dynamic::Schema;
//! use metatf_tools::built_in::{find, of_raw_files};
//!
//! let (name, text) = find("https://example.org/dtds/pcap.dtd").ok_or("no such DTD")?;
//! assert_eq!(name, "pcap.dtd");
//! let schema = Schema::parse(name, text.as_bytes())?;
//! assert!(schema.dtd.section_named("packets").is_some());
//!
//! // A capture file has no Meta-TF header, so tools recognize it by its first bytes.
//! assert!(of_raw_files().iter().any(|raw| raw.dtd == schema.dtd));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use metatf::dynamic::Schema;

/// All built-in DTDs, as pairs of file name and text.
pub const DTDS: &[(&str, &str)] = &[
    ("HATF10.dtd", include_str!("../dtds/HATF10.dtd")),
    ("HATF10-split.dtd", include_str!("../dtds/HATF10-split.dtd")),
    ("heap.dtd", include_str!("../dtds/heap.dtd")),
    ("heap-split.dtd", include_str!("../dtds/heap-split.dtd")),
    ("heap-values.dtd", include_str!("../dtds/heap-values.dtd")),
    ("hprof.dtd", include_str!("../dtds/hprof.dtd")),
    ("mps.dtd", include_str!("../dtds/mps.dtd")),
    ("mps-split.dtd", include_str!("../dtds/mps-split.dtd")),
    ("pcap.dtd", include_str!("../dtds/pcap.dtd")),
    ("pcapng.dtd", include_str!("../dtds/pcapng.dtd")),
    ("perf.dtd", include_str!("../dtds/perf.dtd")),
    ("scoped.dtd", include_str!("../dtds/scoped.dtd")),
    ("scoped-log.dtd", include_str!("../dtds/scoped-log.dtd")),
    ("xray.dtd", include_str!("../dtds/xray.dtd")),
];

/// Finds the DTD named by the last component of a path or URL, with or without `.dtd`. Returns its file name and text.
#[must_use]
pub fn find(url: &str) -> Option<(&'static str, &'static str)> {
    let wanted = file_name(url);
    DTDS.iter().copied().find(|(name, _)| *name == wanted || name.strip_suffix(".dtd") == Some(wanted))
}

/// Returns the last component of a path or URL.
#[must_use]
pub fn file_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// Returns the DTDs that describe files without a header (spec 5.4).
#[must_use]
pub fn of_raw_files() -> Vec<Schema> {
    // Parse only DTDs that mention the role.
    let texts = DTDS.iter().filter(|(_, text)| text.contains("\"magic\""));
    let schemas = texts.filter_map(|(name, text)| Schema::parse(name, text.as_bytes()).ok());
    schemas.filter(|schema| schema.format.raw.is_some()).collect()
}
