//! A format of one's own, with a table of strings and a column that is stored apart.

mod requests {
    include!(concat!(env!("OUT_DIR"), "/requests.rs"));
}

use requests::{Log, Message, PathEntry, Record, Request, Trace, Writer};
use std::io::Cursor;

fn main() -> metatf::Result<()> {
    let bytes = write()?;
    read(&bytes)?;
    println!("{} bytes", bytes.len());
    Ok(())
}

fn write() -> metatf::Result<Vec<u8>> {
    let mut trace = Writer::new(Cursor::new(Vec::new()))?;
    trace.message(&Message { time: 100, level: 1, vfield: b"ready".as_slice() })?;
    // region: write
    for (n, path) in ["/index.html", "/style.css", "/index.html"].into_iter().enumerate() {
        let n = n as u64;
        // The same path twice is one entry of the table, and one offset.
        let path = trace.paths().intern(PathEntry { vfield: path.as_bytes() })?;
        // `took` goes to the section `durations`: the writer sees to it.
        trace.request(&Request { time: 2000 + 10 * n, path, status: 200, took: 180 - n })?;
    }
    // endregion
    Ok(trace.finish()?.into_inner())
}

fn read(bytes: &[u8]) -> metatf::Result<()> {
    let mut trace = Trace::from_slice(bytes)?;
    let mut requests = Vec::new();
    while let Some(record) = trace.next()? {
        match record {
            Record::Log(Log::Message(message)) => assert_eq!(message.vfield, b"ready"),
            Record::Log(Log::Request(request)) => requests.push(request),
        }
    }
    let found: Vec<_> = requests.iter().map(|r| (r.time, r.status, r.took)).collect();
    assert_eq!(found, [(2000, 200, 180), (2010, 200, 179), (2020, 200, 178)]);
    assert_eq!(requests[0].path, requests[2].path);
    Ok(())
}
