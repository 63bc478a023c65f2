//! The output of `hatf tour` is correct for its trace.

use hatf_trace::forms::TraceReader;
use hatf_trace::{EventSource as _, Item};
use metatf_test::Folder;

use crate::common::hatf;

#[test]
fn the_tour_describes_its_trace() {
    let folder = Folder::new();
    let trace = folder.path("tour.mtf");
    let text = hatf(["tour", "-o", &trace]).exits(0).text();

    let mut reader = TraceReader::open(trace.as_ref()).unwrap();
    let mut records = 0;
    while let Some(item) = reader.next().unwrap() {
        records += u64::from(matches!(item, Item::Event(_)));
    }
    let bytes = std::fs::metadata(&trace).unwrap().len();
    let summary = format!("   {records} records, {bytes} bytes in {trace}, 0 lost\n");
    assert!(text.contains(&summary), "expected `{summary}` in\n{text}");
    let report = hatf(["report", &trace]).exits(0).text();
    assert!(text.contains(&report), "expected\n{report}\nin\n{text}");
    assert!(!report.contains("unfinished"), "{report}");
}
