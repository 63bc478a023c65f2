//! Compares descriptions for Kaitai Struct with snapshots, and tests the errors of DTDs that cannot be described.
//! `dev/scripts/check-ksy` compiles the descriptions and compares the values of sample files.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

use std::path::Path;

use metatf_codegen::{Options, generate_ksy};

fn describe(source: &str, text: &str) -> Result<String, String> {
    let parsed = metatf_parser::parse(source, text.as_bytes());
    let dtd = parsed.dtd.ok_or_else(|| format!("{:?}", parsed.diagnostics))?;
    generate_ksy(&dtd, &Options::new(source)).map_err(|error| error.to_string())
}

fn describe_file(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let name = path.file_name().unwrap().to_str().unwrap();
    describe(name, &std::fs::read_to_string(&path).unwrap()).unwrap()
}

#[test]
fn a_built_in_dtd() {
    insta::assert_snapshot!(describe_file("../dtds/xray.dtd"));
}

#[test]
fn everything_that_can_be_described() {
    insta::assert_snapshot!(describe_file("tests/ksy/shapes.dtd"));
}

#[test]
fn all_built_in_dtds_of_raw_files() {
    for name in ["hprof", "mps", "pcap", "pcapng", "perf", "xray"] {
        let description = describe_file(&format!("../dtds/{name}.dtd"));
        assert!(description.contains(&format!("meta:\n  id: {name}\n")), "{description}");
    }
}

/// The names of the DTD may be words of a target language, differ only in case, or consist of other characters.
#[test]
fn identifiers_are_legal_and_unique() {
    let text = "section start 1 {
        import: (magic, class, Class, __, no, (magic.value > 1)*(x)) {
            magic.width = 4; magic.interpretation = none; magic.role = \"magic\";
            magic.values = \"1 µ, 2 2b, 3 no, 4 No\";
            class.width = 1; class.interpretation = none; Class.width = 1; Class.interpretation = none;
            __.width = 1; __.interpretation = none; no.width = 1; no.interpretation = none;
            x.width = 1; x.interpretation = none;
        }
    }
    section content 2 { string: (_root) { _root.width = 1; _root.interpretation = none; } }";
    insta::assert_snapshot!(describe("2.dtd", text).unwrap());
}

/// The error lists all fields that depend on more than their bytes.
#[test]
fn fields_with_state_are_errors() {
    let text = "section log 1 {
        first: (magic, time) {
            tag.value = 4;
            magic.width = 4; magic.interpretation = none; magic.value = 0x01020304; magic.role = \"magic\";
            time.width = 2; time.interpretation = delta 0;
        }
        next: (a, a*inner) {
            tag.value = 5; a.interpretation = stride 0 1;
            inner.b.width = 1; inner.b.interpretation = baseOffset first.time.value;
            inner.c.width = 1; inner.c.interpretation = predicted 1 lastValue 4 2;
        }
        inner: (b, c);
    }
    section rest 2 { item: (v) { v.width = 8; v.interpretation = none; v.role = \"trailer\"; } }";
    insta::assert_snapshot!(describe("log.dtd", text).unwrap_err());
}

#[test]
fn files_without_a_magic_number_are_errors() {
    let text = "section log 1 { r: (a) { a.width = 4; a.interpretation = none; } }";
    assert!(describe("log.dtd", text).unwrap_err().contains("the role `magic`"));
    let text = "section log 1 {
        r: (n, data, magic) {
            n.width = 4; n.interpretation = none; data.width = n.value; data.interpretation = none;
            magic.width = 4; magic.interpretation = none; magic.value = 1; magic.role = \"magic\";
        }
    }
    section records 2 { e: (v) { v.width = 4; v.interpretation = none; } }";
    assert!(describe("log.dtd", text).unwrap_err().starts_with("`r.magic`: no field of variable size may precede"));
}
