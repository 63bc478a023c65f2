//! Tests that buffers in private memory are found in core dumps of gcore and gdb, which place segments anywhere, and
//! tests forged core dumps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Scene, events, records, scenario, steps};
use metatf_telemetry::{layout, postmortem};

#[test]
fn child() {
    if scenario().is_some() {
        let _guard = events::TELEMETRY.start().unwrap();
        (0..5000).for_each(|number| events::step!(number));
        println!("ready");
        std::thread::sleep(std::time::Duration::from_secs(600));
    }
}

/// Returns the core dumps that gcore and gdb create of a program with telemetry, or no core dumps if they may not trace
/// the program.
fn cores(scene: &Scene) -> Vec<PathBuf> {
    let environment = [
        ("METATF_TELEMETRY_CONTROL", "all"),
        ("METATF_TELEMETRY_MEMORY", "core"),
        ("METATF_TELEMETRY_POLICY", "overwrite"),
        ("METATF_TELEMETRY_THREADS", "2"),
    ];
    let mut child = scene.start("sleeps", &environment);
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.map(Result::unwrap).find(|line| line.ends_with("ready")).unwrap();
    let (process, folder) = (child.id().to_string(), scene.folder.path());
    let _ = Command::new("gcore").args(["-o", "gcore", &process]).current_dir(folder).output();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-p", &process, "-ex", "generate-core-file gdb"]);
    let _ = gdb.current_dir(folder).output();
    child.kill().unwrap();
    child.wait().unwrap();
    let paths = [folder.join(format!("gcore.{process}")), folder.join("gdb")];
    paths.into_iter().filter(|path| path.exists()).collect()
}

fn recover(core: &Path, to: &Path) -> Result<u64, String> {
    let buffers = postmortem::Buffers::open(core).map_err(|error| error.to_string())?;
    let sink = Box::new(metatf::container::Forward(std::fs::File::create(to).unwrap()));
    let (found, mut sink) = buffers.recover(sink).map_err(|error| error.to_string())?;
    sink.flush().unwrap();
    Ok(found.in_buffers)
}

#[test]
fn cores_of_gcore_and_gdb_are_read() {
    let scene = Scene::new("cores::child");
    let cores = cores(&scene);
    if cores.is_empty() {
        println!("skipped: gcore and gdb are not there, or may not look at processes");
    }
    let to = scene.folder.path().join("left.mtf");
    for core in cores {
        assert_eq!(recover(&core, &to).unwrap(), 5000, "{}", core.display());
        assert_eq!(steps(&records(&to)).into_values().collect::<Vec<_>>(), [5000]);
    }
}

/// Returns an ELF file with segments of these types, offsets and sizes.
fn elf(segments: &[(u32, u64, u64)], count: u16) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..5].copy_from_slice(b"\x7fELF\x02");
    bytes[32] = 64;
    bytes[54] = 56;
    bytes[56..58].copy_from_slice(&count.to_ne_bytes());
    for (kind, place, length) in segments {
        let mut segment = [0; 56];
        segment[..4].copy_from_slice(&kind.to_ne_bytes());
        segment[8..16].copy_from_slice(&place.to_ne_bytes());
        segment[32..40].copy_from_slice(&length.to_ne_bytes());
        bytes.extend(segment);
    }
    bytes
}

/// Nonexistent segments, overlapping segments and excessive segment counts quickly cause an error.
#[test]
fn made_up_cores_are_errors() {
    let scene = Scene::new("cores::child");
    let path = scene.folder.path().join("core");
    let open = |bytes: &[u8]| {
        std::fs::File::create(&path).unwrap().write_all(bytes).unwrap();
        postmortem::Buffers::open(&path).err().unwrap().to_string()
    };
    let lost = "METATF_TELEMETRY_MEMORY=core";
    for segments in [vec![(1, u64::MAX, u64::MAX)], vec![(1, 0, u64::MAX); 5000], vec![(4, 0, 4096)]] {
        let count = segments.len() as u16;
        for bytes in [elf(&segments, count), [elf(&segments, count), vec![0; 3 << 20]].concat()] {
            assert!(open(&bytes).contains(lost));
        }
        assert!(open(&elf(&segments, u16::MAX)).contains(lost));
        assert!(open(&elf(&segments, 60_000)[..70]).contains(lost));
    }
    // The buffers are page-aligned within their segment but not within the file.
    let mut bytes = elf(&[(1, 333, 8192)], 1);
    bytes.resize(333 + 4096, 0);
    bytes.extend(layout::MAGIC.to_ne_bytes());
    bytes.resize(333 + 8192, 0);
    assert!(open(&bytes).contains("the file is too short"), "{}", open(&bytes));
}
