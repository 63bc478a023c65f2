//! Tests the container with the vectors: valid traces are read to the end, and errors in invalid traces are found at
//! the offset that the vector specifies. Both hold whether the bytes come from memory or from a stream.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use std::path::{Path, PathBuf};

use metatf_container::{Error, ErrorKind, Reader, Warning};

/// The section, base, reset flag and bytes of a part.
type Seen = (u8, u64, bool, Vec<u8>);

fn vectors(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(kind);
    let mut cases: Vec<PathBuf> = std::fs::read_dir(folder).expect("the vectors").map(|e| e.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty());
    cases
}

fn name(case: &Path) -> &str {
    case.file_name().unwrap().to_str().unwrap()
}

/// The DTD's tag properties: the tag width, and the tag of `section` records if it is not 2.
#[derive(Clone, Copy)]
struct Tags {
    width: u8,
    section: Option<u32>,
}

impl Tags {
    fn of(case: &Path) -> Self {
        let dtd = std::fs::read_to_string(case.join("format.dtd")).unwrap_or_default();
        let number = |field: &str| {
            let behind = &dtd[dtd.find(field)? + field.len()..];
            let word = behind.trim_start_matches([' ', '=']).split(';').next()?;
            word.strip_prefix("0x").map_or_else(|| word.parse().ok(), |word| u32::from_str_radix(word, 16).ok())
        };
        let width = number("tag.width").map_or(1, |width| u8::try_from(width).unwrap());
        Self { width, section: number("section.tag.value") }
    }

    fn set(self, reader: &mut Reader<'_>) {
        reader.set_tag_width(self.width);
        if let Some(tag) = self.section {
            reader.set_section_tag(tag);
        }
    }
}

