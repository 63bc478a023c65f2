//! Readers and writers can move to other threads, wherever their bytes come from, because their owners there (a task, a
//! Python class, a query stream) must be `Send`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that goes wrong has to panic")]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::TcpStream;

use metatf::container::{ChunkWriter, ExtentWriter, Forward, GrowingFile, Owned, Part};
use metatf::{columns, container, dynamic, reader, typed};
use metatf_derive::metatf;

#[metatf(dtd = "../dtds/heap.dtd")]
mod heap {}

#[metatf(dtd = "../examples/build-script/jobs.dtd")]
mod jobs {}

fn is_send<T: Send>() {}

#[test]
fn readers_of_any_source() {
    is_send::<container::Reader<'static>>();
    is_send::<container::Decoder>();
    is_send::<(Part, Owned, GrowingFile)>();
    is_send::<reader::RecordReader<'static>>();
    is_send::<dynamic::Trace<'static>>();
    is_send::<(dynamic::Schema, dynamic::OwnedRecord, columns::Columns)>();
}

#[test]
fn writers() {
    fn all<W: container::Sink + Send>() {
        is_send::<(ChunkWriter<W>, ExtentWriter<W>)>();
        is_send::<metatf::RecordWriter<W>>();
        is_send::<dynamic::Writer<W>>();
        is_send::<(heap::Writer<W>, jobs::Writer<W>)>();
    }
    all::<Vec<u8>>();
    all::<BufWriter<File>>();
    all::<TcpStream>();
    all::<Forward<BufWriter<TcpStream>>>();
    all::<Box<dyn Write + Send>>();
}

#[test]
fn generated_types() {
    is_send::<heap::Trace<'static>>();
    is_send::<jobs::Trace<'static>>();
    is_send::<<jobs::Trace<'static> as IntoIterator>::IntoIter>();
    is_send::<(heap::Record, jobs::Record<&[u8]>, jobs::Record<Vec<u8>>)>();
    is_send::<(metatf::Error, typed::OpenError, dynamic::OpenError)>();
}

#[test]
fn a_stream_is_read_by_another_thread() {
    fn send<T: Send>(it: T) -> T {
        it
    }
    let mut writer = jobs::Writer::new(Vec::new()).unwrap();
    writer.submit(&jobs::Submit { time: 1, job: 1, vfield: b"a job" }).unwrap();
    let (read, mut write) = std::io::pipe().unwrap();
    write.write_all(&writer.finish().unwrap()).unwrap();
    drop(write);
    let mut trace = jobs::Trace::from_read(read).unwrap();
    let name = std::thread::spawn(move || {
        let mut queue = send(trace.queue());
        let Some(jobs::Queue::Submit(submit)) = queue.next_record().unwrap() else { panic!("no job") };
        submit.vfield.to_vec()
    });
    assert_eq!(name.join().unwrap(), b"a job");
}
