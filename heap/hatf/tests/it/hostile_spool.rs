//! Programs that overwrite or truncate the spool: the recording is worthless, but it ends when the program does.
//! Files that others put next to spools do not mislead `hatf recover`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::alloc::Layout;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use metatf_test::PATIENCE;

/// Options to record all events, the last part of them, and all details.
const OPTIONS: [&[&str]; 3] = [&[], &["--keep", "256KiB"], &["--usable", "--pages"]];

/// Records `script`, with the spool's path in `HATF_SPOOL`. Returns its exit status; `None` if `hatf` did not end.
fn record(options: &[&str], script: &str) -> Option<i32> {
    let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
        .args(["record", "--report", "--no-trace"])
        .args(options)
        .args(["--", "/bin/sh", "-c", script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = recorder.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    None
}

#[test]
fn bytes_of_the_program_s_own() {
    for byte in ["\\000", "\\001", "\\002", "\\375", "\\377"] {
        let fill = format!(
            "tr '\\000' '{byte}' < /dev/zero | dd of=\"$HATF_SPOOL\" bs=4096 count=2049 conv=notrunc iflag=fullblock; exit 7"
        );
        for options in OPTIONS {
            assert_eq!(record(options, &fill), Some(7), "{byte}, {options:?}");
        }
    }
}

#[test]
fn a_spool_that_is_cut_off() {
    // The program itself receives SIGBUS if it allocates again, because the pages for its events are gone.
    for options in OPTIONS {
        let ended = record(options, "(: > \"$HATF_SPOOL\"); ls / > /dev/null; exit 7");
        assert!(matches!(ended, Some(7 | 135)), "{ended:?}, {options:?}");
    }
}

/// Offsets of words in the spool header, of its chunk states, and of the words that limit a stack table.
const CONDITIONS: u64 = 80;
const LINKED: u64 = 224;
const LINKED_IMAGES: u64 = 236;
const NEXT: u64 = 256;
const STATES: u64 = 512;
const LEVELS: u64 = 24;

/// Writes from another process into the files of a recording, repeatedly. Round 0 is before the program may continue.
type Attack = fn(events: &fs::File, stacks: &fs::File, round: u32);

fn write(file: &fs::File, at: u64, words: &[u32]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    file.write_all_at(&bytes, at).unwrap();
}

/// Sets all conditions except those of paused recording, which was never requested.
fn every_condition(events: &fs::File, _: &fs::File, _: u32) {
    write(events, CONDITIONS, &[!(8 | 16)]);
}

/// Takes chunks at the far end and then frees them. Their memory is unmapped when the address space is limited.
fn far_and_nobody_s(events: &fs::File, _: &fs::File, _: u32) {
    for state in [1, 0].repeat(200) {
        write(events, NEXT, &[1500, 0]);
        write(events, STATES + 4 * 1500, &[state; 500]);
    }
}

fn levels_without_end(_: &fs::File, stacks: &fs::File, _: u32) {
    write(stacks, LEVELS, &[u32::MAX; 2]);
}

/// Requests and announces plans for statically linked allocators without end.
fn plans_without_end(events: &fs::File, _: &fs::File, round: u32) {
    write(events, LINKED, &[round]);
    write(events, LINKED_IMAGES, &[round, round | 1, round.wrapping_mul(7), u32::MAX]);
}

/// If another process writes arbitrary words while the program runs, the program behaves as it does alone.
#[test]
fn words_of_another_process() {
    let attacks: [(&str, Attack); 4] = [
        ("conditions", every_condition),
        ("states", far_and_nobody_s),
        ("levels", levels_without_end),
        ("plans", plans_without_end),
    ];
    // The shell stores strings and functions call each other, before and after the address space is limited.
    let script = "f() { x=$x$1; y=$1; [ $1 = 0 ] || f $(($1 - 1)); }; g() { i=0; while [ $i -lt $1 ]; do i=$((i + 1)); x=; f 7; done; }; \
        echo $HATF_SPOOL > spool.new; mv spool.new spool; g 100; until [ -e go ]; do g 20; done; cat go; ulimit -v 60000; g 100; exit 7";
    for (name, attack) in attacks {
        let folder = tempfile::tempdir().unwrap();
        let mut recorder = Command::new(env!("CARGO_BIN_EXE_hatf"))
            .current_dir(&folder)
            .args(["record", "--stacks", "--no-trace", "--report", "--", "/bin/sh", "-c", script])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        let mut ended = None;
        let (mut files, mut round) = (None, 0);
        while ended.is_none() && begun.elapsed() < PATIENCE {
            if let (None, Ok(spool)) = (&files, fs::read_to_string(folder.path().join("spool"))) {
                let open = |path: &Path| fs::File::options().write(true).open(path).unwrap();
                let spool = Path::new(spool.trim());
                files = Some((open(spool), open(&spool.with_file_name("stacks"))));
            }
            if let Some((events, stacks)) = &files {
                attack(events, stacks, round);
                if round == 0 {
                    fs::write(folder.path().join("go"), "").unwrap();
                }
                round += 1;
            }
            ended = recorder.try_wait().unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = recorder.kill();
        recorder.wait().unwrap();
        assert_eq!(ended.and_then(|status| status.code()), Some(7), "{name}: {ended:?}, {round} times");
    }
}

/// Creates a directory with an empty spool that belongs to this user, and no other files.
fn spool_in(parent: &Path, name: &str) -> PathBuf {
    let bytes = hatf_record::bytes_for(1);
    let layout = Layout::from_size_align(bytes, hatf_record::CHUNK_BYTES).unwrap();
    let folder = parent.join(name);
    DirBuilder::new().mode(0o700).create(&folder).unwrap();
    // SAFETY: zeroed memory with a spool's size and alignment, used only through the spool until the spool is gone.
    unsafe {
        let memory = std::alloc::alloc_zeroed(layout);
        hatf_record::Spool::create(memory, 1);
        fs::write(folder.join("events"), std::slice::from_raw_parts(memory, bytes)).unwrap();
        std::alloc::dealloc(memory, layout);
    }
    folder
}

/// Runs `hatf recover` with these arguments, with spools in `parent` and 1 GiB of memory. Returns its exit status and
/// output, or `None` if it did not end.
fn recover(parent: &Path, arguments: &[&Path]) -> Option<(Option<i32>, String)> {
    let printed = parent.with_extension("printed");
    let out = fs::File::create(&printed).unwrap();
    let mut command = Command::new("/bin/sh")
        .args(["-c", "ulimit -v 1048576; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_hatf"), "recover"])
        .args(arguments)
        .env("TMPDIR", parent)
        .stderr(out.try_clone().unwrap())
        .stdout(out)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(status) = command.try_wait().unwrap() {
            return Some((status.code(), fs::read_to_string(&printed).unwrap()));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    command.kill().unwrap();
    command.wait().unwrap();
    None
}

/// A replacement for a file in a spool directory.
type Trap = fn(place: &Path, victim: &Path);

fn link(place: &Path, victim: &Path) {
    symlink(victim, place).unwrap();
}

fn link_to_zeros(place: &Path, _: &Path) {
    symlink("/dev/zero", place).unwrap();
}

fn fifo(place: &Path, _: &Path) {
    assert!(Command::new("mkfifo").arg(place).status().unwrap().success());
}

fn endless(place: &Path, _: &Path) {
    fs::File::create(place).unwrap().set_len(1 << 40).unwrap();
}

/// `hatf recover` does not follow, wait for or endlessly read foreign files in spool directories, and a listing changes
/// nothing.
#[test]
fn what_is_no_file_of_a_spool() {
    let folder = tempfile::tempdir().unwrap();
    let (parent, victim) = (folder.path().join("spools"), folder.path().join("victim"));
    fs::create_dir(&parent).unwrap();
    let traps: [Trap; 4] = [link, link_to_zeros, fifo, endless];
    for (number, trap) in traps.iter().enumerate() {
        for file in ["recording.json", "command", "lasting.json", "stacks", "events"] {
            fs::write(&victim, "as it was").unwrap();
            let spool = spool_in(&parent, &format!("hatf-spool-{number}-{file}"));
            let _ = fs::remove_file(spool.join(file));
            trap(&spool.join(file), &victim);
            let before = state(&spool);
            let listed = recover(&parent, &[]).unwrap_or_else(|| panic!("{number}, {file}: no end"));
            assert_eq!(listed.0, Some(0), "{number}, {file}: {listed:?}");
            assert_eq!(state(&spool), before, "{number}, {file}: a list has changed what it lists");
            let trace = folder.path().join("trace.mtf");
            let made = recover(&parent, &[&spool, "--keep".as_ref(), "-o".as_ref(), &trace]);
            let (code, printed) = made.unwrap_or_else(|| panic!("{number}, {file}: no end"));
            // A foreign file that a trace requires is an error that names the file.
            let is_error = code == Some(1) && printed.contains(file);
            let is_needed = matches!(file, "recording.json" | "events");
            assert!(is_error || code == Some(0) && !is_needed, "{number}, {file}: {code:?} {printed}");
            assert_eq!(fs::read_to_string(&victim).unwrap(), "as it was", "{number}, {file}");
            fs::remove_dir_all(&spool).unwrap();
        }
    }
}

/// Returns the files in a directory with their lengths and times.
fn state(folder: &Path) -> Vec<(PathBuf, u64, std::time::SystemTime)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut state: Vec<_> = entries
        .map(|path| {
            let metadata = path.symlink_metadata().unwrap();
            (path, metadata.len(), metadata.modified().unwrap())
        })
        .collect();
    state.sort();
    state
}

/// Spools that another user created or that others can change are not used.
#[test]
fn spools_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let parent = folder.path().join("spools");
    fs::create_dir(&parent).unwrap();
    let own = spool_in(&parent, "hatf-spool-1-0");
    let linked = parent.join("hatf-spool-2-0");
    let elsewhere = spool_in(folder.path(), "elsewhere");
    symlink(&elsewhere, &linked).unwrap();
    let open = spool_in(&parent, "hatf-spool-3-0");
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let theirs = spool_in(&parent, "hatf-spool-4-0");
    // Only root can create one.
    let is_theirs = std::os::unix::fs::chown(&theirs, Some(65_534), Some(65_534)).is_ok();
    let (code, printed) = recover(&parent, &[]).unwrap();
    let has = |path: &Path| printed.contains(&*path.to_string_lossy());
    assert_eq!((code, has(&own), has(&linked)), (Some(0), true, false), "{printed}");
    assert!(printed.contains(&format!("{}: other users can read or change it", open.display())), "{printed}");
    assert_eq!(has(&theirs), !is_theirs, "{printed}");
    let trace = folder.path().join("trace.mtf");
    for (spool, why) in
        [(&linked, "ot a directory"), (&open, "other users can read or change it"), (&theirs, "another user")]
    {
        let (code, printed) = recover(&parent, &[spool, "-o".as_ref(), &trace]).unwrap();
        let refused = code == Some(1) && printed.contains(why) && !trace.exists();
        assert!(refused || !is_theirs && spool == &theirs, "{printed}");
    }
}