fn drain(reader: Result<Reader<'_>, Error>, tags: Tags) -> (Vec<Seen>, Vec<Warning>, Option<Error>) {
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), Vec::new(), Some(error)),
    };
    tags.set(&mut reader);
    let mut parts = Vec::new();
    let error = loop {
        match reader.next_part() {
            Ok(Some(part)) => {
                parts.push((part.section, part.base, part.reset, reader.bytes(&part.content).to_vec()));
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    assert!(matches!(reader.next_part(), Ok(None)), "fused");
    (parts, reader.warnings().to_vec(), error)
}

/// Reads from memory and from a stream that delivers a few bytes at a time.
fn both(trace: &[u8], tags: Tags) -> (Vec<Seen>, Vec<Warning>, Option<Error>) {
    let slice = drain(Reader::from_slice(trace), tags);
    let stream = drain(Reader::from_read(Drips(trace, 7)), tags);
    assert_eq!(slice, stream);
    slice
}

struct Drips<'a>(&'a [u8], usize);

impl std::io::Read for Drips<'_> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let n = self.1.min(out.len()).min(self.0.len());
        out[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[test]
fn good() {
    for case in vectors("good") {
        let Ok(trace) = std::fs::read(case.join("trace.mtf")) else { continue };
        let (parts, warnings, error) = both(&trace, Tags::of(&case));
        // The trace of `x-salvage-embedded-first` is intact.
        let is_damaged = ["salvage-", "x-salvage-class", "x-salvage-header"];
        if is_damaged.iter().any(|group| name(&case).starts_with(group)) {
            assert!(error.is_some() || name(&case) == "salvage-nothing", "{}", name(&case));
            continue;
        }
        assert_eq!(error, None, "{}", name(&case));
        let open = ["v1-pipe", "x-v1-empty-last"].contains(&name(&case));
        assert_eq!(warnings.contains(&Warning::NotClosed), open, "{}", name(&case));
        let empty = ["v0-empty", "v1-empty"].contains(&name(&case));
        assert!(!parts.is_empty() || empty, "{}", name(&case));

        let opened = Reader::open(case.join("trace.mtf")).unwrap();
        assert_eq!(opened.header(), Reader::from_slice(&trace).unwrap().header());
        assert_eq!(drain(Ok(opened), Tags::of(&case)), (parts.clone(), warnings, None));

        let mut salvaged = Reader::salvage_slice(&trace).unwrap();
        Tags::of(&case).set(&mut salvaged);
        let mut n = 0;
        while let Some(part) = salvaged.next_part().unwrap() {
            assert!(!part.damage_before && !part.group_damaged);
            n += 1;
        }
        assert_eq!(n, parts.len());
        assert!(salvaged.loss_report().is_none_or(|report| report.is_empty()), "{}", name(&case));
    }
}

#[test]
fn filters_and_codecs_agree() {
    let read = |name: &str| {
        let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/good").join(name);
        both(&std::fs::read(case.join("trace.mtf")).unwrap(), Tags { width: 1, section: None }).0
    };
    let (little, big) = (read("v1-stored-little"), read("v1-stored-transpose-big"));
    for codec in ["lz4", "zlib"] {
        assert_eq!(read(&format!("v1-{codec}-little")), little);
        assert_eq!(read(&format!("v1-{codec}-transpose-big")), big);
    }
    assert_eq!(read("v1-zstd-transpose-little"), little);
    assert_eq!(read("v1-zstd-big"), big);
}

/// Errors that only a reader with the DTD can detect.
const BY_RECORDS: &[&str] = &[
    "constant",
    "count-huge-free",
    "items-limit",
    "record-cut",
    "section-0",
    "section-in-extent",
    "stream-missing",
    "stream-no-table",
    "unknown-tag",
    "v1-dtd-bad",
    "v1-section-record",
    "v1-spans",
    "v1-stream-late",
    "v1-stream-used-up",
    "vfield-past-end",
    "width-negative",
    "x-items-over",
    "x-table-unknown-section",
    "x-v1-shared-records",
    "x-v1-width-0",
    "x-v1-width-elsewhere",
];

#[test]
fn bad() {
    for case in vectors("bad/trace") {
        let Ok(trace) = std::fs::read(case.join("trace.mtf")) else { continue };
        let (parts, _, error) = both(&trace, Tags::of(&case));
        if name(&case) == "v1-nrecords" {
            continue; // A record error is found first; the index, which has the right count, is checked last.
        }
        let by_records = ["md-", "x-count-", "x-ends-", "x-md-", "x-other-", "x-predicted-", "x-width-"]
            .iter()
            .any(|group| name(&case).starts_with(group))
            || BY_RECORDS.contains(&name(&case));
        assert_eq!(error.is_none(), by_records, "{}: {error:?}", name(&case));
        let Some(error) = error else { continue };
        let offsets = offsets(&case);
        assert!(offsets.contains(&error.place.offset), "{}: {error}, not at {offsets:?}", name(&case));
        if name(&case) == "v1-torn" {
            assert_eq!(parts.len(), 1);
        }
        if name(&case) == "v1-codec" {
            assert_eq!(error.kind, ErrorKind::Codec(9));
        }
        assert!(!error.to_string().is_empty());
    }
}

fn offsets(case: &Path) -> Vec<u64> {
    let note = std::fs::read_to_string(case.join("note.json")).unwrap();
    let list = note.split("\"offsets\":").nth(1).unwrap();
    let list = list.split('[').nth(1).unwrap().split(']').next().unwrap();
    list.split(',').filter_map(|n| n.trim().parse().ok()).collect()
}

/// Returns the section of each part that salvage returns and whether its group is damaged, and the number of records
/// known to be lost.
fn salvage(name: &str) -> (Vec<(u8, bool)>, Option<u64>) {
    let case = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/good").join(name);
    let trace = std::fs::read(case.join("trace.mtf")).unwrap();
    let read = |mut reader: Reader<'_>| {
        let mut parts = Vec::new();
        while let Some(part) = reader.next_part().unwrap() {
            parts.push((part.section, part.group_damaged));
        }
        (parts, reader.loss_report().unwrap().clone())
    };
    let (parts, report) = read(Reader::salvage_slice(&trace).unwrap());
    assert_eq!(read(Reader::salvage_read(Drips(&trace, 100)).unwrap()), (parts.clone(), report.clone()));
    assert!(!report.is_empty(), "{name}");
    println!("{name}\n{report}\n");
    (parts, report.records_lost())
}

#[test]
fn salvages() {
    let whole = |sections: &[u8]| sections.iter().map(|&s| (s, false)).collect::<Vec<_>>();
    assert_eq!(salvage("salvage-cut"), (whole(&[2, 1, 3, 1, 2, 1]), None));
    assert_eq!(salvage("salvage-damaged-chunk"), (whole(&[2, 1, 2, 1, 3]), Some(3)));
    assert_eq!(salvage("salvage-false-sync"), (whole(&[2, 1, 2, 1, 3]), Some(1)));
    assert_eq!(salvage("salvage-gap"), (whole(&[2, 1, 2, 1, 3]), Some(3)));
    let gap = vec![(2, false), (1, false), (3, false), (1, true), (3, false)];
    assert_eq!(salvage("salvage-gap-over-groups"), (gap, Some(5)));
    assert_eq!(salvage("salvage-index"), (whole(&[2, 1, 3, 1, 2, 1, 3]), None));
    let reset = vec![(2, false), (1, false), (3, false), (3, true), (3, true), (2, false), (1, false), (3, false)];
    assert_eq!(salvage("salvage-reset-in-group"), (reset, Some(2)));
    assert_eq!(salvage("salvage-shared-table-lost"), (whole(&[3, 1, 1, 3, 1]), Some(2)));
    let lost = vec![(1, true), (3, true), (1, true), (2, false), (1, false), (3, false)];
    assert_eq!(salvage("salvage-stream-lost").0, lost);
}
