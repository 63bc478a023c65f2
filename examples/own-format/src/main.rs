//! A custom format with a string table and a separately stored column.

// region: uses
mod requests {
    include!(concat!(env!("OUT_DIR"), "/requests.rs"));
}

use metatf::container::{AppendFile, Class, Codec, Filter, Order, WriteOptions};
use metatf::format::Interpretation;
use metatf::typed::{Event, TraceOptions};
use metatf::{Change, ErrorKind};
use requests::{Log, Message, Record, Request, Trace, Writer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Cursor};
use std::time::Duration;
// endregion

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> Result<()> {
    let bytes = write()?;
    read(&bytes)?;
    read_events(&bytes)?;
    write_rarely()?;
    append()?;
    salvage(&bytes)?;
    strict()?;
    println!("four records in {} bytes, written and read", bytes.len());
    Ok(())
}

fn write() -> Result<Vec<u8>> {
    // region: options
    let options = WriteOptions {
        class: Class::Bits32,
        order: Order::Big,
        codec: Codec::Lz4,
        // The column of durations, section 3, is worth more compression effort.
        section_options: BTreeMap::from([(3, (Codec::Zstd(19), Filter::Auto))]),
        ..WriteOptions::default()
    };
    let mut trace = Writer::with_options(Cursor::new(Vec::new()), &options)?;
    // endregion
    // region: aside
    trace.user_metadata(r#"{"host":"example"}"#)?;
    trace.comment(1, "section 1 begins")?;
    // endregion
    trace.message(&Message { time: 100, level: 1, vfield: b"ready".as_slice() })?;
    // region: write
    for (n, path) in ["/index.html", "/style.css", "/index.html"].into_iter().enumerate() {
        let n = n as u64;
        // A repeated path is a single table entry with a single offset.
        let path = trace.paths().intern(path.as_bytes())?;
        // The writer stores `took` in the section `durations`.
        trace.request(&Request { time: 2000 + 10 * n, path, status: 200, took: 180 - n })?;
    }
    // endregion
    // region: set
    // From here on, the status is normally 200, which takes no bytes.
    trace.set("log", "request", "status", Change::Interpretation(Interpretation::Default(200)))?;
    // endregion
    Ok(trace.finish()?.into_inner())
}

/// Writes a trace from a program that logs rarely but must not lose any records.
fn write_rarely() -> Result<()> {
    let path = std::env::temp_dir().join(format!("own-format-{}.mtf", std::process::id()));
    // region: flush
    let options = WriteOptions::default().flush_every(Duration::from_secs(1));
    let mut trace = Writer::with_options(BufWriter::new(File::create(&path)?), &options)?;
    trace.message(&Message { time: 100, level: 1, vfield: b"ready".as_slice() })?;
    // The program may now be idle for a while.
    trace.flush()?;
    // endregion
    assert_eq!(Trace::open(&path)?.records().filter(|record| record.is_ok()).count(), 1);
    trace.finish()?;
    std::fs::remove_file(path)?;
    Ok(())
}

/// Writes a trace in several runs of a program.
fn append() -> Result<()> {
    let path = std::env::temp_dir().join(format!("own-format-runs-{}.mtf", std::process::id()));
    // region: append
    for time in [100, 200] {
        let mut trace = Writer::new(AppendFile::open(&path)?)?;
        trace.message(&Message { time, level: 1, vfield: b"started".as_slice() })?;
        trace.finish()?;
    }
    assert_eq!(Trace::open(&path)?.records().count(), 2);
    // endregion
    std::fs::remove_file(path)?;
    Ok(())
}

fn read(bytes: &[u8]) -> Result<()> {
    let mut trace = Trace::from_slice(bytes)?;
    let mut requests = Vec::new();
    let mut names = Vec::new();
    // region: get
    let paths = trace.paths();
    while let Some(record) = trace.next()? {
        match record {
            Record::Log(Log::Message(message)) => assert_eq!(message.vfield, b"ready"),
            Record::Log(Log::Request(request)) => {
                names.push(paths.get(request.path)?.vfield);
                requests.push(request);
            }
        }
    }
    // endregion
    assert_eq!(names, [b"/index.html".as_slice(), b"/style.css", b"/index.html"]);
    let found: Vec<_> = requests.iter().map(|r| (r.time, r.status, r.took)).collect();
    assert_eq!(found, [(2000, 200, 180), (2010, 200, 179), (2020, 200, 178)]);
    assert_eq!(requests[0].path, requests[2].path);
    Ok(())
}

fn read_events(bytes: &[u8]) -> Result<()> {
    let mut trace = Trace::from_slice(bytes)?;
    let mut comments = 0;
    // region: events
    while let Some(event) = trace.next_event()? {
        match event {
            Event::Record(Record::Log(_)) => {}
            Event::Comment(section, text) => {
                comments += 1;
                assert_eq!((section, text), (1, b"section 1 begins".as_slice()));
            }
            // Applied metadata records, the start of groups, and so on.
            _ => {}
        }
    }
    assert_eq!(trace.user_metadata(), [br#"{"host":"example"}"#]);
    // endregion
    assert_eq!(comments, 1);
    Ok(())
}

fn salvage(bytes: &[u8]) -> Result<()> {
    // region: salvage
    // The trace can be read even without its last bytes, the index and the footer.
    let torn = &bytes[..bytes.len() - 20];
    let mut trace = Trace::from_opened(TraceOptions::new().salvage(true).from_slice(torn)?);
    assert_eq!(trace.records().count(), 4);
    assert!(trace.loss_report().is_some());
    // endregion
    Ok(())
}

fn strict() -> Result<()> {
    // region: strict
    let mut trace = Writer::new(Cursor::new(Vec::new()))?;
    trace.inner().set_strict(true);
    let error = trace.request(&Request { status: 70_000, ..Request::default() }).unwrap_err();
    assert_eq!(error.kind, ErrorKind::DoesNotFit { value: 70_000, width: 2 });
    trace.finish()?;
    // endregion
    Ok(())
}
