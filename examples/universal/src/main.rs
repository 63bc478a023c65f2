//! Reads any trace. The DTD is the one embedded in the trace, so it is known only at run time.
//!
//!     cargo run -p example-universal                  writes a small trace and reads it
//!     cargo run -p example-universal -- TRACE         describes a trace and prints its first records

// region: uses
use metatf::container::WriteOptions;
use metatf::dynamic::{JsonOptions, OwnedRecord, Schema, Trace, Writer};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
// endregion

const DTD: &str = "
    section doors 1 {
        opened: (door, by) {
            tag.value = 4;
            door.width = 1; door.interpretation = none;
            by.width = 4;   by.interpretation = none;
        }
        closed: (door) {
            tag.value = 5;
            door.width = 1; door.interpretation = none;
        }
    }
";

const RECORDS: &str = r#"
{"@section":"doors","@record":"opened","door":1,"by":7001}
{"@section":"doors","@record":"opened","door":2,"by":7002}
{"@section":"doors","@record":"closed","door":1}
"#;

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(path) = std::env::args().nth(1) {
        for (record, count) in count(&path)? {
            println!("{count:>10} {record}");
        }
        print!("{}", first(&path, 10)?);
        return Ok(());
    }

    let folder = std::env::temp_dir().join(format!("example-universal-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("doors.mtf");
    let path = path.to_str().ok_or("the directory's name is not UTF-8")?;
    write(path)?;
    let counts = count(path)?;
    assert_eq!(counts, BTreeMap::from([("closed".to_owned(), 1), ("opened".to_owned(), 2)]));
    let lines = first(path, 2)?;
    assert!(RECORDS.contains(&lines), "{lines}");
    print!("{lines}");
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

/// Writes a trace from JSON lines.
fn write(path: &str) -> Result<(), Box<dyn Error>> {
    let schema = Schema::parse("doors.dtd", DTD.as_bytes())?;
    let options = WriteOptions { dtd_url: "doors.dtd".to_owned(), ..WriteOptions::default() };
    let mut writer = Writer::new(File::create(path)?, &schema, &options)?;
    let mut owned = OwnedRecord::default();
    for line in RECORDS.lines().filter(|line| !line.is_empty()) {
        let line = schema.read_json(line.as_bytes(), &mut owned)?;
        writer.write(&line, &owned)?;
    }
    writer.finish()?;
    Ok(())
}

// region: count
/// Counts the records of each name in a trace.
fn count(path: &str) -> Result<BTreeMap<String, u64>, Box<dyn Error>> {
    let mut trace = Trace::open(path)?;
    let schema = trace.schema().clone();
    let mut counts = BTreeMap::new();
    trace.for_each(|record| {
        let name = schema.record(record.record()).map_or("?", |record| &record.name);
        *counts.entry(name.to_owned()).or_default() += 1;
    })?;
    Ok(counts)
}
// endregion

/// Returns the first entries of a trace as JSON lines.
fn first(path: &str, entries: usize) -> Result<String, Box<dyn Error>> {
    let mut trace = Trace::open(path)?;
    let mut lines = Vec::new();
    for _ in 0..entries {
        if !trace.next_json(&mut lines, JsonOptions::default())? {
            break;
        }
    }
    Ok(String::from_utf8(lines)?)
}
