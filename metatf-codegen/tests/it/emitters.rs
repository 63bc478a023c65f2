//! Tests the emitters generated from a small DTD, and records that cannot be emitted.
#![allow(clippy::unwrap_used, reason = "a test that goes wrong has to panic")]

use metatf_codegen::{Options, generate_c, generate_no_std, generate_source};

fn options() -> Options {
    let mut options = Options::new("small.dtd");
    options.emitters = Some("crate::events".to_owned());
    options
}

/// Returns a DTD with these lines in the block of its record `step`, whose fields are `time`, `n`, `length` and `text`.
fn dtd(lines: &str) -> String {
    format!(
        "time.width = 4; time.interpretation = delta 0; time.source = \"clock\";
         n.width = 4; n.interpretation = none; length.width = 1; length.interpretation = none;
         text.width = length.value; text.interpretation = none;
         section s 1 {{
             // A step.
             step: (time, n, length, text) {{ tag.value = 4; {lines} }}
             list: (n * time) {{ tag.value = 5; }}
         }}"
    )
}

fn error(lines: &str) -> String {
    generate_source(dtd(lines).as_bytes(), &options()).unwrap_err().to_string()
}

#[test]
fn emitters_stand_behind_reader_and_writer() {
    let text = dtd("tag.kind = \"Work\"; text.format = \"utf8\"; n.type = \"i16\";");
    let with = generate_source(text.as_bytes(), &options()).unwrap().source;
    let without = generate_source(text.as_bytes(), &Options::new("small.dtd")).unwrap().source;
    // The rest of the code is the same.
    let begin = with.find("    /// The location of each value in an event.").unwrap();
    assert!(without.starts_with(&with[..begin - 1]), "{without}");
    insta::assert_snapshot!(&with[begin..]);
}

#[test]
fn a_kind_that_is_left_out_compiles_to_nothing() {
    let mut options = options();
    options.without_kinds = vec!["work".to_owned()];
    let source = generate_source(dtd("tag.kind = \"Work\";").as_bytes(), &options).unwrap().source;
    assert!(!source.contains("TELEMETRY.emit"), "{source}");
    options.without_kinds = vec!["Wrok".to_owned()];
    let error = generate_source(dtd("tag.kind = \"Work\";").as_bytes(), &options).unwrap_err().to_string();
    assert!(error.contains("`Wrok`") && error.contains("expected one of Work"), "{error}");
}

#[test]
fn annotations_that_make_no_sense_name_their_field() {
    for (lines, parts) in [
        ("n.type = \"u7\";", ["`step.n`", "`u7`"]),
        ("n.type = \"string\";", ["`step.n`", "`string`"]),
        ("text.type = \"u8\";", ["`step.text`", "`u8`"]),
        ("n.type = \"f32\";", ["`step.n`", "`f32`"]),
        ("n.source = \"clok\";", ["`step.n`", "`clok`"]),
        ("n.source = \"count\";", ["`step.n`", "`count`"]),
        ("tag.source = \"drops\";", ["`step`", "`drops`"]),
        ("tag.source = \"dropped\";", ["`step.n`", "must have a `source`"]),
        ("tag.kind = \"all\";", ["`step`", "`all`"]),
        ("tag.rate = \"often\";", ["`step`", "`often`"]),
        ("tag.kind = \"two words\";", ["`step`", "`two words`"]),
    ] {
        let error = error(lines);
        assert!(parts.iter().all(|part| error.contains(part)), "{lines}: {error}");
    }
    let mut wrong = options();
    wrong.emitters = Some("no path".to_owned());
    let error = generate_source(dtd("").as_bytes(), &wrong).unwrap_err().to_string();
    assert!(error.contains("`no path` is not a Rust path"), "{error}");
}

