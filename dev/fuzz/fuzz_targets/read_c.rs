//! A generated C reader and the dynamic reader return the same records of any bytes.
//!
//! The first byte of an input selects the format, and the second one how to read the rest.
#![no_main]

use metatf::container::Reader as Container;
use metatf::dynamic::{JsonOptions, Schema, Trace};
use serde_json::Value;
use std::ffi::c_void;

type Reader = unsafe extern "C" fn(*const u8, usize, i32, *mut *mut u8, *mut usize) -> i32;
include!(concat!(env!("OUT_DIR"), "/readers.rs"));

unsafe extern "C" {
    fn free(memory: *mut c_void);
}

/// Errors of the C reader for traces that the dynamic reader can read: another DTD, a missing codec, a limit.
const REFUSED: [i32; 3] = [18, 19, 20];

/// Returns the records as JSON lines, and the error.
fn by_c(reader: Reader, trace: &[u8], flags: i32) -> (Vec<u8>, i32) {
    let (mut text, mut length) = (std::ptr::null_mut(), 0);
    // SAFETY: the C function reads `trace.len()` bytes, and sets `text` to `length` allocated bytes.
    let (bytes, error) = unsafe {
        let error = reader(trace.as_ptr(), trace.len(), flags, &raw mut text, &raw mut length);
        let bytes = std::slice::from_raw_parts(text, length).to_vec();
        free(text.cast());
        (bytes, error)
    };
    (bytes, error)
}

/// Returns the records as JSON lines, and whether the trace is valid.
fn by_rust(dtd: &str, trace: &[u8]) -> (Vec<u8>, bool) {
    let mut text = Vec::new();
    let schema = Schema::parse("format.dtd", dtd.as_bytes()).expect("the DTD is valid");
    let opened = Container::from_slice(trace).and_then(|container| Trace::new(schema, container));
    let Ok(mut reader) = opened else { return (text, false) };
    loop {
        match reader.next_json(&mut text, JsonOptions::default()) {
            Ok(true) => text.push(b'\n'),
            Ok(false) => return (text, true),
            Err(_) => return (text, false),
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let &[format, flags, ref trace @ ..] = input else { return };
    let (dtd, reader) = READERS[usize::from(format) % READERS.len()];
    let trace = if flags & 4 == 0 { trace.to_vec() } else { metatf_tests::targets::mend(trace) };
    let (c, error) = by_c(reader, &trace, i32::from(flags & 3));
    if flags & 2 != 0 || REFUSED.contains(&error) {
        return;
    }
    let (rust, valid) = by_rust(dtd, &trace);
    assert_eq!(error == 0, valid, "the C reader returns error {error}");
    let values = |text: &[u8]| -> Vec<Value> {
        text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    };
    if valid {
        assert_eq!(values(&c), values(&rust));
    }
});
