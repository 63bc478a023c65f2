//! Data of [heaptrack](https://github.com/KDE/heaptrack): each line consists of a letter and hexadecimal numbers.
//!
//! The recorder writes *raw* data with the addresses of blocks, stacks and modules. `heaptrack_interpret` converts it
//! to *interpreted* data, which contains functions, files and lines instead of addresses and identifies a block by its
//! size and stack. From version 3 on, strings are preceded by their lengths.

mod read;
mod write;

use super::text::TextSource;
use super::{Form, TraceReader};

pub(super) static FORM: Form = Form {
    name: "heaptrack",
    about: "heaptrack data, raw or interpreted, versions 1 to 3; output is interpreted",
    suffixes: &[".heaptrack"],
    sniff: |head| {
        let line = head.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut words = line.split(|byte| *byte == b' ');
        let is_hex = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_hexdigit);
        words.next() == Some(b"v") && words.next().is_some_and(is_hex) && words.next().is_some_and(is_hex)
    },
    open: Some(|input, _| Ok(TraceReader::new(TextSource::new(input.into_read(), read::HeaptrackLog::default())))),
    create: Some(|output, _| Ok(Box::new(write::HeaptrackSink::new(output)?))),
    lost: "addresses, threads, the called function, times below a millisecond, module data other than paths, and \
           everything except calls, symbols and resident memory",
};
