//! Tests the events of programs and the resulting traces. This file exceeds 400 lines to keep each scenario next to its
//! expected result.

use crate::common::{Events, Scene, events, records, scenario, steps};
use metatf_derive::metatf;
use metatf_telemetry::{Policy, Settings, postmortem};
use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[metatf(dtd = "tests/names.dtd", emitters = "crate::programs::names")]
mod names {}

fn settings() -> Settings {
    Settings::default().with_environment().unwrap()
}

/// Runs the scenario that the environment variable names, if it is set.
#[test]
fn child() {
    let Some(name) = scenario() else { return };
    match name.as_str() {
        "types" => types(),
        "off" => {
            let _guard = events::TELEMETRY.start().unwrap();
            events::step!(number = unwanted());
            events::step(1);
        }
        "twice" => {
            let _guard = events::TELEMETRY.start().unwrap();
            println!("{}", events::TELEMETRY.start().unwrap_err());
            assert!(events::TELEMETRY.start().is_err());
        }
        "threads" => threads(),
        "churn" => churn(),
        "crowd" => crowd(48, 5000),
        "places" => crowd(12, 200),
        "refused" => refused(),
        "written" => written(),
        "cut" => cut(),
        "named" => named(),
        "limited" => limited(),
        "killed" => {
            let _guard = events::TELEMETRY.start().unwrap();
            events::step!(number = 0);
            // SAFETY: ends the process immediately.
            unsafe { libc::_exit(0) };
        }
        "start" => match events::TELEMETRY.start() {
            Ok(guard) => {
                events::step!(number = 0);
                guard.finish().map_err(|error| println!("{error}")).unwrap_or_default();
            }
            Err(error) => println!("{error}"),
        },
        "drops" => {
            let quiet = std::env::var_os("METATF_TEST_QUIET").is_some();
            let guard = events::TELEMETRY.start_with(Settings { drain: false, quiet, ..settings() }).unwrap();
            for number in 0..10_000 {
                events::step!(number);
            }
            events::TELEMETRY.flush().unwrap();
            events::step!(number = 77_777);
            guard.finish().unwrap();
        }
        "blocks" => {
            let _guard = events::TELEMETRY.start().unwrap();
            for number in 0..100_000 {
                events::step!(number);
            }
        }
        "recorder" => {
            let guard =
                events::TELEMETRY.start_with(Settings { policy: Policy::Overwrite, threads: 3, ..settings() }).unwrap();
            for number in 0..100_000 {
                events::step!(number);
            }
            // There are more threads than rings, but ended threads release theirs.
            for _ in 0..6 {
                std::thread::spawn(|| (0..10).for_each(|number| events::step!(number))).join().unwrap();
                std::thread::sleep(Duration::from_millis(20));
            }
            let dumped = events::TELEMETRY.dump("dump.mtf").unwrap();
            assert!((1800..2900).contains(&dumped), "{dumped}");
            guard.finish().unwrap();
        }
        "control" => control(),
        "fork" => fork(),
        "panic" => {
            let _guard = events::TELEMETRY.start().unwrap();
            metatf_telemetry::install_panic_hook();
            let thread = std::thread::spawn(|| {
                events::step!(number = 0);
                panic!("on purpose");
            });
            assert!(thread.join().is_err());
            // SAFETY: ends the process, so nothing else in the program gets to run.
            unsafe { libc::_exit(0) };
        }
        "backtrace" => {
            let _guard = events::TELEMETRY.start().unwrap();
            metatf_telemetry::install_panic_backtrace(3);
            events::step!(number = 99);
            let thread = std::thread::spawn(|| {
                (0..5000).for_each(|number| events::step!(number));
                events::said!(text = "the \x1b end", bytes = &[]);
                panic!("on purpose");
            });
            assert!(thread.join().is_err());
            // For a thread without events, nothing is printed.
            assert!(std::thread::spawn(|| panic!("once more")).join().is_err());
        }
        "exit" => {
            let guard = events::TELEMETRY.start().unwrap();
            std::mem::forget(guard);
            events::step!(number = 0);
            std::process::exit(0);
        }
        "signals" => signals(),
        "strings" => strings(),
        "sinks" => sinks(),
        "describe" => describe(),
        "stopped" => stopped(),
        "slow sink" => slow_sink(),
        "names" => {
            let _guard = names::TELEMETRY.start().unwrap();
            names::r#move!(slot = 1, r#type = 2, event = 3);
            names::emit_move(4);
            names::line!(vfield = "text", telemetry = 5);
            names::arguments!(self_ = 6);
            names::macro_move!(n = 7);
            names::telemetry!(n = 8);
        }
        "sink" => {
            let file = std::fs::File::create("sink.mtf").unwrap();
            let sink = Box::new(metatf::container::Forward(file));
            let _guard = events::TELEMETRY.start_to(settings(), sink).unwrap();
            events::step!(number = 0);
        }
        other => panic!("there is no scenario {other}"),
    }
}

fn unwanted() -> u32 {
    panic!("nobody asked for it")
}

fn types() {
    let _guard = events::TELEMETRY.start().unwrap();
    let id = [9; 16];
    events::types!(
        id = &id,
        a = 255,
        b = 65_535,
        c = u32::MAX,
        d = u64::MAX,
        e = -1,
        f = -300,
        g = i32::MIN,
        h = i64::MIN,
        yes = true,
        half = 1.5,
        whole = f64::MAX,
    );
    let long = "\u{e9}".repeat(200);
    events::said!(text = "hello", bytes = b"\x00\xff");
    events::said(&long, &[7; 2000]);
    events::said!(text = "", bytes = &[]);
    events::tick!();
    events::TELEMETRY.note("found", b"a reason");
    events::TELEMETRY.note("bits", &[0, 255]);
}

