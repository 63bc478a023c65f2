//! Heaps of running processes, compared with what the programs planted and with recordings of the same runs.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use crate::common::{compiled, compiled_from, hatf};
use hatf_trace::event::Call;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, Run, skip};

/// Usable sizes of blocks by address.
type Blocks = BTreeMap<u64, u64>;

/// A running program that has printed `ready` and its process ID.
struct Running {
    child: Child,
    answers: BufReader<ChildStdout>,
    process: u32,
}

impl Running {
    /// Starts a program. Returns `None` if it does not exist.
    fn start(program: &mut Command) -> Option<Self> {
        let program = program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = program.spawn().ok()?;
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut running = Self { child, answers, process: 0 };
        let answer = running.answer();
        running.process = answer.trim().strip_prefix("ready ")?.parse().ok()?;
        // The program next waits in a system call.
        std::thread::sleep(Duration::from_millis(200));
        Some(running)
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        line
    }

    /// Sends a command to a planted program. Returns the number that it prints.
    fn performs(&mut self, command: &str) -> i64 {
        writeln!(self.child.stdin.as_mut().unwrap(), "{command}").unwrap();
        let answer = self.answer();
        answer.trim().parse().map_err(|_| answer).unwrap()
    }

    fn id(&self) -> String {
        self.process.to_string()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.process == 0 || self.process == self.child.id() {
            let _ = self.child.kill();
        } else {
            // SAFETY: the process is a child of `hatf record`, which waits for it.
            unsafe { libc::kill(self.process.cast_signed(), libc::SIGKILL) };
        }
        let _ = self.child.wait();
    }
}

/// Parameters of `planted.c`.
#[derive(Clone, Copy)]
struct Plan {
    threads: u32,
    blocks: u32,
    keep_one_in: u32,
    large: u32,
}

const FEW: Plan = Plan { threads: 1, blocks: 30_000, keep_one_in: 50, large: 16 };

fn planted(folder: &Folder, plan: Plan, flags: &[&str]) -> Option<Command> {
    let mut command = Command::new(compiled(folder, "planted", flags)?);
    let Plan { threads, blocks, keep_one_in, large } = plan;
    command.arg(folder.join("planted.txt"));
    command.args([threads, blocks, keep_one_in, large].map(|number| number.to_string()));
    Some(command)
}

/// Inspects a process. Returns the report.
fn inspected(process: &str) -> serde_json::Value {
    let run = hatf(["inspect", process, "--format", "json"]).exits(0);
    serde_json::from_str(&run.text()).unwrap()
}

/// Returns the live blocks of a process, and the report.
fn snapshot(folder: &Folder, process: &str) -> (Blocks, serde_json::Value) {
    let path = folder.path("snapshot.mtf");
    let run = hatf(["inspect", process, "--format", "json", "-o", &path]).exits(0);
    let report: serde_json::Value = serde_json::from_str(&run.text()).unwrap();
    let blocks = live(Path::new(&path));
    assert_eq!(report["live"][0], blocks.len());
    (blocks, report)
}

/// Returns the blocks that are live at the end of a trace.
fn live(trace: &Path) -> Blocks {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut live = Blocks::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let call = match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => call,
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => {
                live.remove(&address);
                continue;
            }
            // The process executed another program.
            EventKind::Image { .. } => {
                live.clear();
                continue;
            }
            _ => continue,
        };
        let Call { old, address, usable, .. } = call;
        if call.old_is_gone() {
            live.remove(&old);
        }
        if address != 0 {
            live.insert(address, usable);
        }
    }
    live
}

/// Returns the blocks that a planted program has written to its file.
fn written(folder: &Folder) -> Blocks {
    let numbers = |line: &str| line.split_once(' ').map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap();
    folder.text("planted.txt").lines().map(numbers).collect()
}

