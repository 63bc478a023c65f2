//! `verify`, and `--salvage`: what is whole comes through, and what is lost is said.

use super::common::{metatfc, run};
use super::folder;
use std::fmt::Write as _;

/// A heap trace that was recoded has narrower stream elements than a writer gives them. Nobody holds offsets of them.
#[test]
fn whole_traces_are_copied() {
    let folder = folder();
    let here = &folder;
    let mut lines = r#"{"@section":"heap","@record":"thread","id":1}"#.to_owned();
    for i in 0..400 {
        let address = 0x1_0000 + 48 * i * i;
        write!(lines, "\n{{\"@section\":\"heap\",\"@record\":\"malloc\",\"time\":0,\"stack\":0,\"usable\":0,\"size\":24,\"address\":{address}}}")
            .expect("a string");
        if i % 3 == 0 {
            write!(
                lines,
                "\n{{\"@section\":\"heap\",\"@record\":\"free\",\"time\":0,\"stack\":0,\"address\":{address}}}"
            )
            .expect("a string");
        }
    }
    run(here, &["encode", "--dtd", "heap", "-", "wide.mtf"], lines.as_bytes()).exits(0);
    metatfc(here, &["recode", "wide.mtf", "heap.mtf"]).exits(0);
    metatfc(here, &["verify", "--salvage", "copy.mtf", "heap.mtf"]).exits(0).prints("whole");
    metatfc(here, &["diff", "heap.mtf", "copy.mtf"]).exits(0);
}

/// The header's count is written by the one who closes the trace: another count of records is a loss.
#[test]
fn the_headers_count_is_checked() {
    let folder = folder();
    let here = &folder;
    let mut bytes = here.read("a.mtf");
    let at = bytes.windows(8).position(|bytes| bytes == 4_u64.to_le_bytes()).expect("the number of records");
    bytes[at] = 40;
    here.write("more.mtf", &bytes);
    let bad = metatfc(here, &["verify", "more.mtf"]).exits(1);
    let bad = bad.says("the header says 40 records, there are 4").says("lost: 36 records, by the header's count");
    assert_eq!(bad.text(), "");
}