#[test]
fn every_type_comes_back() {
    let scene = Scene::new("programs::child");
    scene.run("types", &[("METATF_TELEMETRY_CONTROL", "all")]);
    let records = records(&scene.trace());
    let Events::Types(types) = &records[0] else { panic!("{records:?}") };
    assert_eq!((types.a, types.b, types.c, types.d), (255, 65_535, u64::from(u32::MAX), u64::MAX));
    assert_eq!((types.e, types.f, types.g, types.h), (-1, -300, i64::from(i32::MIN), i64::MIN));
    assert_eq!((types.yes, types.half, types.whole, types.id), (1, 1.5, f64::MAX, [9; 16]));
    let said: Vec<_> =
        records.iter().filter_map(|r| if let Events::Said(said) = r { Some(said) } else { None }).collect();
    assert_eq!((said[0].text.as_slice(), said[0].bytes.as_slice()), (&b"hello"[..], &[0, 255][..]));
    let cut = format!("{}\u{2026}", "\u{e9}".repeat(126));
    assert_eq!((std::str::from_utf8(&said[1].text).unwrap(), said[1].bytes.len()), (cut.as_str(), 1024));
    assert!(said[2].text.is_empty() && said[2].bytes.is_empty());
    assert!(matches!(records.last().unwrap(), Events::Tick(_) | Events::Clocks(_)), "{records:?}");
    assert!(scene.buffers().is_empty(), "they are removed at a good end");
    let mut universal = metatf::dynamic::Trace::open(scene.trace()).unwrap();
    let mut comments = Vec::new();
    universal.reader_mut().set_all(true);
    while let Some(entry) = universal.next_entry().unwrap() {
        if let metatf::reader::Event::Comment(_) = entry.event {
            let metatf::reader::Item::Bytes(text) = entry.record.get(entry.record.len() - 1).unwrap() else { panic!() };
            comments.push(String::from_utf8_lossy(text).into_owned());
        }
    }
    assert_eq!(comments, ["found: a reason", "bits: 00ff"]);
}

#[test]
fn what_is_off_costs_no_file() {
    let scene = Scene::new("programs::child");
    scene.run("off", &[]);
    assert!(!scene.trace().exists() && scene.buffers().is_empty());
    scene.run("twice", &[]);
}

#[test]
fn wrong_settings_are_errors() {
    for (name, value) in [("METATF_TELEMETRY_CONTROL", "Poool"), ("METATF_TELEMETRY_FILENAME", "/no/such/folder/x.mtf")]
    {
        let scene = Scene::new("programs::child");
        let output =
            scene.start("off", &[("METATF_TELEMETRY_CONTROL", "Pool"), (name, value)]).wait_with_output().unwrap();
        assert!(!output.status.success() && scene.buffers().is_empty());
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(value), "{errors}");
    }
}