/// Rare events use a separate slot, and the table marks them.
#[test]
fn rare_events_have_a_slot_of_their_own() {
    let other = dtd("tag.rate = \"rare\";") + "section t 2 { often: (n) { tag.value = 4; } }";
    let source = generate_source(other.as_bytes(), &options()).unwrap().source;
    for part in ["rare step\\nevent step", "|[_, __slot]|", "|[__slot, _]|"] {
        assert!(source.contains(part), "{part}: {source}");
    }
    let other = dtd("") + "section t 2 { often: (n) { tag.value = 4; tag.rate = \"rare\"; } }";
    let error = generate_source(other.as_bytes(), &options()).unwrap_err().to_string();
    assert!(error.contains("`often`") && error.contains("source `clock`"), "{error}");
}

/// A record has no emitter if two byte arrays share its length field.
#[test]
fn bytes_that_share_a_length_have_no_emitter() {
    for fields in ["length, text, text", "length, text, vfield"] {
        let text =
            dtd("").replace("list: (n * time) { tag.value = 5; }", &format!("pair: ({fields}) {{ tag.value = 5; }}"));
        let source = generate_source(text.as_bytes(), &options()).unwrap().source;
        let is_shared = fields.ends_with("text");
        assert_eq!(
            source.contains("no emitter: `pair` (`text` has a length that is constant or shared with another field)"),
            is_shared,
            "{source}"
        );
        assert_eq!(source.contains("The arguments of `pair`."), !is_shared, "{source}");
    }
    // A constant length cannot store the length of an argument.
    let text = dtd("length.value = 3;");
    let source = generate_source(text.as_bytes(), &options()).unwrap().source;
    assert!(!source.contains("The arguments of `step`."), "{source}");
}

/// A catch-all record has an emitter only in C, which takes the tag and drops events with the tag of another record.
#[test]
fn a_record_of_all_other_tags_has_an_emitter_in_c() {
    let with = |list: &str| dtd("").replace("list: (n * time) { tag.value = 5; }", list);
    let emitted = |text: &str| generate_source(text.as_bytes(), &options()).unwrap().source;
    for (tag, is_emitted) in [("5", true), ("other", false)] {
        let text = with(&format!("rest: (n) {{ tag.value = {tag}; }}"));
        assert_eq!(emitted(&text).contains("The arguments of `rest`."), is_emitted, "{tag}");
    }
    let header = header(&with("rest: (n) { tag.value = other; }"));
    assert!(header.contains("small_emit_rest(small_emitter *emitter, uint8_t tag, uint32_t n)"), "{header}");
    assert!(header.contains("if (!(tag != 1 && tag != 2 && tag != 3 && tag != 4)) {"), "{header}");
}