/// Each planted block is found with its usable size. The C library itself has a few blocks more.
#[test]
fn planted_blocks_are_found() {
    let several = Plan { threads: 8, blocks: 4000, keep_one_in: 3, large: 9 };
    let most_freed = Plan { keep_one_in: 200, ..several };
    let many = Plan { threads: 32, blocks: 1000, ..several };
    let no_limit = None;
    let cases = [
        (FEW, &[][..], no_limit),
        (several, &[], no_limit),
        (most_freed, &[], no_limit),
        (several, &["-static"], no_limit),
        (many, &[], no_limit),
        (many, &[], Some("1")),
    ];
    for (plan, flags, most_arenas) in cases {
        let folder = Folder::new();
        if flags == ["-static"] && !Path::new("/usr/lib/x86_64-linux-gnu/libc.a").exists() {
            skip("there is no static C library");
            continue;
        }
        let Some(mut program) = planted(&folder, plan, flags) else { return };
        if let Some(most) = most_arenas {
            program.env("MALLOC_ARENA_MAX", most);
        }
        let running = Running::start(&mut program).unwrap();
        let (found, report) = snapshot(&folder, &running.id());
        let planted = written(&folder);
        assert!(planted.len() > 100);
        let missing: Vec<_> = planted.iter().filter(|(at, usable)| found.get(at) != Some(usable)).collect();
        assert!(missing.is_empty(), "{} of {}: {:x?}", missing.len(), planted.len(), missing.first());
        let more: Vec<_> = found.iter().filter(|(at, _)| !planted.contains_key(at)).collect();
        assert!(more.len() <= 8 + 2 * plan.threads as usize, "{more:x?}");
        assert_eq!(report["threads"], plan.threads);
        match most_arenas {
            None => assert!(report["arenas"].as_u64().unwrap() >= u64::from(plan.threads.min(3))),
            Some(_) => assert_eq!(report["arenas"], 1),
        }
    }
}

/// A forked child has the blocks of all threads of its parent, and only one thread. The caches of the other threads
/// are found, although no thread points to them.
#[test]
fn forked_children() {
    let folder = Folder::new();
    let plan = Plan { threads: 8, blocks: 4000, keep_one_in: 3, large: 9 };
    let Some(mut program) = planted(&folder, plan, &[]) else { return };
    let mut running = Running::start(&mut program).unwrap();
    let child = running.performs("f");
    let (found, report) = snapshot(&folder, &child.to_string());
    running.performs("k");
    assert_eq!(report["threads"], 1);
    let planted = written(&folder);
    let missing: Vec<_> = planted.iter().filter(|(at, usable)| found.get(at) != Some(usable)).collect();
    let more: Vec<_> = found.iter().filter(|(at, _)| !planted.contains_key(at)).collect();
    assert!(missing.is_empty() && more.len() <= 24, "{:x?} {more:x?}", missing.first());
}

