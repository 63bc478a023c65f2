//! Golden files of 1.0: today's readers must read the original values from them, and today's writers must not write
//! longer files. `METATF_BLESS` does not apply here.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use hatf_trace::forms::{CreateOptions, Form, convert_bytes};
use metatf_test::Folder;
use metatf_tests::golden::{self, Sum, Sums, folder, is_raw, names, open, schema, sum};
use metatf_tests::{generated, oracle, runtime};
use std::collections::BTreeSet;

/// Advice for a changed file or changed values.
const CHANGED: &str = "\
Golden files stand for the traces that people keep: what changes here, changes there. Nothing blesses it.
- If it was not meant to change, mend the reader or the writer.
- A model that gives other values is another revision (specification, 4.2), a container that holds other bytes a feature or a version
  (5.2), another meaning of the language another word: docs/versions.md says which number, and the old one stays readable.
- Files of the new number go into a folder of their own, beside this one. The files of 1.0 are released, and nothing makes them again.";

fn sums() -> Sums {
    Sums::read(&folder()).expect("tests/golden/1.0/SUMS")
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).unwrap_or_else(|e| panic!("tests/golden/1.0/{name}: {e}"))
}

#[test]
fn files_and_their_values_are_what_they_were() {
    let pinned = sums();
    let listed: Vec<String> = pinned.files.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!(names(&folder()), listed, "files of tests/golden/1.0, and lines of SUMS\n{CHANGED}");
    let mut changed = String::new();
    for (name, pinned) in &pinned.files {
        let bytes = read(name);
        let now = if Sum::of(&bytes) == pinned[0] { sum(&folder(), name, &bytes) } else { [Sum::of(&bytes); 3] };
        for (what, pinned, now) in
            [("the file", pinned[0], now[0]), ("its records", pinned[1], now[1]), ("all of it", pinned[2], now[2])]
        {
            if pinned != now {
                changed += &format!("tests/golden/1.0/{name}: {what} was {pinned}, is {now}\n");
                break;
            }
        }
    }
    assert!(changed.is_empty(), "{changed}{CHANGED}");
}

/// The records of all files `every.*` equal those of one list, which is stored in full.
#[test]
fn values_are_those_of_the_list() {
    let list = Sum::of_lines(&String::from_utf8(read("every-values.jsonl")).unwrap());
    for (name, [_, records, _]) in sums().files.iter().filter(|(name, _)| name.starts_with("every.")) {
        assert_eq!(*records, list, "{name}\n{CHANGED}");
    }
}

#[test]
fn the_oracle_reads_the_same() {
    for name in names(&folder()).iter().filter(|name| !is_raw(name)) {
        let bytes = read(name);
        let schema = schema(&folder(), name, &bytes);
        let (seen, end) = runtime::read(&schema, &bytes);
        assert_eq!(end, Ok(()), "{name}");
        let (by_oracle, end) = oracle::read(&schema.dtd, &bytes);
        assert_eq!(end, Ok(()), "{name}");
        assert!(seen == by_oracle, "{name}: the oracle reads it in another way");
    }
}

/// Returns records and elements without their offsets, sorted, because elements follow the records of their group.
fn content(name: &str) -> Vec<String> {
    let bytes = read(name);
    let lines = golden::lines(&schema(&folder(), name, &bytes), name, &bytes, true).unwrap();
    let of_encoding = ["\"@record\":\"metadata\"", "{\"@group\"", "{\"@reset\""];
    let lines = lines.lines().filter(|line| !of_encoding.iter().any(|part| line.contains(part)));
    let without_place = |line: &str| {
        let (before, after) = line.split_once("\"@offset\":").unwrap();
        format!("{before}{}", after.split_once(',').unwrap().1)
    };
    let mut content: Vec<String> = lines.map(without_place).collect();
    content.sort();
    content
}

/// A file without a header has the same content as the trace converted from it.
#[test]
fn files_without_a_header_and_their_traces_agree() {
    let mut found = 0;
    let names = names(&folder());
    for raw in names.iter().filter(|name| is_raw(name)) {
        let begin = format!("{}-", &raw[..raw.rfind('.').unwrap()]);
        for name in names.iter().filter(|name| name.starts_with(&begin)) {
            let (of_file, of_trace) = (content(raw), content(name));
            assert!(!of_file.is_empty() && of_file == of_trace, "{raw} and {name}");
            found += 1;
        }
    }
    assert!(found >= 5, "only {found} traces of files without a header");
}

#[test]
fn generated_readers_read_the_same() {
    for (dtd, stem) in [("golden/1.0/every.dtd", "every."), ("../dtds/HATF10-split.dtd", "HATF10-split.")] {
        let number = generated::number_of(dtd).expect("code is generated from it");
        let files = names(&folder());
        let files: Vec<_> = files.iter().filter(|name| name.starts_with(stem)).collect();
        assert!(!files.is_empty(), "{stem}");
        for name in files {
            let bytes = read(name);
            let pinned = sums().files.iter().find(|(file, _)| file == name).unwrap().1[1];
            let written = generated::rewritten(
                number,
                metatf::typed::TraceOptions::new(),
                metatf::container::Reader::from_slice(&bytes).unwrap(),
            );
            let written = written.unwrap_or_else(|e| panic!("{name}: {e}"));
            let records = golden::lines(&generated::schema(number), "written.mtf", &written, false).unwrap();
            assert_eq!(Sum::of_lines(&records), pinned, "{name}\n{CHANGED}");
        }
    }
}

