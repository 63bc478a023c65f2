//! A conversion kept a count or a length but not the field that it is computed from, and a count that is an expression
//! was 0 if only the target has it.
#![allow(clippy::unwrap_used, reason = "a test")]

use metatf::container::WriteOptions;
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Writer};
use metatf::{Error, ErrorKind};
use metatf_tests::runtime;
use metatf_tools::convert::{ConvertError, ConvertOptions, Converter};

fn schema(fields: &str, names: &[&str]) -> Schema {
    let widths: String = names.iter().map(|name| format!("{name}.width = 1; {name}.interpretation = none;")).collect();
    runtime::schema(&format!("section s 1 {{ r: (tag, {fields}) {{ tag.value = 4; {widths} }} }}"))
}

/// Returns the conversion of a record with these fields.
fn converted(source: &Schema, line: &str, target: &Schema, drop: &[&str]) -> Result<String, ConvertError> {
    let mut owned = OwnedRecord::default();
    let mut writer = Writer::new(Vec::new(), source, &WriteOptions::default()).unwrap();
    let line = format!(r#"{{"@section":"s","@record":"r",{line}}}"#);
    let line = source.read_json(line.as_bytes(), &mut owned).unwrap();
    writer.write(&line, &owned).unwrap();
    let trace = writer.finish().unwrap();
    let options = ConvertOptions { drop: drop.iter().map(|&name| name.into()).collect(), ..ConvertOptions::default() };
    let mut converter = Converter::new(source, target, &options).unwrap();
    let mut writer = Writer::new(Vec::new(), target, &WriteOptions::default()).unwrap();
    let copied = converter.copy(&mut runtime::open(source, &trace).unwrap(), &mut writer, true, &mut || {});
    if let Err(error) = copied {
        writer.abandon();
        return Err(error);
    }
    let json = runtime::json(target, &writer.finish().unwrap(), JsonOptions::default()).unwrap();
    Ok(json.trim_end().trim_start_matches(r#"{"@section":"s","@record":"r","#).trim_end_matches('}').into())
}

#[test]
fn what_is_counted_by_it_stays() {
    let own = schema("k, (k.bit 0)*a, (1 - k.bit 1)*b", &["k", "a", "b"]);
    for line in [r#""k":1,"a":7,"b":8"#, r#""k":3,"a":7"#, r#""k":0,"b":8"#] {
        assert_eq!(converted(&own, line, &own, &["k"]).unwrap(), line);
    }
    // The name in the target does not matter.
    let renamed = schema("j, (j.bit 0)*a, (1 - j.bit 1)*b", &["j", "a", "b"]);
    assert_eq!(converted(&own, r#""k":3,"a":7"#, &renamed, &[]).unwrap(), r#""j":3,"a":7"#);
}

#[test]
fn where_it_has_its_own_place_it_stays_there() {
    let source = schema("k, (k.bit 0)*a", &["k", "a"]);
    let target = schema("k, j, (j.bit 1)*a", &["k", "j", "a"]);
    assert_eq!(converted(&source, r#""k":2"#, &target, &[]).unwrap(), r#""k":2,"j":0"#);
    let target = schema("k, j, (j.bit 0)*a", &["k", "j", "a"]);
    assert_eq!(converted(&source, r#""k":2"#, &target, &[]).unwrap(), r#""k":2,"j":0"#);
    let error = converted(&source, r#""k":1,"a":7"#, &target, &[]).unwrap_err();
    let ConvertError::Write(error) = error else { panic!("{error:?}") };
    assert_eq!(error.kind, ErrorKind::NotCount { found: 1, expected: 0 });
}

#[test]
fn where_all_items_are_new_too() {
    let own = schema("k, (k.bit 0)*a", &["k", "a"]);
    assert_eq!(converted(&own, r#""k":1,"a":7"#, &own, &["k", "a"]).unwrap(), r#""k":1,"a":0"#);
}

#[test]
fn bytes_that_are_measured_by_it_stay() {
    let own = runtime::schema(
        "section s 1 { r: (tag, k, b) { tag.value = 4; k.width = 1; k.interpretation = none;
            b.width = k.value * 2; b.interpretation = none; } }",
    );
    assert_eq!(converted(&own, r#""k":1,"b":"0708""#, &own, &["k"]).unwrap(), r#""k":1,"b":"0708""#);
}

#[test]
fn a_count_of_the_target_alone() {
    let source = schema("k", &["k"]);
    let target = schema("k, (k.bit 0)*a", &["k", "a"]);
    assert_eq!(converted(&source, r#""k":1"#, &target, &[]).unwrap(), r#""k":1,"a":0"#);
    assert_eq!(converted(&source, r#""k":2"#, &target, &[]).unwrap(), r#""k":2"#);
}

#[test]
fn a_count_of_the_target_alone_that_is_long() {
    let source = schema("k", &["k"]);
    let target = schema("k, (k.value * 1000000000000)*a", &["k", "a"]);
    assert_eq!(converted(&source, r#""k":0"#, &target, &[]).unwrap(), r#""k":0,"a":[]"#);
    let error = converted(&source, r#""k":1"#, &target, &[]).unwrap_err();
    assert!(
        matches!(error, ConvertError::Read(Error { kind: ErrorKind::TooManyItems(1_000_000_000_000), .. })),
        "{error:?}"
    );
}