/// The live blocks are exactly those of a recording that ends right afterwards.
#[test]
fn blocks_are_those_of_a_recording() {
    const PERL: &str = "$| = 1; my %h; $h{$_} = 'x' x ($_ % 300) for 1 .. 20000; delete $h{3 * $_} for 1 .. 5000;
        print \"ready $$\\n\"; sleep 600";
    const PYTHON: &str = "import os, time\na = [bytes(i % 2000) for i in range(20000)]\ndel a[::3]\n\
        print('ready', os.getpid(), flush=True)\ntime.sleep(600)";
    const NODE: &str = "const a = []; for (let i = 0; i < 20000; i++) a.push(Buffer.alloc(i % 3000));
        console.log('ready ' + process.pid); setTimeout(() => {}, 600000)";
    let folder = Folder::new();
    let plan = Plan { threads: 8, blocks: 2000, keep_one_in: 5, large: 9 };
    let of_c = planted(&folder, plan, &[]).map(|command| {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    let words = |words: [&str; 3]| Some(words.map(str::to_owned).to_vec());
    let programs = [of_c, words(["perl", "-e", PERL]), words(["python3", "-c", PYTHON]), words(["node", "-e", NODE])];
    for (number, program) in programs.into_iter().flatten().enumerate() {
        let trace = folder.path(&format!("recorded{number}.mtf"));
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        hatf.args(["record", "--usable", "--no-follow", "-o", &trace]).args(&program);
        let Some(running) = Running::start(&mut hatf) else {
            skip(&format!("{} is not on this machine", program[0]));
            continue;
        };
        let (found, _) = snapshot(&folder, &running.id());
        drop(running);
        let recorded = live(Path::new(&trace));
        let differs = |one: &Blocks, other: &Blocks| {
            let found = one.iter().filter(|(at, usable)| other.get(at) != Some(usable));
            found.map(|(at, usable)| (*at, *usable)).collect::<Vec<_>>()
        };
        let (missing, invented) = (differs(&recorded, &found), differs(&found, &recorded));
        assert!(recorded.len() > 2000, "{}: {}", program[0], recorded.len());
        assert!(missing.is_empty() && invented.is_empty(), "{}: {missing:x?} {invented:x?}", program[0]);
    }
}

/// The kinds add up to the kernel's figure, and `malloc_trim` returns as much as predicted.
#[test]
fn trimming_returns_what_was_predicted() {
    let folder = Folder::new();
    for (keep_one_in, blocks) in [(50, 60_000), (2, 60_000)] {
        let Some(mut program) = planted(&folder, Plan { keep_one_in, blocks, ..FEW }, &[]) else { return };
        let mut running = Running::start(&mut program).unwrap();
        let report = inspected(&running.id());
        let rollup = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", running.process)).unwrap();
        let kernel = rollup.lines().find_map(|line| line.strip_prefix("Rss:")?.trim().strip_suffix(" kB"));
        let kernel: u64 = 1024 * kernel.unwrap().parse::<u64>().unwrap();
        let kinds = report["account"].as_object().unwrap();
        let sum: u64 = kinds.values().map(|bytes| bytes.as_u64().unwrap()).sum();
        assert_eq!(Some(sum), report["resident"].as_u64());
        assert!(sum.abs_diff(kernel) <= kernel / 100, "{sum} {kernel}");
        let predicted = kinds["trimmable"].as_u64().unwrap().cast_signed() / 4096;
        let returned = running.performs("t");
        assert!((predicted - returned).abs() <= 32 + predicted / 100, "{predicted} {returned}");
        assert_eq!(predicted > 5000, keep_one_in == 50, "{predicted}");
        let text = hatf(["inspect", &running.id()]).exits(0).text();
        assert!(text.lines().count() <= 30, "{text}");
    }
}

/// The words of reports on a snapshot do not claim to know what happened before and after.
#[test]
fn reports_on_snapshots() {
    let folder = Folder::new();
    let Some(mut program) = planted(&folder, FEW, &[]) else { return };
    let running = Running::start(&mut program).unwrap();
    snapshot(&folder, &running.id());
    let path = folder.path("snapshot.mtf");
    for command in [&["report"][..], &["leaks"], &["fragmentation", "--at", "end"]] {
        let text = hatf([command, &[&path]].concat()).exits(0).text();
        for wrong in ["never freed", "leaked", "grew", "grows"] {
            assert!(!text.contains(wrong), "{command:?}: {text}");
        }
    }
    hatf(["report", &path]).exits(0).prints("A snapshot of a running process, with");
}

/// A contradiction is reported with its address, and the mappings are still listed.
#[test]
fn corrupt_heaps_have_no_verdict() {
    let folder = Folder::new();
    let Some(mut program) = planted(&folder, FEW, &[]) else { return };
    let mut running = Running::start(&mut program).unwrap();
    running.performs("c");
    let path = folder.path("corrupt.mtf");
    let run = hatf(["inspect", &running.id(), "-o", &path]).exits(1).says("not written");
    let text = run.text();
    assert!(text.contains("The heap does not add up at 0x") && text.contains("heap segment"), "{text}");
    assert!(!text.contains("live blocks") && !Path::new(&path).exists(), "{text}");
}

#[test]
fn processes_that_cannot_be_inspected() {
    hatf(["inspect", "4294967295"]).exits(1).says("there is no process");
    hatf(["inspect", "0"]).exits(2);
    let mut zombie = Command::new("true").spawn().unwrap();
    std::thread::sleep(Duration::from_millis(500));
    hatf(["inspect", &zombie.id().to_string()]).exits(1).says("has ended");
    zombie.wait().unwrap();
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let process = child.id();
    let traced = || hatf(["inspect", &process.to_string()]).exits(1).says("is traced by process");
    let run: Run = hatf_host::record::while_stopped(process, |_| traced()).unwrap().0;
    drop(run);
    // A process that was stopped remains stopped.
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(process.cast_signed(), libc::SIGSTOP) };
    hatf(["inspect", &process.to_string()]).exits(0);
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    assert!(status.contains("State:\tT (stopped)"), "{status}");
    child.kill().unwrap();
    child.wait().unwrap();
}

/// A program without a C library has mappings only.
#[test]
fn programs_without_glibc() {
    let folder = Folder::new();
    folder.write(
        "alone.c",
        "void _start(void) { for (;;) __asm__ volatile(\"syscall\" ::\"a\"(34L) : \"rcx\", \"r11\", \"memory\"); }",
    );
    let flags = ["-nostdlib", "-static", "-ffreestanding", "-fno-stack-protector"];
    let Some(program) = compiled_from(&folder.join("alone.c"), &folder, "alone", &flags) else { return };
    let mut child = Command::new(program).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(200));
    let run = hatf(["inspect", &child.id().to_string()]).exits(0);
    child.kill().unwrap();
    child.wait().unwrap();
    let text = run.prints("The process does not use glibc's malloc, so only the mappings are listed.").text();
    assert!(text.contains("stacks") && !text.contains("live blocks"), "{text}");
}

