//! Built-in DTDs and sample traces.

use crate::Result;
use serde::Serialize;

/// The DTDs in the folder `dtds`, as file names and texts.
pub const DTDS: &[(&str, &str)] = &[
    ("HATF10.dtd", include_str!("../../../dtds/HATF10.dtd")),
    ("HATF10-split.dtd", include_str!("../../../dtds/HATF10-split.dtd")),
    ("heap.dtd", include_str!("../../../dtds/heap.dtd")),
    ("heap-split.dtd", include_str!("../../../dtds/heap-split.dtd")),
    ("heap-values.dtd", include_str!("../../../dtds/heap-values.dtd")),
    ("heapprof.dtd", include_str!("../../../dtds/heapprof.dtd")),
    ("hprof.dtd", include_str!("../../../dtds/hprof.dtd")),
    ("mps.dtd", include_str!("../../../dtds/mps.dtd")),
    ("mps-split.dtd", include_str!("../../../dtds/mps-split.dtd")),
    ("pcap.dtd", include_str!("../../../dtds/pcap.dtd")),
    ("pcapng.dtd", include_str!("../../../dtds/pcapng.dtd")),
    ("perf.dtd", include_str!("../../../dtds/perf.dtd")),
    ("scoped.dtd", include_str!("../../../dtds/scoped.dtd")),
    ("scoped-log.dtd", include_str!("../../../dtds/scoped-log.dtd")),
    ("xray.dtd", include_str!("../../../dtds/xray.dtd")),
];

/// Finds a built-in DTD by the last part of a URL, with or without `.dtd`.
#[must_use]
pub fn built_in(url: &str) -> Option<(&'static str, &'static str)> {
    let wanted = url.rsplit('/').next().unwrap_or(url);
    DTDS.iter().copied().find(|(name, _)| *name == wanted || name.strip_suffix(".dtd") == Some(wanted))
}

/// Sample JSON lines, with the DTD of their format.
struct Lines {
    name: &'static str,
    about: &'static str,
    dtd: &'static str,
    lines: &'static str,
}

macro_rules! vector {
    ($name:literal, $about:literal) => {
        Lines {
            name: $name,
            about: $about,
            dtd: include_str!(concat!("../../../tests/vectors/good/", $name, "/format.dtd")),
            lines: include_str!(concat!("../../../tests/vectors/good/", $name, "/expected.jsonl")),
        }
    };
}

/// Sample formats. All but the first are conformance vectors.
const LINES: &[Lines] = &[
    Lines {
        name: "jobs",
        about: "a job queue: delta, stride, and a width that grows",
        dtd: include_str!("../../../examples/build-script/jobs.dtd"),
        lines: include_str!("../samples/jobs.jsonl"),
    },
    vector!("width-changes", "metadata records widen a field"),
    vector!("x-nested", "records nested in records"),
    vector!("repetition", "repeated fields"),
    vector!("delta-wrap", "differences that wrap around"),
    vector!("f64", "floating-point numbers"),
    vector!("predicted-words", "values predicted by a model"),
];

/// Sample files: heap traces and logs of other programs.
const FILES: &[(&str, &str, &[u8])] = &[
    ("heap.gawk.mtf", "a heap trace of gawk", include_bytes!("../../../tests/golden/1.0/heap.gawk-default.mtf")),
    ("packets.pcap", "packets captured by tcpdump", include_bytes!("../../../tests/golden/1.0/pcap.packets.pcap")),
    ("calls.xray", "function calls logged by LLVM XRay", include_bytes!("../../../tests/golden/1.0/xray.calls.xray")),
    (
        "blocks.pcapng",
        "packets captured by Wireshark",
        include_bytes!("../../../tests/golden/1.0/pcapng.blocks.pcapng"),
    ),
];

/// The names of all samples.
#[derive(Serialize)]
pub struct Names {
    /// Formats with sample JSON lines, as names and descriptions.
    formats: Vec<[&'static str; 2]>,
    /// Files.
    files: Vec<[&'static str; 2]>,
    /// DTDs without sample JSON lines, as names and descriptions.
    dtds: Vec<[&'static str; 2]>,
}

/// A sample.
#[derive(Serialize)]
pub struct Sample {
    /// The DTD; `None` for a file, which embeds its DTD or is recognized by its first bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtd: Option<&'static str>,
    /// JSON lines in this format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lines: Option<&'static str>,
    /// A file.
    #[serde(skip)]
    pub file: &'static [u8],
}

/// Returns the names of all samples.
#[must_use]
pub fn names() -> Names {
    Names {
        formats: LINES.iter().map(|lines| [lines.name, lines.about]).collect(),
        files: FILES.iter().map(|(name, about, _)| [*name, *about]).collect(),
        dtds: DTDS.iter().map(|(name, _)| [*name, ""]).collect(),
    }
}

/// Returns the sample with this name.
///
/// # Errors
/// Returns an error if there is no such sample.
pub fn named(name: &str) -> Result<Sample> {
    if let Some(of) = LINES.iter().find(|lines| lines.name == name) {
        return Ok(Sample { dtd: Some(of.dtd), lines: Some(of.lines), file: &[] });
    }
    if let Some((_, _, file)) = FILES.iter().find(|(file, ..)| *file == name) {
        return Ok(Sample { dtd: None, lines: None, file });
    }
    let dtd = DTDS.iter().find(|(dtd, _)| *dtd == name);
    dtd.map(|(_, text)| Sample { dtd: Some(text), lines: None, file: &[] })
        .ok_or_else(|| format!("there is no sample {name}"))
}
