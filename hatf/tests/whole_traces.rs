//! Raw traces of whole programs, where a folder of them is at hand: `METATF_HEAP_DATA` names it. To `heap.dtd` and back
//! they are the same, byte for byte.

use std::path::Path;
use std::process::Command;

#[test]
fn raw_records_to_heap_and_back() {
    let Some(folder) = std::env::var_os("METATF_HEAP_DATA") else {
        eprintln!("SKIPPED: METATF_HEAP_DATA names no folder of raw traces");
        return;
    };
    let work = tempfile::tempdir().unwrap();
    let convert = |arguments: &[&Path]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
        let status = command.args(["convert", "--strict"]).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(form) = ["raw32", "raw64"].into_iter().find(|form| name.contains(&format!(".{form}"))) else {
            continue;
        };
        let (heap, back) = (work.path().join("t.mtf"), work.path().join(format!("t.{form}")));
        convert(&[&path, &heap]);
        convert(&[&heap, &back]);
        let mut original = std::fs::read(&path).unwrap();
        if name.ends_with(".zst") {
            original = zstd::stream::decode_all(&original[..]).unwrap();
        }
        assert!(original == std::fs::read(&back).unwrap(), "{name} differs");
        let records = original.len() / if form == "raw32" { 32 } else { 64 };
        eprintln!("{name}: {records} records, {} bytes as heap.dtd", heap.metadata().unwrap().len());
        seen += 1;
    }
    assert!(seen > 0, "the folder holds no raw trace");
}
