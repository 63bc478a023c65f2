//! Recoding with several threads stops at every error, whichever thread encounters it, and reports that error.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use metatf::container::{Codec, Forward, WriteOptions};
use metatf::dynamic::{OwnedRecord, Schema, Trace, Writer};
use metatf_tools::recode::{Failure, Preset, recode};
use std::io::{self, Write};
use std::sync::mpsc::channel;
use std::time::Duration;

const DTD: &[u8] = b"section s 1 {
    r: (tag, x, y) { tag.value = 4; x.width = 2; x.interpretation = delta 0; y.width = 4; y.interpretation = none; }
}";
const RECORDS: usize = 1500;

fn options(threads: usize) -> WriteOptions {
    WriteOptions { codec: Codec::Stored, chunk_size: 500, group_size: 2000, threads, ..WriteOptions::default() }
}

/// Returns a trace of many chunks and groups.
fn trace() -> Vec<u8> {
    let schema = Schema::parse("s.dtd", DTD).unwrap();
    let mut writer = Writer::new(Vec::new(), &schema, &options(1)).unwrap();
    let mut owned = OwnedRecord::default();
    for n in 0..RECORDS {
        let json = format!(r#"{{"@section":"s","@record":"r","x":{},"y":{}}}"#, n * n % 977, n * 7);
        let line = schema.read_json(json.as_bytes(), &mut owned).unwrap();
        writer.write(&line, &owned).unwrap();
    }
    writer.finish().unwrap()
}

/// A sink that accepts this many bytes and then fails.
struct Short(usize);

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Recodes in a separate thread with a timeout, and returns the result.
fn outcome(bytes: &[u8], threads: usize, space: usize) -> Result<(), Failure> {
    let (bytes, (done, ended)) = (bytes.to_vec(), channel());
    std::thread::spawn(move || {
        let mut trace = Trace::from_slice(&bytes).unwrap();
        let write = WriteOptions { codec: Codec::default(), ..options(threads) };
        let plan = metatf_tools::recode::Options { block: 256, ..Preset::Default.options() };
        let recoded = recode(&mut trace, Forward(Short(space)), &write, plan, || {});
        done.send(recoded.map(|_| ())).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(600)).expect("recoding does not end")
}

#[test]
fn every_error_ends_it() {
    let good = trace();
    assert!(outcome(&good, 3, usize::MAX).is_ok());
    for n in 0..40 {
        let threads = 2 + n % 3;
        let mut bad = good.clone();
        bad[good.len() * (n + 1) / 44] ^= 0x55;
        let read = outcome(&bad, threads, usize::MAX);
        assert!(matches!(read, Err(Failure::Read(_))), "{n}: {read:?}");
        assert_eq!(read, outcome(&bad, 1, usize::MAX), "{n}");
        let written = outcome(&good, threads, n * 80);
        assert!(matches!(written, Err(Failure::Write(_))), "{n}: {written:?}");
        let both = outcome(&bad, threads, n * 80);
        assert!(both.is_err(), "{n}");
    }
}
