//! Heap traces in every writable format, converted from a golden `heap.dtd` trace.

use hatf_trace::forms::{CreateOptions, FORMS, Form, HEAP, convert_bytes};
use metatf_test::root;

/// Returns typical file names and the contents.
pub(crate) fn heaps() -> Vec<(String, Vec<u8>)> {
    let trace = std::fs::read(root().join("tests/golden/1.0/heap.gawk-default.mtf")).unwrap();
    let written = FORMS.into_iter().filter(|form| form.open.is_some() && form.create.is_some());
    let of = |form: &'static Form| {
        let (bytes, _) = convert_bytes(&trace, Some(&HEAP), form, &CreateOptions::default()).unwrap();
        let suffix = form.suffixes.first().copied().unwrap_or(".mtf");
        (format!("{}{suffix}", form.name), bytes)
    };
    let data = |name: &str| (name.to_owned(), std::fs::read(root().join("heap/hatf/tests/data").join(name)).unwrap());
    written.map(of).chain([data("gawk.raw32.zst"), data("python_threads.raw64.zst")]).collect()
}