/// Threads that allocate all the time, an exec and an exit meanwhile, and killed inspections do no harm.
#[test]
fn inspected_processes_continue() {
    let folder = Folder::new();
    let plan = Plan { threads: 3, blocks: 2000, keep_one_in: 5, large: 3 };
    let Some(mut program) = planted(&folder, plan, &[]) else { return };
    let mut running = Running::start(&mut program).unwrap();
    running.performs("b");
    let mut succeeded = 0;
    for number in 0..10 {
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        let mut hatf = hatf.args(["inspect", &running.id()]).stdout(Stdio::null()).spawn().unwrap();
        if number % 2 == 0 {
            std::thread::sleep(Duration::from_millis(7 * number));
            hatf.kill().unwrap();
            hatf.wait().unwrap();
        } else {
            let status = hatf.wait().unwrap().code();
            assert!(matches!(status, Some(0 | 1)), "{status:?}");
            succeeded += u32::from(status == Some(0));
        }
        running.performs("n");
    }
    assert!(succeeded > 0);
    // The program execs another and is killed.
    let process = running.id();
    let inspecting = std::thread::spawn(move || {
        (0..20).map(|_| hatf(["inspect", &process])).map(|run| run.status).collect::<Vec<_>>()
    });
    std::thread::sleep(Duration::from_millis(100));
    writeln!(running.child.stdin.as_mut().unwrap(), "x").unwrap();
    std::thread::sleep(Duration::from_millis(300));
    drop(running);
    let statuses = inspecting.join().unwrap();
    assert!(statuses.iter().all(|status| matches!(status, 0 | 1)), "{statuses:?}");
}

