//! Raw traces of programs are the same, byte for byte, when they were converted to `heap.dtd` and back. These are the beginnings in
//! `data`; `METATF_HEAP_DATA` names a folder of longer ones.

mod common;

use common::hatf;
use metatf_test::{Folder, root};

#[test]
fn raw_records_to_heap_and_back() {
    let folder = std::env::var_os("METATF_HEAP_DATA").map_or_else(|| root().join("hatf/tests/data"), Into::into);
    let work = Folder::new();
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(form) = ["raw32", "raw64"].into_iter().find(|form| name.contains(&format!(".{form}"))) else {
            continue;
        };
        let (heap, back) = (work.path("t.mtf"), format!("t.{form}"));
        hatf(["convert", "--strict", path.to_str().unwrap(), &heap]).exits(0);
        hatf(["convert", "--strict", &heap, &work.path(&back)]).exits(0);
        let mut original = std::fs::read(&path).unwrap();
        if name.ends_with(".zst") {
            original = zstd::stream::decode_all(&original[..]).unwrap();
        }
        assert!(original == work.read(&back), "{name} differs");
        let records = original.len() / if form == "raw32" { 32 } else { 64 };
        eprintln!("{name}: {records} records, {} bytes as heap.dtd", work.size("t.mtf"));
        seen += 1;
    }
    assert!(seen > 0, "the folder holds no raw trace");
}