/// Runs more threads than there are rings, both in sequence and simultaneously.
fn threads() {
    let _guard = events::TELEMETRY.start_with(Settings { threads: 4, ..settings() }).unwrap();
    for _ in 0..3 {
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(|| (0..500).for_each(|number| events::step!(number)))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

/// Number of short-lived threads. A few run at a time, as in a server with a thread per request.
const CHURN: u32 = 1000;
/// Number of events of each short-lived thread.
const SHORT: u32 = 50;

fn churn() {
    let guard = events::TELEMETRY.start_with(Settings { threads: 8, ..settings() }).unwrap();
    for first in (0..CHURN).step_by(4) {
        let emit = |thread: u32| move || (0..SHORT).for_each(|n| events::step!(number = thread * SHORT + n));
        let threads: Vec<_> = (first..first + 4).map(|thread| std::thread::spawn(emit(thread))).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }
    guard.finish().unwrap();
}

/// A ring becomes free when its thread ends, not only after the drain has processed it.
#[test]
fn short_threads_lose_nothing() {
    for policy in ["drop", "block", "overwrite"] {
        let scene = Scene::new("programs::child");
        let environment = [
            ("METATF_TELEMETRY_CONTROL", "all"),
            ("METATF_TELEMETRY_POLICY", policy),
            // With `drop`, all events fit, however slow the drain is.
            ("METATF_TELEMETRY_RING", if policy == "drop" { "1048576" } else { "65536" }),
        ];
        scene.run("churn", &environment);
        let records = records(&scene.trace());
        let mut threads = std::collections::BTreeMap::<u64, Vec<u64>>::new();
        for record in &records {
            match record {
                Events::Step(step) => threads.entry(step.thread).or_default().push(step.number),
                Events::Lost(lost) => panic!("{policy}: {lost:?}"),
                _ => {}
            }
        }
        let mut whole = std::collections::BTreeSet::new();
        for numbers in threads.values() {
            let thread = numbers[0] / u64::from(SHORT);
            assert!(numbers.iter().all(|number| number / u64::from(SHORT) == thread), "{policy}: {numbers:?}");
            if numbers.len() == SHORT as usize {
                whole.insert(thread);
            }
        }
        // The flight recorder contains only the events that fit, which are those of the newest threads.
        let expected = if policy == "overwrite" { 300 } else { CHURN };
        let newest = u64::from(CHURN - expected)..u64::from(CHURN);
        let missing: Vec<_> = newest.filter(|thread| !whole.contains(thread)).collect();
        assert!(missing.is_empty(), "{policy}: {} of {expected} are missing: {missing:?}", missing.len());
    }
}

/// Runs many simultaneous threads, each with this many events.
fn crowd(threads: usize, events_each: u32) {
    let rings = if threads == 48 { 64 } else { 2 };
    let guard = events::TELEMETRY.start_with(Settings { threads: rings, ..settings() }).unwrap();
    let emit = move || (0..events_each).for_each(|number| events::step!(number));
    let threads: Vec<_> = (0..threads).map(|_| std::thread::spawn(emit)).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    guard.finish().unwrap();
}

/// Threads that wait for the drain sleep, so that it can use the CPU. Threads also wait for a free ring.
#[test]
fn many_threads_that_block_drop_nothing() {
    for (scenario, threads, each) in [("crowd", 48, 5000), ("places", 12, 200)] {
        let scene = Scene::new("programs::child");
        let environment = [
            ("METATF_TELEMETRY_CONTROL", "all"),
            ("METATF_TELEMETRY_RING", "65536"),
            ("METATF_TELEMETRY_POLICY", "block"),
        ];
        scene.run(scenario, &environment);
        let steps = steps(&records(&scene.trace()));
        assert_eq!((steps.len(), steps.values().sum::<u64>()), (threads, threads as u64 * each), "{scenario}");
    }
}

/// Runs a flight recorder whose only ring belongs to the main thread.
fn refused() {
    let guard = events::TELEMETRY.start_with(Settings { policy: Policy::Overwrite, threads: 1, ..settings() }).unwrap();
    events::step!(number = 0);
    std::thread::spawn(|| (0..30).for_each(|number| events::step!(number))).join().unwrap();
    events::TELEMETRY.dump("dump.mtf").unwrap();
    guard.finish().unwrap();
}

#[test]
fn a_flight_recorder_tells_what_it_refused() {
    let scene = Scene::new("programs::child");
    scene.run("refused", &[("METATF_TELEMETRY_CONTROL", "all")]);
    for path in [scene.folder.path().join("dump.mtf"), scene.trace()] {
        let records = records(&path);
        let lost: Vec<_> =
            records.iter().filter_map(|r| if let Events::Lost(lost) = r { Some(lost.count) } else { None }).collect();
        assert_eq!(lost, [30], "{}", path.display());
    }
}

/// Writes arbitrary data to the buffers, like another process, while threads start and end.
fn written() {
    use std::os::unix::fs::FileExt as _;
    let guard = events::TELEMETRY.start_with(Settings { threads: 1, ..settings() }).unwrap();
    let buffers =
        std::fs::OpenOptions::new().read(true).write(true).open(events::TELEMETRY.buffers().unwrap()).unwrap();
    let length = buffers.metadata().unwrap().len();
    let ring = length - metatf_telemetry::layout::RING_HEAD_BYTES - (64 << 10);
    let mut seed = 1_u64;
    for value in [65_533, 65_528, 65_536, 1 << 40, u64::MAX, u64::MAX - 7, 1 << 63, 3, 0] {
        for at in (ring..ring + size_of::<metatf_telemetry::layout::RingHead>() as u64).step_by(8) {
            std::thread::spawn(|| (0..3).for_each(|number| events::step!(number))).join().unwrap();
            buffers.write_all_at(&u64::to_ne_bytes(value), at).unwrap();
            std::thread::spawn(|| (0..2000).for_each(|number| events::step!(number))).join().unwrap();
            assert!(!described(0).is_empty());
        }
        // Also overwrite the header, except for its strings.
        for at in (0..size_of::<metatf_telemetry::layout::Header>() as u64).step_by(8) {
            seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
            buffers.write_all_at(&u64::to_ne_bytes(value ^ (seed & 8)), at).unwrap();
        }
        // Each call either fails or writes the complete part.
        let _ = (events::TELEMETRY.flush(), events::TELEMETRY.dump("dump.mtf"));
        events::touch!(place = 1, by = events::intern(&value.to_string()));
    }
    drop(guard);
}

#[test]
fn what_others_write_into_buffers_harms_nobody() {
    for policy in ["drop", "overwrite"] {
        let scene = Scene::new("programs::child");
        let environment = [
            ("METATF_TELEMETRY_CONTROL", "all"),
            ("METATF_TELEMETRY_RING", "65536"),
            ("METATF_TELEMETRY_POLICY", policy),
        ];
        scene.run("written", &environment);
    }
}

/// Truncates the buffers file.
fn cut() {
    let guard = events::TELEMETRY.start().unwrap();
    let emit = || (0..20_000).for_each(|number| events::step!(number));
    for length in [1 << 20, 4096, 0] {
        std::thread::spawn(emit).join().unwrap();
        std::fs::File::options()
            .write(true)
            .open(events::TELEMETRY.buffers().unwrap())
            .unwrap()
            .set_len(length)
            .unwrap();
        emit();
        events::touch!(place = 1, by = events::intern(&length.to_string()));
        let _ = events::TELEMETRY.flush();
    }
    drop(guard);
    println!("it goes on");
}

#[test]
fn buffers_that_are_cut_end_no_program() {
    for policy in ["drop", "overwrite"] {
        let scene = Scene::new("programs::child");
        scene.run("cut", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_POLICY", policy)]);
    }
}

#[test]
fn rings_are_used_again() {
    let scene = Scene::new("programs::child");
    scene.run("threads", &[("METATF_TELEMETRY_CONTROL", "Object"), ("METATF_TELEMETRY_RING", "65536")]);
    let threads = steps(&records(&scene.trace()));
    assert_eq!(threads.len(), 12);
    assert!(threads.values().all(|steps| *steps == 500), "{threads:?}");
}

#[test]
fn dropped_events_are_counted_where_they_were() {
    let scene = Scene::new("programs::child");
    let errors = scene.run("drops", &[("METATF_TELEMETRY_CONTROL", "0x1"), ("METATF_TELEMETRY_RING", "65536")]);
    let mut records = records(&scene.trace());
    records.retain(|record| !matches!(record, Events::Clocks(_)));
    let kept = records.iter().take_while(|record| matches!(record, Events::Step(_))).count();
    let Events::Lost(lost) = &records[kept] else { panic!("{:?}", records[kept]) };
    assert_eq!(kept as u64 + lost.count, 10_000);
    // A single line at the end reports the dropped events, unless the program suppresses it.
    let line = format!("telemetry: {} events were dropped", lost.count);
    assert_eq!(errors.lines().filter(|of| of.starts_with(&line)).count(), 1, "{errors}");
    let quiet = [("METATF_TELEMETRY_CONTROL", "0x1"), ("METATF_TELEMETRY_RING", "65536"), ("METATF_TEST_QUIET", "1")];
    assert!(!scene.run("drops", &quiet).contains("dropped"));
    assert!(matches!(&records[kept + 1], Events::Step(step) if step.number == 77_777));
    assert!(kept > 2000);
}

#[test]
fn a_thread_that_blocks_drops_nothing() {
    let scene = Scene::new("programs::child");
    let environment =
        [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536"), ("METATF_TELEMETRY_POLICY", "block")];
    scene.run("blocks", &environment);
    assert_eq!(steps(&records(&scene.trace())).into_values().collect::<Vec<_>>(), [100_000]);
}

#[test]
fn the_flight_recorder_has_the_last_events() {
    let scene = Scene::new("programs::child");
    scene.run("recorder", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_RING", "65536")]);
    for path in [scene.folder.path().join("dump.mtf"), scene.trace()] {
        let records = records(&path);
        let steps: Vec<_> =
            records.iter().filter_map(|r| if let Events::Step(step) = r { Some(step) } else { None }).collect();
        let numbers: Vec<_> =
            steps.iter().filter(|step| step.thread == steps[0].thread).map(|step| step.number).collect();
        assert_eq!(steps.len() - numbers.len(), 60, "those of all six threads, which three rings hold");
        let first = numbers[0];
        assert!(first > 90_000 && numbers.iter().copied().eq(first..100_000), "{first} to {:?}", numbers.last());
    }
}

/// Emits some events, and ends when the file `end` exists.
fn named() {
    let guard = events::TELEMETRY.start().unwrap();
    (0..10).for_each(|number| events::step!(number));
    events::TELEMETRY.flush().unwrap();
    println!("ready");
    while !std::path::Path::new("end").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    events::step!(number = 10);
    guard.finish().unwrap();
}

/// The environment sets the same name for all processes. The first process uses this name; the trace names of the other
/// processes contain their process IDs.
#[test]
fn processes_of_one_name_have_a_trace_each() {
    let scene = Scene::new("programs::child");
    let traces = || {
        let entries = std::fs::read_dir(scene.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|e| e == "mtf")).collect::<Vec<_>>()
    };
    let children: Vec<_> = (0..3).map(|_| scene.start("named", &[("METATF_TELEMETRY_CONTROL", "all")])).collect();
    let children = children.into_iter().map(|mut child| {
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert_ne!(output.read_line(&mut line).unwrap(), 0, "it ended");
        }
        (child, output)
    });
    let children: Vec<_> = children.collect();
    // While the processes run, each buffers file refers to the right trace.
    for buffers in scene.buffers() {
        let sink: Box<dyn metatf::container::Sink + Send> = Box::new(metatf::container::Forward(std::io::sink()));
        let (found, _) = postmortem::Buffers::open(&buffers).unwrap().recover(sink).unwrap();
        // Ten steps, and possibly a record that relates the clocks.
        assert!((10..=11).contains(&(found.in_trace + found.in_buffers)) && found.warnings.is_empty(), "{found:?}");
        assert!(found.lost.is_empty(), "{found:?}");
    }
    std::fs::write(scene.folder.path().join("end"), "").unwrap();
    for (mut child, mut output) in children {
        output.read_to_string(&mut String::new()).unwrap();
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(traces().len(), 3);
    for trace in traces() {
        assert_eq!(steps(&records(&trace)).into_values().collect::<Vec<_>>(), [11], "{}", trace.display());
    }
}

#[test]
fn a_file_of_another_kind_stays() {
    let scene = Scene::new("programs::child");
    for name in ["notes.txt", "x"] {
        let path = scene.folder.path().join(name);
        std::fs::write(&path, name).unwrap();
        let variables = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_FILENAME", path.to_str().unwrap())];
        let output = scene.start("start", &variables).wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains("the file exists and is not a trace") && text.contains(name), "{text}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), name);
    }
    // An existing trace or an empty file is replaced.
    std::fs::write(scene.trace(), "").unwrap();
    for _ in 0..2 {
        scene.run("start", &[("METATF_TELEMETRY_CONTROL", "all")]);
        assert_eq!(steps(&records(&scene.trace())).len(), 1);
    }
}

#[test]
fn buffers_of_dead_processes_are_swept() {
    let scene = Scene::new("programs::child");
    let living = scene.start("named", &[("METATF_TELEMETRY_CONTROL", "all")]);
    while scene.buffers().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let live = scene.buffers().remove(0);
    // Files that are not buffers with this layout are kept, regardless of their names.
    let other = scene.folder.path().join("metatf.1.1");
    std::fs::write(&other, "MTFTELE1 of something else").unwrap();
    for _ in 0..9 {
        scene.run("killed", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_THREADS", "1")]);
    }
    // Each sweep keeps four files, and the last process created its file after its sweep.
    assert_eq!(scene.buffers().len(), 5 + 2);
    assert!(live.exists() && other.exists());
    std::fs::write(scene.folder.path().join("end"), "").unwrap();
    assert!(living.wait_with_output().unwrap().status.success());
}

/// Limits the size of this process's files to 4 MiB.
fn limited() {
    let limit = libc::rlimit { rlim_cur: 4 << 20, rlim_max: 4 << 20 };
    // SAFETY: sets a limit of this process.
    unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) };
    let error = events::TELEMETRY.start().unwrap_err().to_string();
    assert!(error.contains("metatf.") && error.contains("METATF_TELEMETRY_THREADS"), "{error}");
    let settings = Settings { place: metatf_telemetry::Place::Core, policy: Policy::Block, ..settings() };
    let guard = events::TELEMETRY.start_with(settings).unwrap();
    let mut seed = 1_u64;
    for _ in 0..12_000 {
        let bytes: [u8; 1000] = std::array::from_fn(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        });
        events::said("random", &bytes);
    }
    let _ = events::TELEMETRY.flush();
    let error = guard.finish().unwrap_err().to_string();
    assert!(error.contains("events.mtf"), "{error}");
}

#[test]
fn a_limit_of_files_is_an_error() {
    let scene = Scene::new("programs::child");
    // The drain stops writing, so a thread that waits for it gives up.
    scene.run("limited", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_PATIENCE", "1")]);
}

#[test]
fn a_full_disk_is_named() {
    let scene = Scene::new("programs::child");
    let variables = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_FILENAME", "/dev/full")];
    let output = scene.start("start", &variables).wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("/dev/full: "), "{text}");
}

/// A user who starts a program with the privileges of another user cannot choose any of the program's files.
#[test]
fn a_set_user_id_program_ignores_the_environment() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    // SAFETY: always succeeds.
    if unsafe { libc::geteuid() } != 0 {
        return println!("skipped: only root makes a program that other users run with its rights");
    }
    let scene = Scene::new("programs::child");
    let program = scene.folder.path().join("program");
    // A child copies it: a program that this process writes cannot be run while another test is about to run one.
    let copied = std::process::Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(scene.folder.path(), 0o777);
    for (rights, obeys) in [(0o755, true), (0o4755, false)] {
        mode(&program, rights);
        let mut command = std::process::Command::new(&program);
        command.uid(65_534);
        let output = scene.command(command, "start", &[("METATF_TELEMETRY_CONTROL", "all")]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(scene.trace().exists(), obeys, "{}", String::from_utf8_lossy(&output.stdout));
        let _ = std::fs::remove_file(scene.trace());
    }
}

/// Kinds are enabled by another process and through the API.
fn control() {
    let _guard = events::TELEMETRY.start().unwrap();
    events::step!(number = 1);
    let file = events::TELEMETRY.buffers().unwrap();
    let buffers = postmortem::Buffers::open(&file).unwrap();
    assert_eq!(buffers.kinds(), events::KINDS);
    assert!(buffers.set_kinds("Pool Nothing").is_err());
    assert_eq!(buffers.set_kinds("Object").unwrap(), 1);
    while events::TELEMETRY.control() == 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    events::step!(number = 0);
    events::tick!();
    assert_eq!(buffers.set_kinds("+Pool").unwrap(), 3);
    while events::TELEMETRY.control() != 3 {
        std::thread::sleep(Duration::from_millis(1));
    }
    events::TELEMETRY.set_kinds("-Pool").unwrap();
    let shown = postmortem::Buffers::open(&file).unwrap().control();
    assert_eq!((events::TELEMETRY.control(), shown), (1, 1));
    assert_eq!(buffers.set_kinds("+Pool -Object").unwrap(), 2);
    while events::TELEMETRY.control() != 2 {
        std::thread::sleep(Duration::from_millis(1));
    }
    events::TELEMETRY.set_kinds("arena").unwrap();
    events::step!(number = 1);
    events::tick!();
    metatf_telemetry::set_all("none");
    events::tick!();
}

#[test]
fn kinds_are_switched_while_a_program_runs() {
    let scene = Scene::new("programs::child");
    scene.run("control", &[]);
    let records = records(&scene.trace());
    let steps = records.iter().filter(|record| matches!(record, Events::Step(_))).count();
    let ticks = records.iter().filter(|record| matches!(record, Events::Tick(_))).count();
    assert_eq!((steps, ticks), (1, 1), "{records:?}");
}

/// The first event of the child starts a separate trace. A child without events leaves no files.
fn fork() {
    let _guard = events::TELEMETRY.start().unwrap();
    events::step!(number = 0);
    for emits in [true, false] {
        // SAFETY: the child only emits and exits.
        let process = unsafe { libc::fork() };
        if process == 0 {
            if emits {
                (0..3000).for_each(|number| events::step!(number));
            }
            std::process::exit(0);
        }
        let mut status = 0;
        // SAFETY: the status is a valid pointer.
        unsafe { libc::waitpid(process, &raw mut status, 0) };
        assert_eq!(status, 0);
    }
    events::step!(number = 1);
}

#[test]
fn a_forked_child_begins_its_own_trace() {
    let scene = Scene::new("programs::child");
    scene.run("fork", &[("METATF_TELEMETRY_CONTROL", "all")]);
    assert_eq!(steps(&records(&scene.trace())).into_values().collect::<Vec<_>>(), [2]);
    let traces = std::fs::read_dir(scene.folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let others: Vec<_> = traces.filter(|path| *path != scene.trace()).collect();
    assert_eq!(others.len(), 1, "{others:?}");
    assert_eq!(steps(&records(&others[0])).into_values().collect::<Vec<_>>(), [3000]);
}

#[test]
fn a_panic_and_an_exit_flush() {
    for (scenario, memory) in [("panic", "shared"), ("exit", "shared"), ("exit", "core")] {
        let scene = Scene::new("programs::child");
        scene.run(scenario, &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_MEMORY", memory)]);
        assert_eq!(scene.buffers().len(), usize::from(scenario == "panic"), "what ends by itself leaves none");
        let found = crate::common::events::Trace::open(scene.trace()).unwrap().next_owned().unwrap();
        assert!(found.is_some(), "{scenario}");
    }
}

/// A panic prints the last events of its thread, newest first, after the program's own message.
#[test]
fn a_panic_shows_the_last_events() {
    for policy in ["block", "overwrite"] {
        let scene = Scene::new("programs::child");
        let environment = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_POLICY", policy)];
        let command = std::process::Command::new(std::env::current_exe().unwrap());
        let output = scene.command(command, "backtrace", &environment).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let (before, behind) = errors.split_once("last events of this thread, newest first:\n").unwrap();
        assert!(before.contains("on purpose"), "{errors}");
        let lines: Vec<_> = behind.lines().take(4).collect();
        assert!(lines[0].starts_with("  said (Arena) time=0.") && lines[0].ends_with(" bytes="), "{errors}");
        assert!(!errors.contains('\x1b'), "{errors}");
        assert!(lines[1].ends_with(" number=4999") && lines[2].ends_with(" number=4998"), "{errors}");
        assert!(!lines[3].contains("number="), "{errors}");
        assert_eq!(errors.matches("last events").count(), 1, "{errors}");
    }
}

/// Interns strings before the start, in several threads, and in a child.
fn strings() {
    let early = events::intern("early");
    assert_eq!(early.number(), 1);
    let guard = events::TELEMETRY.start().unwrap();
    let name = |n: usize| format!("thread string {n}");
    let threads: Vec<_> = (0..4)
        .map(|_| {
            std::thread::spawn(move || {
                for n in (0..100).chain(0..100) {
                    events::touch!(place = n as u64, by = events::intern(&name(n)));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    events::label(7, events::intern("seven"));
    for _ in 0..3000 {
        events::touch(7, early);
    }
    events::TELEMETRY.dump("dump.mtf").unwrap();
    // SAFETY: the child only emits and exits.
    let process = unsafe { libc::fork() };
    if process == 0 {
        events::touch(7, early);
        events::touch(8, events::intern("of the child"));
        // SAFETY: ends the process and leaves its buffers.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: the status is a valid pointer.
    unsafe { libc::waitpid(process, &raw mut status, 0) };
    events::intern(&"long ".repeat(100));
    guard.finish().unwrap();
}

/// Returns the strings of a trace by their IDs, and the number of events. Each string must occur exactly once, before
/// the events that refer to it.
fn strings_of(records: &[Events]) -> (std::collections::BTreeMap<u64, String>, usize) {
    let mut strings = std::collections::BTreeMap::new();
    let mut named = 0;
    for record in records {
        match record {
            Events::Intern(record) => {
                let text = String::from_utf8(record.text.to_vec()).unwrap();
                assert_eq!(strings.insert(record.id, text), None, "{record:?}");
            }
            Events::Touch(record) => {
                let known = strings.get(&record.by).unwrap_or_else(|| panic!("{record:?}"));
                named += 1;
                if let Some(n) = known.strip_prefix("thread string ") {
                    assert_eq!(n.parse(), Ok(record.place));
                }
            }
            Events::Label(record) => assert_eq!(strings[&record.name], "seven"),
            _ => {}
        }
    }
    (strings, named)
}

#[test]
fn strings_have_one_number_and_one_record() {
    for policy in ["block", "overwrite"] {
        let scene = Scene::new("programs::child");
        let environment = [
            ("METATF_TELEMETRY_CONTROL", "Arena"),
            ("METATF_TELEMETRY_POLICY", policy),
            ("METATF_TELEMETRY_RING", "65536"),
        ];
        scene.run("strings", &environment);
        let (strings, named) = strings_of(&records(&scene.trace()));
        let all = strings.values().filter(|text| text.starts_with("thread string ")).count();
        assert_eq!((strings.len(), all, strings[&1].as_str()), (103, 100, "early"), "{policy}");
        assert_eq!(strings[&103], format!("{}lo\u{2026}", "long ".repeat(50)));
        assert!(if policy == "block" { named == 3800 } else { (2000..3800).contains(&named) }, "{policy}: {named}");
        // The dump also contains the strings of an overwritten ring.
        let (dumped, _) = strings_of(&records(&scene.folder.path().join("dump.mtf")));
        assert_eq!(dumped.len(), 102);
        // The child's buffers contain the strings of its parent.
        let mut left = scene.buffers();
        assert_eq!(left.len(), 1, "those of the child");
        let sink: Box<dyn metatf::container::Sink + Send> = Box::new(
            std::fs::File::create(scene.folder.path().join("child.mtf")).map(metatf::container::Forward).unwrap(),
        );
        let buffers = postmortem::Buffers::open(&left.remove(0)).unwrap();
        let (found, mut sink) = buffers.recover(sink).unwrap();
        std::io::Write::flush(&mut sink).unwrap();
        assert!(!found.lost.iter().any(|lost| lost.contains("strings")), "{found:?}");
        let (strings, named) = strings_of(&records(&scene.folder.path().join("child.mtf")));
        assert_eq!((strings.len(), named, strings[&103].as_str()), (103, 2, "of the child"));
    }
}

/// A sink that accepts no data until the test allows it.
struct Gate(std::fs::File, &'static AtomicU32);

impl std::io::Write for Gate {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        while self.1.load(Ordering::Relaxed) == 0 && self.0.metadata()?.len() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::io::Write::write(&mut self.0, bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// More events than the queue of a sink can hold.
const MANY: u32 = 40_000;
/// The last event after the slow sink was opened.
const MORE: u32 = MANY + 200;

fn said(number: u32) {
    let mut bytes = [0; 1000];
    bytes[..4].copy_from_slice(&number.to_ne_bytes());
    events::said("said", &bytes);
}

fn slow_sink() {
    static OPEN: AtomicU32 = AtomicU32::new(0);
    static NEVER: AtomicU32 = AtomicU32::new(0);
    let gate =
        |name: &str, open| Box::new(metatf::container::Forward(Gate(std::fs::File::create(name).unwrap(), open)));
    let sinks: Vec<(Policy, Box<dyn metatf::container::Sink + Send>)> = vec![
        (Policy::Drop, gate("slow.mtf", &OPEN)),
        (Policy::Drop, gate("never.mtf", &NEVER)),
        (Policy::Overwrite, Box::new(std::io::BufWriter::new(std::fs::File::create("last.mtf").unwrap()))),
    ];
    let guard = events::TELEMETRY.start_with_sinks(settings(), sinks).unwrap();
    (0..MANY).for_each(said);
    // The dump includes events that were already written to the trace.
    assert!(events::TELEMETRY.dump("dump.mtf").unwrap() > 50);
    events::TELEMETRY.flush().unwrap();
    let len = || std::fs::metadata("slow.mtf").unwrap().len();
    let before = len();
    OPEN.store(1, Ordering::Relaxed);
    // On a busy machine, it takes a while until the sink goes on.
    let begun = std::time::Instant::now();
    while len() == before && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // The sink goes on as soon as it has written a part of what waited for it.
    for number in MANY..=MORE {
        said(number);
        std::thread::sleep(Duration::from_millis(10));
    }
    guard.finish().unwrap();
}

/// Returns the numbers in the records, and the number of dropped events. Each number must exceed the previous one by
/// one plus the number of events dropped in between.
fn numbers(records: &[Events]) -> (Vec<u32>, u64) {
    let (mut numbers, mut dropped) = (Vec::new(), 0);
    for record in records {
        match record {
            Events::Said(said) => {
                numbers.push(u32::from_ne_bytes(said.bytes[..4].try_into().unwrap()));
            }
            Events::Lost(lost) => dropped += lost.count,
            _ => {}
        }
        let next = numbers.last().map_or(0, |last| u64::from(last - numbers[0]) + 1);
        assert!(numbers.len() as u64 + dropped >= next, "{} and {dropped} before {next}", numbers.len());
    }
    (numbers, dropped)
}

#[test]
fn a_slow_sink_holds_no_other_back() {
    let scene = Scene::new("programs::child");
    let environment = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_POLICY", "block")];
    let errors = scene.run("slow sink", &environment);
    let read = |name: &str| numbers(&records(&scene.folder.path().join(name)));
    assert_eq!(read("events.mtf"), ((0..=MORE).collect(), 0));
    let (slow, dropped) = read("slow.mtf");
    assert!(dropped > 1000 && slow.len() > 1000, "{} and {dropped}", slow.len());
    assert_eq!(slow.len() as u64 + dropped, u64::from(MORE) + 1);
    assert!(slow.last() >= Some(&MANY), "it goes on: {:?}", slow.last());
    assert!(errors.contains("sink 2 accepts no more events"), "{errors}");
    for (name, last) in [("dump.mtf", MANY - 1), ("last.mtf", MORE)] {
        let (numbers, _) = read(name);
        let first = numbers[0];
        assert!(
            numbers.len() > 500 && numbers.iter().copied().eq(first..=last),
            "{name}: {first} to {:?}",
            numbers.last()
        );
    }
}

fn sinks() {
    let guard = events::TELEMETRY.start().unwrap();
    for number in 0..20_000 {
        events::step!(number);
        events::touch!(place = u64::from(number % 10), by = events::intern(&format!("thread string {}", number % 10)));
    }
    guard.finish().unwrap();
}

/// Accepts a connection and writes all its data to a file.
fn to_file<R: std::io::Read>(
    accept: impl FnOnce() -> std::io::Result<R> + Send + 'static,
    path: std::path::PathBuf,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        std::io::copy(&mut accept().unwrap(), &mut std::fs::File::create(path).unwrap()).unwrap();
    })
}

#[test]
fn sinks_of_the_environment_get_the_same_events() {
    let scene = Scene::new("programs::child");
    let path = |name: &str| scene.folder.path().join(name);
    let (tcp, gone) =
        (std::net::TcpListener::bind("127.0.0.1:0").unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let unix = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let sinks = format!(
        "block tcp://{}; block unix://{};drop tcp://{}; block %n.copy.mtf; overwrite {}",
        tcp.local_addr().unwrap(),
        path("socket").display(),
        gone.local_addr().unwrap(),
        path("last.mtf").display()
    );
    let environment = [
        ("METATF_TELEMETRY_CONTROL", "Object Arena"),
        ("METATF_TELEMETRY_POLICY", "overwrite"),
        ("METATF_TELEMETRY_RING", "65536"),
        ("METATF_TELEMETRY_SINKS", sinks.as_str()),
    ];
    let child = scene.start("sinks", &environment);
    let place = gone.local_addr().unwrap();
    std::thread::spawn(move || drop(gone.accept()));
    let readers = [
        to_file(move || Ok(tcp.accept()?.0), path("tcp.mtf")),
        to_file(move || Ok(unix.accept()?.0), path("unix.mtf")),
    ];
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    readers.into_iter().for_each(|reader| reader.join().unwrap());
    assert!(
        errors.contains(&format!("; tcp://{place} receives no more events"))
            && errors.contains("the other sinks continue"),
        "{errors}"
    );
    for name in ["tcp.mtf", "unix.mtf", "events.copy.mtf"] {
        let records = records(&path(name));
        assert_eq!(steps(&records).into_values().collect::<Vec<_>>(), [20_000], "{name}");
        let (strings, named) = strings_of(&records);
        assert_eq!((strings.len(), named), (10, 20_000), "{name}");
        assert!(records.iter().any(|record| matches!(record, Events::Clocks(_))));
    }
    // The trace and the sink of the flight recorder contain only the last events.
    let of = |name: &str| {
        let records = records(&path(name));
        let numbers: Vec<u64> =
            records.iter().filter_map(|r| if let Events::Step(step) = r { Some(step.number) } else { None }).collect();
        assert!(numbers.len() > 100 && numbers.iter().copied().eq(numbers[0]..20_000), "{name}: {:?}", numbers.first());
        numbers.len()
    };
    assert_eq!(of("last.mtf"), of("events.mtf"));
    assert!(scene.buffers().is_empty());
}

#[test]
fn a_sink_that_is_not_there_is_an_error() {
    for sink in [
        "drop tcp://127.0.0.1:1",
        "drop unix:///no/such/socket",
        "block /no/such/folder/x.mtf",
        "tcp://a:1",
        "drop udp://a:1",
    ] {
        let scene = Scene::new("programs::child");
        let environment = [("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_SINKS", sink)];
        let output = scene.start("off", &environment).wait_with_output().unwrap();
        assert!(!output.status.success() && scene.buffers().is_empty(), "{sink}");
        let (errors, place) = (String::from_utf8_lossy(&output.stderr), sink.rsplit(' ').next().unwrap());
        assert!(errors.contains(place), "{errors}");
    }
}

/// Returns the text of the event that this thread emitted `back` events ago.
fn described(back: u32) -> String {
    let event = metatf_telemetry::metatf_last(back);
    // SAFETY: no other thread does this, and the text is copied.
    unsafe { std::ffi::CStr::from_ptr(metatf_telemetry::metatf_describe(event)) }.to_str().unwrap().to_owned()
}

fn of_tag(tag: usize) -> String {
    // SAFETY: as above.
    unsafe { std::ffi::CStr::from_ptr(metatf_telemetry::metatf_describe(tag)) }.to_str().unwrap().to_owned()
}

fn describe() {
    assert_eq!((of_tag(4), described(0)), ("no telemetry was started".to_owned(), "no event".to_owned()));
    let _guard = events::TELEMETRY.start().unwrap();
    assert_eq!(described(0), "no event");
    for number in 0..5000 {
        events::step!(number);
    }
    let id: [u8; 16] = std::array::from_fn(|i| u8::try_from(i).unwrap());
    events::types(255, 1, 0x1_0000, u64::MAX, -1, -2, -3, i64::MIN, true, 0.5, -0.25, &id);
    events::said("caf\u{e9} \"x\"\n", &[0, 255]);
    events::said(&"y".repeat(300), &[1; 2000]);
    events::TELEMETRY.note("found", b"a reason");
    events::tick();
    let process = std::process::id();
    assert_eq!(described(0), format!("tick (Arena) process={process}"));
    assert_eq!(described(1), "note \"found\"");
    let long = described(2);
    assert!(long.contains("yyy\"\u{2026} bytes=0101") && long.len() == 2047, "{long}");
    assert!(described(3).ends_with("s text=\"caf\u{e9} \\\"x\\\"\\x0a\" bytes=00ff"), "{}", described(3));
    let types = "a=255 b=1 c=0x10000 d=0xffffffffffffffff e=-1 f=-2 g=-3 h=-9223372036854775808 yes=true half=0.5 \
                 whole=-0.25 always=7 id=000102030405060708090a0b0c0d0e0f";
    assert!(described(4).starts_with("types (Pool) time=0.") && described(4).ends_with(types), "{}", described(4));
    // With blocks of 4,096 bytes, all events in the ring can be found.
    let oldest = (0..).find(|back| described(*back) == "no event").unwrap();
    assert!((1500..2800).contains(&oldest), "{oldest}");
    for back in 5..oldest {
        let (text, number) = (described(back), 5000 - (back - 4));
        assert!(text.starts_with("step (Object) time=0.") && text.ends_with(&format!(" number={number}")), "{text}");
    }
    // Addresses that are not events are not described as events.
    let last = metatf_telemetry::metatf_last(0);
    for wrong in [last + 8, last + 1, last - 8 + (1 << 20), usize::MAX, 0x10000] {
        assert_eq!(of_tag(wrong), "there is no event at this address");
    }
    assert_eq!(of_tag(6), "said (Arena), tag 6: time length text size bytes");
    assert_eq!(of_tag(99), "no event has the tag 99");
}

#[test]
fn events_are_described() {
    let scene = Scene::new("programs::child");
    scene.run(
        "describe",
        &[
            ("METATF_TELEMETRY_CONTROL", "all"),
            ("METATF_TELEMETRY_RING", "65536"),
            ("METATF_TELEMETRY_POLICY", "overwrite"),
            ("METATF_TELEMETRY_MEMORY", "core"),
        ],
    );
}

/// Stops like a program in a debugger.
fn stopped() {
    let _guard = events::TELEMETRY.start().unwrap();
    events::step!(number = 7);
    events::said!(text = "the end is near", bytes = &[]);
    std::process::abort();
}

#[test]
fn a_debugger_shows_events() {
    let scene = Scene::new("programs::child");
    let mut gdb = std::process::Command::new("gdb");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off", "-iex", "set auto-load no", "-ex", "run"]);
    for back in 0..3 {
        gdb.args(["-ex", &format!("printf \"%s\\n\", (char *)metatf_describe((long)metatf_last({back}))")]);
    }
    gdb.args(["-ex", "kill", "--args"]).arg(std::env::current_exe().unwrap());
    let output = scene.command(gdb, "stopped", &[("METATF_TELEMETRY_CONTROL", "all")]).output();
    let Ok(output) = output else { return println!("skipped: there is no gdb on this machine") };
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // A gdb that is older than the CPU cannot read or write its registers.
    let is_old = errors.contains("extended state status: Bad address");
    if is_old || !text.contains("SIGABRT") {
        assert!(is_old || errors.contains("ptrace") || errors.contains("Could not trace"), "{text}{errors}");
        return println!("skipped: gdb may not look at processes here: {errors}");
    }
    assert!(text.contains("s text=\"the end is near\" bytes=\n"), "{text}{errors}");
    assert!(text.contains("step (Object) time=0.") && text.contains(" number=7\nno event\n"), "{text}{errors}");
}

static HANDLED: AtomicU32 = AtomicU32::new(0);

extern "C" fn on_signal(_: libc::c_int) {
    let number = HANDLED.fetch_add(1, Ordering::Relaxed);
    events::said("signal", &number.to_ne_bytes());
}

/// Signals interrupt this thread between any two instructions, and their handler emits events as well.
///
/// The signals are delivered only to this thread, so a signal pending when the timer stops is handled before the call
/// returns.
fn signals() {
    let guard = events::TELEMETRY.start().unwrap();
    let mut timer: libc::timer_t = std::ptr::null_mut();
    let set = |timer: libc::timer_t, nanoseconds| {
        let every = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
        let times = libc::itimerspec { it_interval: every, it_value: every };
        // SAFETY: the timer was created below.
        assert_eq!(unsafe { libc::timer_settime(timer, 0, &times, std::ptr::null_mut()) }, 0);
    };
    // SAFETY: the handler only emits.
    unsafe {
        libc::signal(libc::SIGALRM, on_signal as *const () as libc::sighandler_t);
        let mut event: libc::sigevent = std::mem::zeroed();
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = libc::SIGALRM;
        event.sigev_notify_thread_id = libc::gettid();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
    }
    set(timer, 50_000);
    let mut number = 0;
    while HANDLED.load(Ordering::Relaxed) < 2000 {
        events::step!(number);
        number += 1;
    }
    set(timer, 0);
    let handled = HANDLED.load(Ordering::Relaxed);
    guard.finish().unwrap();
    std::fs::write("counts", format!("{number} {handled}")).unwrap();
}

#[test]
fn events_of_signal_handlers_are_whole_or_counted() {
    let scene = Scene::new("programs::child");
    scene.run("signals", &[("METATF_TELEMETRY_CONTROL", "all"), ("METATF_TELEMETRY_POLICY", "block")]);
    let counts = std::fs::read_to_string(scene.folder.path().join("counts")).unwrap();
    let (stepped, handled) = counts.split_once(' ').unwrap();
    let records = records(&scene.trace());
    let stepped: u64 = stepped.parse().unwrap();
    let said = records.iter().filter(|record| matches!(record, Events::Said(_))).count() as u64;
    let lost: u64 = records.iter().map(|record| if let Events::Lost(lost) = record { lost.count } else { 0 }).sum();
    // Only events of the handler may be lost, if it interrupts another event.
    assert_eq!(steps(&records).into_values().sum::<u64>(), stepped);
    assert_eq!(said + lost, handled.parse::<u64>().unwrap());
    assert!(said > 0);
}

#[test]
fn a_sink_of_the_program_gets_the_trace() {
    let scene = Scene::new("programs::child");
    scene.run("sink", &[("METATF_TELEMETRY_CONTROL", "all")]);
    assert_eq!(steps(&records(&scene.folder.path().join("sink.mtf"))).len(), 1);
    assert!(!scene.trace().exists());
}

#[test]
fn names_of_records_get_in_nobodys_way() {
    let scene = Scene::new("programs::child");
    scene.run("names", &[("METATF_TELEMETRY_CONTROL", "all")]);
    let mut trace = metatf::dynamic::Trace::open(scene.trace()).unwrap();
    let mut json = Vec::new();
    while trace.next_json(&mut json, metatf::dynamic::JsonOptions::default()).unwrap() {}
    let json = String::from_utf8(json).unwrap();
    let lines: Vec<_> = json.lines().map(|line| line.split_once("\"@record\":").unwrap().1).collect();
    let expected = [
        "\"move\",\"type\":2,\"slot\":1,\"event\":3}",
        "\"emit_move\",\"n\":4}",
        "\"line\",\"vfield\":\"text\",\"TELEMETRY\":5}",
        "\"arguments\",\"self\":6}",
        "\"macro_move\",\"n\":7}",
        "\"Telemetry\",\"n\":8}",
    ];
    assert_eq!(lines, expected);
}