const STRINGS: &str = "id.width = 2; id.interpretation = none; id.role = \"string_id\"; text.role = \"string\";
    section t 2 { string: (id, length, text) { tag.value = 4; tag.source = \"intern\"; } }";

/// If a DTD defines a string record, emitters accept only interned strings in fields with the role `string_id`.
#[test]
fn strings_have_numbers_where_a_record_has_both() {
    let with = dtd("n.role = \"string_id\";") + STRINGS;
    let source = generate_source(with.as_bytes(), &options()).unwrap().source;
    assert!(source.contains("pub fn string(text: &str) -> ::metatf_telemetry::StringId"), "{source}");
    assert!(source.contains("pub fn step(n: ::metatf_telemetry::StringId, text: &[u8])"), "{source}");
    assert!(source.contains("intern string 2 4 0 1 id:u32@0.32 length:#2 text:text@0.0"), "{source}");
    let c = header(&with);
    assert!(c.contains("uint32_t small_intern(small_trace *trace, const char *text);"), "{c}");
    assert!(c.contains("small_emit_step(small_emitter *emitter, uint32_t n, const void *text"), "{c}");
    // The role alone does not affect emitters, because the program may emit the strings in its own records.
    let without = generate_source(dtd("n.role = \"string_id\";").as_bytes(), &options()).unwrap().source;
    assert!(without.contains("pub fn step(n: u32, text: &[u8])"), "{without}");
    for (strings, message) in [
        (STRINGS.replace(" id.role = \"string_id\";", ""), "the field `string.id` has no value"),
        (STRINGS.replace("(id, length, text)", "(length, text)"), "the role `string_id`"),
        (
            STRINGS
                .replace("{ string", "{ other: (id, length, text) { tag.value = 5; tag.source = \"intern\"; } string"),
            "is the second",
        ),
    ] {
        let error = generate_source((dtd("") + &strings).as_bytes(), &options()).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

fn header(text: &str) -> String {
    let dtd = metatf_parser::parse("small.dtd", text.as_bytes()).dtd.unwrap();
    generate_c(&dtd, &allow_missing()).unwrap()
}

/// Returns options that omit the records without an emitter.
fn allow_missing() -> Options {
    Options { allow_missing: true, ..Options::new("small.dtd") }
}

/// Emitters compile without the standard library and without warnings, whatever their field types, with and without a
/// record of dropped events, and with names that Rust code uses.
#[test]
fn emitters_without_the_standard_library_compile() {
    let folder = tempfile::tempdir().unwrap();
    let types = "a.width = 1; a.interpretation = none; b.width = 8; b.interpretation = none; b.format = \"signed\"; b.type = \"i8\";
        yes.width = 1; yes.interpretation = none; yes.format = \"bool\"; id.width = 16; id.interpretation = none;
        half.width = 8; half.interpretation = none; half.format = \"f64\"; half.type = \"f32\";
        always.width = 1; always.interpretation = none; always.value = 7;
        who.width = 4; who.interpretation = none; who.source = \"thread\"; count.width = 4; count.interpretation = none;
        section s 1 {
            types: (a, b, yes, id, half, always, who, vfield) { tag.value = 4; vfield.length.width = 1; }
            move: (type, self, commit) {
                tag.value = 5;
                type.width = 1; type.interpretation = none; self.width = 1; self.interpretation = none;
                commit.width = 8; commit.interpretation = none;
            }
            put: (who) { tag.value = 6; }
            lost: (who, count) { tag.value = 7; tag.source = \"dropped\"; count.source = \"count\"; }
        }";
    let plain = "n.width = 4; n.interpretation = none; section s 1 { plain: (n) { tag.value = 4; } }";
    for text in [types, &dtd("tag.kind = \"Work\"; n.type = \"i16\";"), plain] {
        let (source, _) = generate_no_std(text.as_bytes(), &allow_missing()).unwrap();
        let path = folder.path().join("lib.rs");
        let head = "#![no_std]\n#![forbid(unsafe_code)]\n#![deny(warnings)]\npub mod events {\n";
        std::fs::write(&path, format!("{head}{source}}}\n")).unwrap();
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
        let mut command = std::process::Command::new(rustc);
        command.args(["--edition", "2024", "--crate-type", "lib", "--emit", "metadata", "-o"]);
        let output = command.arg(folder.path().join("lib.rmeta")).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}\n{source}", String::from_utf8_lossy(&output.stderr));
    }
    let error = generate_no_std(dtd("").as_bytes(), &Options::new("small.dtd")).unwrap_err().to_string();
    assert!(error.contains("`list` (it has repeated fields)"), "{error}");
    let mut without = allow_missing();
    without.without_kinds = vec!["Work".to_owned()];
    let (source, _) = generate_no_std(dtd("tag.kind = \"Work\";").as_bytes(), &without).unwrap();
    assert!(!source.contains("commit();"), "{source}");
    let error = generate_no_std(b"n.width = 5;", &without).unwrap_err().to_string();
    assert!(!error.is_empty());
}

#[test]
fn the_header_for_c() {
    insta::assert_snapshot!(header(&dtd("tag.kind = \"Work\"; text.format = \"utf8\"; n.type = \"i16\";")));
}

/// Comments, names and strings with a different meaning in C do not break the header.
#[test]
fn a_dtd_that_is_hostile_to_c() {
    let text = r#"
        int.width = 1; int.interpretation = none;
        EOF.width = 1; EOF.interpretation = none;
        section s 1 {
            // A step */ #error \
            // ??/ /* "@CRC@ pfx_"
            step: (int, EOF) { tag.value = 4; }
        }"#;
    let header = header(text);
    assert!(header.contains("/* A step * / #error \n"), "{header}");
    assert!(header.contains("uint8_t int_, uint8_t eof)"), "{header}");
    assert!(header.contains("@CRC@ pfx_") && !header.contains("??"), "{header}");
}
