//! Heap traces in every form that is written, from that of `heap.dtd` in the golden files.

use hatf::forms::{CreateOptions, FORMS, Form, HEAP, convert_bytes};
use metatf_test::root;

/// The names of files, as people would have them, and the bytes.
pub(crate) fn heaps() -> Vec<(String, Vec<u8>)> {
    let trace = std::fs::read(root().join("tests/golden/1.0/heap.gawk-default.mtf")).unwrap();
    let written = FORMS.into_iter().filter(|form| form.open.is_some() && form.create.is_some());
    let of = |form: &'static Form| {
        let (bytes, _) = convert_bytes(&trace, Some(&HEAP), form, &CreateOptions::default()).unwrap();
        let suffix = form.suffixes.first().copied().unwrap_or(".mtf");
        (format!("{}{suffix}", form.name), bytes)
    };
    let data = |name: &str| (name.to_owned(), std::fs::read(root().join("hatf/tests/data").join(name)).unwrap());
    written.map(of).chain([data("gawk.raw32.zst"), data("python_threads.raw64.zst")]).collect()
}
