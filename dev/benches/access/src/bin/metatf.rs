//! Meta-TF: the reader and the writer that are generated from `access.dtd`, with the default options, or with the filter `columns` if the file
//! has the extension `columns`.

mod access {
    include!(concat!(env!("OUT_DIR"), "/access.rs"));
}

use access::{Access, Columns, Flags, Kind, Log, Method, Record, Span, Status, Trace, Writer};
use access_bench::{Checksum, Result, events};
use metatf::container::{Filter, FlushEvery, WriteOptions};
use std::{fs::File, io::BufWriter};

fn main() -> Result<()> {
    access_bench::run(write, read, Some(sum))
}

fn write(file: &str, count: u64) -> Result<()> {
    // Flushing every second would make the size depend on the speed of the machine.
    let filter = if file.ends_with(".columns") { Filter::Columns } else { Filter::Auto };
    let options = WriteOptions { filter, flush: FlushEvery::NEVER, ..WriteOptions::default() };
    let mut writer = Writer::with_options(BufWriter::new(File::create(file)?), &options)?;
    for event in events(count) {
        let path = writer.paths().intern(event.path.as_bytes())?;
        let spans = event.spans.iter().map(|span| Span {
            kind: Kind::from_number(span.kind.into()),
            offset_us: span.offset_us.into(),
            dur_us: span.dur_us.into(),
        });
        writer.access(&Access {
            time: event.time,
            request_id: event.request_id,
            path,
            method: Method::from_number(event.method.into()),
            status: Status::from_number(event.status.into()),
            flags: Flags(event.flags.into()),
            user: event.user.map(u64::from),
            took_us: event.took_us.into(),
            bytes_out: event.bytes_out.into(),
            score: event.score,
            spans: spans.collect(),
        })?;
    }
    writer.finish()?;
    Ok(())
}

fn read(file: &str, checksum: &mut Checksum) -> Result<()> {
    let mut trace = Trace::open(file)?;
    let paths = trace.paths();
    while let Some(record) = trace.next()? {
        let Record::Log(Log::Access(x)) = record else { continue };
        let (method, status, flags) = (x.method.number(), x.status.number(), x.flags.0);
        let user = x.user.unwrap_or_default();
        let numbers = [x.time, x.request_id, method, status, flags, user, x.took_us, x.bytes_out];
        checksum.event(numbers, x.score, &paths.get(x.path)?.vfield);
        x.spans.iter().for_each(|span| checksum.span(span.kind.number(), span.offset_us, span.dur_us));
    }
    Ok(())
}

fn sum(file: &str) -> Result<u64> {
    let mut trace = Trace::open(file)?;
    let mut columns = Columns::of_fields(&["access.took_us"])?;
    let mut sum = 0;
    while trace.next_columns(&mut columns)? {
        sum += columns.access().took_us.iter().sum::<u64>();
    }
    Ok(sum)
}