/// Writes a core file of a running process. Returns `None` if there is no gcore.
fn gcore(folder: &Folder, process: &str) -> Option<String> {
    let Ok(output) = Command::new("gcore").args(["-o", &folder.path("core"), process]).output() else {
        skip("there is no gcore");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(folder.path(&format!("core.{process}")))
}

/// Returns the report on a core file and its snapshot.
fn snapshot_of_core(folder: &Folder, core: &str) -> (Blocks, serde_json::Value) {
    let path = folder.path("of-core.mtf");
    let run = hatf(["inspect", core, "--format", "json", "-o", &path]).exits(0);
    (live(Path::new(&path)), serde_json::from_str(&run.text()).unwrap())
}

/// A core file of a running process contains the same blocks as the process, and the words do not claim that they
/// were resident.
#[test]
fn core_files_of_running_processes() {
    let several = Plan { threads: 8, blocks: 4000, keep_one_in: 3, large: 9 };
    for (plan, kind) in [(FEW, "trimmable"), (several, "live")] {
        let folder = Folder::new();
        let Some(mut program) = planted(&folder, plan, &[]) else { return };
        let running = Running::start(&mut program).unwrap();
        let Some(core) = gcore(&folder, &running.id()) else { return };
        let (found, of_process) = snapshot(&folder, &running.id());
        let (in_core, of_core) = snapshot_of_core(&folder, &core);
        assert!(found == in_core, "{} {}", found.len(), in_core.len());
        assert_eq!(of_core["process"], running.process);
        for same in ["threads", "arenas", "live"] {
            assert_eq!(of_core[same], of_process[same], "{same}");
        }
        // The program has filled its blocks, so no page of them only contains zeros.
        let bytes = |report: &serde_json::Value| report["account"][kind].as_u64().unwrap();
        assert!(bytes(&of_process) > 1 << 20);
        assert!(bytes(&of_core).abs_diff(bytes(&of_process)) <= bytes(&of_process) / 50, "{of_core} {of_process}");
        assert_eq!((of_core.get("resident"), of_core.get("stopped_ns")), (None, None));
        let text = hatf(["inspect", &core]).exits(0).prints("in the core file").text();
        for wrong in [" resident ", "RESIDENT", "stopped for", "--pid"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
    }
}

/// A core file that the kernel wrote because of a signal contains all planted blocks.
#[test]
fn core_files_of_killed_processes() {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap_or_default();
    if pattern.trim() != "core" {
        skip("the kernel does not write core files to the current directory");
        return;
    }
    let folder = Folder::new();
    let Some(program) = planted(&folder, FEW, &[]) else { return };
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -c unlimited && exec \"$0\" \"$@\""]).arg(program.get_program()).args(program.get_args());
    let Some(mut running) = Running::start(shell.current_dir(folder.join("."))) else {
        skip("core files cannot be permitted");
        return;
    };
    // SAFETY: the child has not been waited for.
    unsafe { libc::kill(running.process.cast_signed(), libc::SIGABRT) };
    running.child.wait().unwrap();
    let core = ["core".to_owned(), format!("core.{}", running.process)].map(|name| folder.path(&name));
    let core = core.iter().find(|core| Path::new(core).exists()).unwrap();
    let (found, _) = snapshot_of_core(&folder, core);
    let planted = written(&folder);
    let missing: Vec<_> = planted.iter().filter(|(at, usable)| found.get(at) != Some(usable)).collect();
    assert!(missing.is_empty() && found.len() <= planted.len() + 10, "{} {}", missing.len(), found.len());
    // A truncated core file is no heap.
    let bytes = std::fs::read(core).unwrap();
    folder.write("short", &bytes[..bytes.len() / 2]);
    hatf(["inspect", &folder.path("short")]).exits(1).says("at offset").says("is truncated");
}

#[test]
fn files_that_are_no_core_files() {
    let folder = Folder::new();
    folder.write("text", "not a core file, but a text of some length, which is longer than the header of a core file");
    hatf(["inspect", &folder.path("text")]).exits(1).says("expected a process ID or a core file");
    hatf(["inspect", &folder.path("nothing")]).exits(1).says("No such file");
    hatf(["inspect", &folder.path(".")]).exits(1).says("expected a process ID or a core file");
    hatf(["inspect", env!("CARGO_BIN_EXE_hatf")]).exits(1).says("found a program or library");
}