/// Traces of one heap written with different presets contain the same events, by the generated readers.
#[test]
fn heap_traces_have_the_same_events() {
    let jsonl = Form::of("jsonl").expect("a form of heap traces");
    for stem in ["heap.", "HATF10."] {
        let mut events = BTreeSet::new();
        let files = names(&folder());
        for name in files.iter().filter(|name| name.starts_with(stem)) {
            let (lines, _) = convert_bytes(&read(name), None, jsonl, &CreateOptions::default())
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            let program = name[stem.len()..].split('-').next().unwrap().to_owned();
            events.insert((program, Sum::of(&lines).to_string()));
        }
        let programs: BTreeSet<_> = events.iter().map(|(program, _)| program).collect();
        assert!(!programs.is_empty() && programs.len() == events.len(), "{events:?}");
    }
}

#[test]
fn every_shipped_dtd_has_a_trace() {
    let names = names(&folder());
    for dtd in std::fs::read_dir(metatf_test::root().join("dtds")).unwrap() {
        let dtd = dtd.unwrap().file_name().to_string_lossy().into_owned();
        let Some(stem) = dtd.strip_suffix(".dtd") else { continue };
        let has = |name: &String| name.starts_with(&format!("{stem}.")) && name.ends_with(".mtf");
        assert!(names.iter().any(has), "tests/golden/1.0 has no {stem}.*.mtf");
    }
}

#[test]
fn every_option_has_a_trace() {
    let names = names(&folder());
    for (name, _) in golden::options() {
        assert!(names.contains(&name), "tests/golden/1.0 has no {name}");
    }
}

/// The files contain every codec, filter, combination of flags and kind of chunk in the specification (5.2), and both
/// versions, classes and byte orders.
#[test]
fn every_code_of_the_container_occurs() {
    let mut codes: [BTreeSet<u8>; 4] = Default::default();
    let mut headers = BTreeSet::new();
    for name in names(&folder()).iter().filter(|name| !is_raw(name)) {
        let bytes = read(name);
        headers.insert((bytes[7], bytes[4], bytes[5]));
        let container = metatf::container::Reader::from_slice(&bytes).unwrap();
        let mut rest = &bytes[usize::try_from(container.header().start).unwrap()..];
        while rest.starts_with(b"MTFC") {
            // Kind, codec, filter, flags.
            codes.iter_mut().zip(&rest[5..9]).for_each(|(codes, code)| {
                codes.insert(*code);
            });
            let stored = u32::from_le_bytes(rest[12..16].try_into().unwrap());
            rest = &rest[48 + usize::try_from(stored).unwrap()..];
        }
    }
    let [kinds, codecs, filters, flags] = codes;
    assert!(kinds.into_iter().eq(0..4));
    assert!(codecs.into_iter().eq(0..4));
    assert!(filters.into_iter().eq(0..5));
    assert_eq!(flags.into_iter().collect::<Vec<_>>(), [0, 1, 3, 5]);
    assert_eq!(headers.len(), 8, "{headers:?}");
}

/// Today's writers write the same records with the same options to no more bytes.
#[test]
fn writers_write_them_no_longer() {
    let mut longer = String::new();
    for name in names(&folder()) {
        let bytes = read(&name);
        match golden::rewritten(&folder(), &name, &bytes) {
            // The DTD determines every byte of a file without a header.
            Ok(written) if is_raw(&name) && written != bytes => longer += &format!("{name}: other bytes\n"),
            Ok(written) if written.len() > bytes.len() => {
                longer += &format!("{name}: {} bytes, was {}\n", written.len(), bytes.len());
            }
            Ok(written) => {
                let schema = schema(&folder(), &name, &written);
                assert!(open(&schema, &name, &written).is_ok(), "{name}");
                let [_, records, _] = sum(&folder(), &name, &written);
                let [_, pinned, _] = sums().files.iter().find(|(file, _)| *file == name).unwrap().1;
                assert_eq!(records, pinned, "{name}: written again");
            }
            Err(error) => longer += &format!("{name}: {error}\n"),
        }
    }
    assert!(longer.is_empty(), "today's writers write golden files longer, or not at all:\n{longer}");
}

/// Released files are never regenerated.
#[test]
fn released_files_stay() {
    let folder = Folder::new();
    let dtd = std::fs::read(golden::folder().join("every.dtd")).unwrap();
    folder.write("every.dtd", dtd);
    let mut sums = golden::make(folder.as_ref()).expect("nothing is released");
    assert!(sums.files.len() > 30);
    sums.released = true;
    folder.write(Sums::NAME, sums.text());
    let before = folder.read("every.stored-none-32-little.mtf");
    folder.write("every.stored-none-32-little.mtf", b"spoilt");
    let refused = golden::make(folder.as_ref()).unwrap_err();
    assert!(refused.contains("is released"), "{refused}");
    assert_eq!(folder.read("every.stored-none-32-little.mtf"), b"spoilt");
    assert!(!before.is_empty());
}
