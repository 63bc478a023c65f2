//! Tests corrupt, truncated and forged buffers files. They either cause an error, or their complete part is recovered.

use core::mem::offset_of;
use std::path::Path;

use crate::common::{Scene, events, scenario};
use metatf::container::{Forward, Sink};
use metatf_telemetry::layout::{Header, RingHead};
use metatf_telemetry::{Settings, postmortem};

#[test]
fn child() {
    if scenario().as_deref() == Some("sparse") {
        sparse();
    } else if scenario().is_some() {
        let _guard =
            events::TELEMETRY.start_with(Settings { threads: 2, ..Settings::default().with_environment().unwrap() });
        for number in 0..300 {
            events::step!(number);
            events::said!(text = "text", bytes = &[1, 2, 3]);
            if number < 3 {
                let name = events::intern(&format!("string {number}"));
                events::touch!(place = 0, by = name);
            }
        }
        // SAFETY: kills the process immediately.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
}

fn recover(bytes: &[u8], scene: &Scene) -> Result<postmortem::Found, String> {
    let path = scene.folder.path().join("damaged");
    std::fs::write(&path, bytes).unwrap();
    let buffers = postmortem::Buffers::open(&path).map_err(|error| error.to_string())?;
    let sink: Box<dyn Sink + Send> = Box::new(Forward(std::io::sink()));
    buffers.recover(sink).map(|(found, _)| found).map_err(|error| error.to_string())
}

#[test]
fn damaged_buffers_are_errors_or_read_in_part() {
    let scene = Scene::new("hostile::child");
    let child = scene.start("kill", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536")]);
    assert!(!child.wait_with_output().unwrap().status.success());
    let whole = std::fs::read(&scene.buffers()[0]).unwrap();
    let found = recover(&whole, &scene).unwrap();
    assert_eq!((found.warnings.len(), found.lost.len()), (0, 0), "{found:?}");
    // On a busy machine, some are in the trace when the program is killed, with records that describe them.
    let all = found.in_buffers;
    assert!(if found.in_trace == 0 { all == 606 } else { all + found.in_trace >= 606 }, "{found:?}");
    // In a core dump, buffers start at an arbitrary page.
    let core = [b"\x7fELF".as_slice(), &vec![0; 3 * 4096 - 4], &whole].concat();
    assert_eq!(recover(&core, &scene).unwrap().in_buffers, all);
    assert!(recover(&core[..8192], &scene).unwrap_err().contains("METATF_TELEMETRY_MEMORY=core"));
    // Change each word of the header and of the first events.
    let (mut errors, mut parts) = (0, 0);
    let texts = whole.windows(4).position(|bytes| bytes == b"// e").unwrap();
    let ring = u64::from_ne_bytes(*whole[offset_of!(Header, rings_at)..].first_chunk().unwrap()) as usize;
    // The offset and size of the strings are stored after the batches, and the strings themselves at a page before the
    // rings.
    let strings = whole.windows(8).position(|bytes| bytes == b"string 1").unwrap() - 32;
    let header = offset_of!(Header, strings_at);
    let places = (0..200).step_by(4).chain((texts..texts + 40).step_by(4)).chain((ring..ring + 4600).step_by(132));
    let places = places.chain((header..header + 40).step_by(4)).chain((strings..strings + 48).step_by(4));
    for at in places {
        for value in [0_u32, 1, 0x7fff_ffff, u32::MAX] {
            let mut damaged = whole.clone();
            damaged[at..at + 4].copy_from_slice(&value.to_le_bytes());
            match recover(&damaged, &scene) {
                Ok(found) => {
                    assert!(found.in_buffers <= 606 + 3, "{found:?}");
                    parts += u64::from(found.in_buffers < all);
                }
                Err(message) => {
                    assert!(!message.is_empty());
                    errors += 1;
                }
            }
        }
    }
    for length in [0, 7, 100, 8192, ring, ring + 100, ring + 4096 + 1000] {
        errors += u64::from(recover(&whole[..length], &scene).is_err());
    }
    assert!(errors > 20 && parts > 5, "{errors} errors, {parts} in part");
}

/// Corrupt buffers may refer to a pipe, and reading it would block forever.
#[test]
fn a_pipe_in_the_place_of_a_file_is_not_read() {
    let scene = Scene::new("hostile::child");
    let child = scene.start("kill", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536")]);
    assert!(!child.wait_with_output().unwrap().status.success());
    let whole = std::fs::read(&scene.buffers()[0]).unwrap();
    std::fs::remove_file(scene.trace()).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(scene.trace()).status().unwrap().success());
    assert_eq!(recover(&whole, &scene).unwrap().in_trace, 0);
    let error = postmortem::Buffers::open(&scene.trace()).err().unwrap().to_string();
    assert!(error.contains("not a regular file"), "{error}");
}

/// Writes a copy of a buffers file that claims to be full of 8 MiB rings, but contains none of their bytes.
fn made_sparse(whole: &[u8], path: &Path) {
    use std::os::unix::fs::FileExt as _;
    let file = std::fs::File::create(path).unwrap();
    let word = |at: usize| u64::from_ne_bytes(*whole[at..].first_chunk().unwrap());
    let rings_at = word(offset_of!(Header, rings_at));
    let (rings, bytes) = (4096_u32, 8_u64 << 20);
    file.set_len(rings_at + u64::from(rings) * (4096 + bytes)).unwrap();
    file.write_all_at(&whole[..usize::try_from(rings_at).unwrap()], 0).unwrap();
    file.write_all_at(&bytes.to_ne_bytes(), offset_of!(Header, ring_bytes) as u64).unwrap();
    file.write_all_at(&rings.to_ne_bytes(), offset_of!(Header, rings) as u64).unwrap();
    for ring in 0..u64::from(rings) {
        let at = rings_at + ring * (4096 + bytes);
        file.write_all_at(&bytes.to_ne_bytes(), at + offset_of!(RingHead, head) as u64).unwrap();
        file.write_all_at(&7_u32.to_ne_bytes(), at + offset_of!(RingHead, thread) as u64).unwrap();
    }
}

/// Reads sparse buffers with a memory limit of 1 GiB.
fn sparse() {
    let limit = libc::rlimit { rlim_cur: 1 << 30, rlim_max: 1 << 30 };
    // SAFETY: sets a limit of this process.
    unsafe { libc::setrlimit(libc::RLIMIT_AS, &raw const limit) };
    let buffers = postmortem::Buffers::open(Path::new("sparse")).unwrap();
    let sink: Box<dyn Sink + Send> = Box::new(Forward(std::io::sink()));
    let (found, _) = buffers.recover(sink).unwrap();
    assert!(found.in_buffers < 5000 && found.lost.len() >= 4096, "{found:?}");
}

/// A sparse file may claim to have 32 GiB of events.
#[test]
fn sparse_buffers_take_little_memory() {
    let scene = Scene::new("hostile::child");
    let child = scene.start("kill", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536")]);
    assert!(!child.wait_with_output().unwrap().status.success());
    let whole = std::fs::read(&scene.buffers()[0]).unwrap();
    made_sparse(&whole, &scene.folder.path().join("sparse"));
    scene.run("sparse", &[]);
}
