//! Processes that the recorded program creates: each has a trace with all of its events and a line in the list.
#![expect(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{compiled, hatf};
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::{Folder, PATIENCE, Run};
use serde_json::Value;

/// A recording of `programs/processes.c`.
struct Recording {
    folder: Folder,
    program: String,
}

/// Number of requests for each size.
type Calls = BTreeMap<u64, u64>;

impl Recording {
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let program = compiled(&folder, "processes", &["-O1"])?.display().to_string();
        Some(Self { folder, program })
    }

    fn record(&self, options: &[&str], arguments: &[&str]) -> Run {
        let trace = self.folder.path("trace.mtf");
        let start = ["record", "-o", &trace];
        hatf([&start, options, &["--", &self.program], arguments].concat())
    }

    fn of(&self) -> PathBuf {
        self.folder.join("trace.processes")
    }

    /// Returns the list, by number.
    fn list(&self) -> BTreeMap<u64, Value> {
        let text = fs::read_to_string(self.of().join("processes.jsonl")).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| (line["number"].as_u64().unwrap(), line)).collect()
    }

    /// Returns the calls in the traces of processes and their frees of unknown blocks, by the first size that is their
    /// own.
    fn traces(&self) -> BTreeMap<u64, (Calls, u64)> {
        let entries = fs::read_dir(self.of()).into_iter().flatten().map(|entry| entry.unwrap().path());
        let traces = entries.filter(|path| path.extension().is_some_and(|extension| extension == "mtf"));
        traces
            .map(|path| calls(&path))
            .map(|calls| (*calls.0.keys().find(|size| **size > 2000).unwrap_or(&0), calls))
            .collect()
    }
}

/// Returns the requests in a trace for the program's sizes, and the number of frees of unknown blocks.
fn calls(trace: &Path) -> (Calls, u64) {
    let mut reader = TraceReader::open(trace).unwrap();
    let (mut calls, mut unknown, mut live) = (Calls::new(), 0, std::collections::HashSet::new());
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Call(call) => {
                if (1001..10_000).contains(&call.size) {
                    *calls.entry(call.size).or_default() += 1;
                }
                live.insert(call.address);
            }
            EventKind::Free { address } if address != 0 && !live.remove(&address) => unknown += 1,
            _ => {}
        }
    }
    (calls, unknown)
}

fn just(counts: &[(u64, u64)]) -> Calls {
    counts.iter().copied().collect()
}

#[test]
fn forks_of_forks() {
    let Some(recording) = Recording::new() else { return };
    let run = recording.record(&[], &["generations"]).exits(0);
    assert!(run.err.contains("3 more processes: "), "{}", run.err);
    let traces = recording.traces();
    assert_eq!(traces[&2001], (just(&[(2001, 20)]), 1));
    assert_eq!(traces[&2002], (just(&[(2002, 30), (2003, 10)]), 0));
    assert_eq!(traces[&2004], (just(&[(2004, 40)]), 0));
    let list = recording.list();
    let exits: Vec<_> = list.values().map(|line| line["exit"].as_u64().unwrap()).collect();
    assert_eq!(exits, [0, 2, 3, 4]);
    assert_eq!(list[&4]["parent"], list[&3]["process"]);
    assert_eq!(list[&3]["parent"], list[&2]["process"]);
    assert!(list.values().all(|line| line["lost"] == 0 && line["command"][1] == "generations"));
    // All times count from the same point in time.
    let began: Vec<_> = list.values().map(|line| line["began_ns"].as_u64().unwrap()).collect();
    assert!(began.is_sorted() && began[0] == 0 && began[1] > 0, "{began:?}");
}

#[test]
fn programs_with_an_environment_of_their_own() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&[], &["programs"]).exits(0);
    let traces = recording.traces();
    assert_eq!(traces.len(), 3);
    assert_eq!(traces[&3001].0, just(&[(1001, 5), (3001, 50)]));
    assert_eq!(traces[&3002].0, just(&[(1001, 5), (3002, 50)]));
    // This process was a copy of its parent before it executed another program.
    assert_eq!(traces[&3003].0, just(&[(1001, 5), (3003, 60), (3004, 50)]));
    assert!(recording.list().values().skip(1).all(|line| line["exit"] == 7 && line["command"][1] == "work"));
}

#[test]
fn with_stacks() {
    let Some(recording) = Recording::new() else { return };
    if cfg!(not(target_arch = "x86_64")) {
        return;
    }
    recording.record(&["--stacks"], &["generations"]).exits(0);
    for entry in fs::read_dir(recording.of()).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.extension().is_some_and(|extension| extension == "mtf") {
            let entry = entry.display().to_string();
            hatf(["symbolize", &entry, "-o", &entry]).exits(0);
            let sites = hatf(["sites", &entry, "--format", "json"]).exits(0);
            assert!(sites.text().contains("\"work\""), "{entry}: {}", sites.text());
        }
    }
}

#[test]
fn a_process_that_outlives_the_program() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&[], &["daemon"]).exits(0);
    assert_eq!(recording.traces()[&4001].0, just(&[(4001, 70), (4002, 80)]));
    assert!(recording.list().values().any(|line| line["exit"] == 9));
}

#[test]
fn a_process_that_is_killed() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&[], &["killed"]).exits(0);
    assert_eq!(recording.traces()[&7001].0, just(&[(7001, 90)]));
    assert!(recording.list()[&2]["exit"].is_null());
}

#[test]
fn many_at_once() {
    let Some(recording) = Recording::new() else { return };
    let run = recording.record(&[], &["many", "100"]).exits(0);
    assert!(run.err.contains("100 more processes: "), "{}", run.err);
    let traces = recording.traces();
    assert!((5001..5101).all(|size| traces[&size].0 == just(&[(size, 3)])));
    // Processes that are not recorded are counted.
    let run = recording.record(&["--follow-most", "1"], &["many", "20"]).exits(0);
    let followed = recording.traces().len();
    assert!(
        followed < 20
            && run.err.contains(&format!(
                "{} other process{} not recorded",
                20 - followed,
                if followed == 19 { "" } else { "es" }
            ))
    );
}

/// With a low limit on open files, fewer processes are recorded at once. The program has its own limit.
#[test]
fn few_open_files() {
    let Some(recording) = Recording::new() else { return };
    let trace = recording.folder.path("trace.mtf");
    let script = format!(
        "ulimit -S -n 30; ulimit -H -n 60; exec {} record -o {trace} -- /bin/sh -c",
        env!("CARGO_BIN_EXE_hatf")
    );
    let commands = format!("'ulimit -S -n; {} many 40'", recording.program);
    let run = metatf_test::run(Command::new("/bin/sh").args(["-c", &format!("{script} {commands}")])).exits(0);
    assert_eq!(run.text(), "30\n");
    assert!(!run.err.contains("Too many open files") && run.err.contains("not recorded"), "{}", run.err);
    assert!(recording.traces().len() >= 6, "{}", run.err);
}

#[test]
fn those_that_are_wanted() {
    let Some(recording) = Recording::new() else { return };
    let run = recording.record(&["--no-follow"], &["generations"]).exits(0);
    assert!(run.err.contains("1 other process not recorded"), "{}", run.err);
    assert!(!recording.of().exists());
    let script = ["record", "-o", &recording.folder.path("trace.mtf"), "--follow=processes", "--", "/bin/sh", "-c"];
    let commands = format!("{0} work 2001 1; /bin/sh -c '/bin/echo 1; {0} work 2002 1; true'", recording.program);
    hatf(script.into_iter().chain([&*commands])).exits(0);
    assert_eq!(recording.traces().into_keys().collect::<Vec<_>>(), [2001, 2002]);
}

/// `hatf processes` lists the programs, parents, times and totals of all processes.
#[test]
fn compared() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&[], &["programs"]).exits(0);
    let (trace, folder) = (recording.folder.path("trace.mtf"), recording.of().display().to_string());
    let json = hatf(["processes", &trace, "--format", "json"]).exits(0).text();
    assert_eq!(json, hatf(["processes", &folder, "--format", "json"]).exits(0).text());
    let found: Value = serde_json::from_str(&json).unwrap();
    let (processes, list) = (found["processes"].as_array().unwrap(), recording.list());
    assert_eq!(processes.len(), 4);
    for process in processes {
        let listed = &list[&process["number"].as_u64().unwrap()];
        for member in ["command", "parent", "began_ns", "duration_ns", "exit"] {
            assert_eq!(process[member], listed[member], "{process}");
        }
        let of_trace = recording.of().join(listed["trace"].as_str().unwrap()).display().to_string();
        let report: Value =
            serde_json::from_str(&hatf(["report", &of_trace, "--format", "json"]).exits(0).text()).unwrap();
        assert_eq!(process["peak"]["bytes"], report["peak"]["bytes"], "{process}");
        let sites: Value =
            serde_json::from_str(&hatf(["sites", &of_trace, "--format", "json"]).exits(0).text()).unwrap();
        let leaked = sites["sites"].as_array().unwrap().iter().map(|site| site["leaked"]["bytes"].as_u64().unwrap());
        assert_eq!(process["leaked"]["bytes"], leaked.sum::<u64>(), "{process}");
        assert_eq!(process["freed_by_others"]["blocks"], 0, "{process}");
    }
    let alone = recording.of().join(list[&2]["trace"].as_str().unwrap()).display().to_string();
    hatf(["processes", &alone]).exits(0).prints("  1 process\n");
    let text = hatf(["processes", &trace]).exits(0).text();
    assert!(text.contains("4 processes") && text.contains("work 3001 50"), "{text}");

    // A missing trace, and invalid lines in the list.
    let file = recording.of().join("processes.jsonl");
    let lines = fs::read_to_string(&file).unwrap();
    fs::remove_file(recording.of().join(list[&2]["trace"].as_str().unwrap())).unwrap();
    hatf(["processes", &folder]).exits(1).prints("4 processes").says(list[&2]["trace"].as_str().unwrap());
    for (line, said) in [
        (
            "{\"number\":1,\"trace\":\"../../x.mtf\",\"began_ns\":0}",
            "line 5: the trace is neither in the directory nor next to it",
        ),
        (
            "{\"number\":1,\"trace\":\"/etc/passwd\",\"began_ns\":0}",
            "line 5: the trace is neither in the directory nor next to it",
        ),
        ("{\"number\":-1}", "line 5: invalid value"),
        ("[", "line 5: "),
    ] {
        fs::write(&file, format!("{lines}{line}\n")).unwrap();
        hatf(["processes", &folder]).exits(1).says(said);
    }
    hatf(["processes", &recording.folder.path("none.mtf")]).exits(1).says("processes.jsonl");
}

/// A trace without a list of processes describes its own process.
#[test]
fn a_program_without_children() {
    let folder = Folder::new();
    let trace = folder.path("trace.mtf");
    let command = ["/bin/sh", "-c", "echo $$; exit 3"];
    let run = hatf(["record", "-q", "-o", &trace, "--"].iter().chain(&command)).exits(3);
    let process: u64 = run.text().trim().parse().unwrap();
    let found: Value = serde_json::from_str(&hatf(["processes", &trace, "--format", "json"]).exits(0).text()).unwrap();
    let [of] = &found["processes"].as_array().unwrap()[..] else { panic!("{found}") };
    let expected = serde_json::json!([process, command, 3, null, 0, [fs::canonicalize(command[0]).unwrap()]]);
    let named = ["process", "command", "exit", "signal", "lost", "programs"];
    assert_eq!(Value::from_iter(named.map(|member| of[member].clone())), expected, "{of}");
    assert!(of["duration_ns"].as_u64().unwrap() > 0 && of["peak"]["bytes"].as_u64().unwrap() > 0, "{of}");
}

/// Cross-thread frees are counted.
#[test]
fn freed_by_another_thread() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "freed_elsewhere", &["-O1"]) else { return };
    let trace = folder.path("trace.mtf");
    hatf(["record", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
    let found: Value = serde_json::from_str(&hatf(["processes", &trace, "--format", "json"]).exits(0).text()).unwrap();
    let process = &found["processes"].as_array().unwrap()[0];
    assert_eq!((&process["number"], &process["freed_by_others"]["blocks"]), (&1.into(), &7.into()), "{found}");
    assert_eq!(process["freed_by_others"]["bytes"], 7 * 5001, "{found}");
}

#[test]
fn in_private() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&["--private"], &["work", "2001", "1"]).exits(7);
    let report = hatf(["report", &recording.folder.path("trace.mtf")]).exits(0).text();
    assert!(report.contains("program: processes") && !report.contains("2001") && !report.contains("host:"), "{report}");
    recording.record(&["--private"], &["generations"]).exits(0);
    assert!(recording.list().values().all(|line| line["command"].as_array().unwrap().len() == 1));
    let report = hatf(["report", &recording.of().join("2-processes.mtf").display().to_string()]).exits(0).text();
    assert!(report.contains("program: processes") && !report.contains("generations"), "{report}");
}

/// The traces of all processes contain the labels. The last value for a key counts.
#[test]
fn labels() {
    let Some(recording) = Recording::new() else { return };
    let options = ["--label", "service=shop=2", "--label", "version=1", "--label", "version=1.7"];
    recording.record(&options, &["generations"]).exits(0);
    for trace in [recording.folder.path("trace.mtf"), recording.of().join("2-processes.mtf").display().to_string()] {
        let report = hatf(["report", &trace]).exits(0).text();
        assert!(report.contains("  labels: service shop=2, version 1.7\n"), "{report}");
    }
    for wrong in ["service", "=web", "a b=c"] {
        recording.record(&["--label", wrong], &["generations"]).exits(2);
    }
}

/// A second recording with the same name replaces the first one and nothing else.
#[test]
fn traces_of_an_earlier_recording() {
    let Some(recording) = Recording::new() else { return };
    recording.record(&[], &["many", "5"]).exits(0);
    assert_eq!(recording.traces().len(), 5);
    fs::write(recording.of().join("mine.txt"), "keep").unwrap();
    recording.record(&[], &["killed"]).exits(0);
    assert_eq!(recording.traces().len(), 1);
    assert!(recording.of().join("mine.txt").exists());
    recording.record(&[], &[]).exits(0);
    assert!(recording.traces().is_empty() && recording.of().join("mine.txt").exists());
    fs::remove_file(recording.of().join("mine.txt")).unwrap();
    recording.record(&[], &[]).exits(0);
    assert!(!recording.of().exists());
}

/// If `hatf record` is killed, a trace with every event can be recovered for each process.
#[test]
fn recovered() {
    recover(&[]);
}

/// A recovered trace also omits the information that a private recording omits.
#[test]
fn recovered_in_private() {
    let recording = recover(&["--private"]);
    let traces = recording.iter().flat_map(|recording| fs::read_dir(recording.of()).unwrap());
    let traces = traces.map(|entry| entry.unwrap().path());
    for trace in traces.filter(|path| path.extension().is_some_and(|extension| extension == "mtf")) {
        let text = hatf(["report", &trace.display().to_string()]).exits(0).text();
        assert!(text.contains("program: processes") && !text.contains("endless"), "{text}");
    }
}

/// Records an endless process, kills `hatf record` and recovers the traces.
fn recover(options: &[&str]) -> Option<Recording> {
    let recording = Recording::new()?;
    let (trace, count) = (recording.folder.path("trace.mtf"), recording.folder.path("count"));
    let spools = recording.folder.path("spools");
    fs::create_dir(&spools).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.args(["record", "-q", "--spool", &spools, "-o", &trace]).args(options);
    command.args(["--", &recording.program, "endless", &count]);
    let mut recorder = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let done = || fs::read(&count).ok().and_then(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?)));
    let begun = Instant::now();
    while done().is_none_or(|done| done < 20_000) {
        assert!(begun.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    recorder.kill().unwrap();
    recorder.wait().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let spool = fs::read_dir(&spools).unwrap().next().unwrap().unwrap().path();
    let process = fs::read_dir(&spool).unwrap().map(|entry| entry.unwrap().path()).find(|path| path.is_dir()).unwrap();
    if !options.is_empty() {
        // Simulates a kill before `hatf record` saw the process.
        fs::remove_file(process.join("recording.json")).unwrap();
    }
    // The processes are still running and recorded.
    let spool = spool.display().to_string();
    assert!(hatf(["recover", &spool]).exits(1).err.contains("is still running"));
    let id =
        |path: &Path| path.file_name().unwrap().to_str().unwrap().split('-').nth(1).unwrap().parse::<i32>().unwrap();
    // SAFETY: this test started the process.
    unsafe { libc::kill(id(&process), libc::SIGKILL) };
    let last = Instant::now();
    while hatf(["recover", "--keep", &spool]).status != 0 {
        assert!(last.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
    let done = done().unwrap();
    hatf(["recover", &spool]).exits(0);
    assert!(!Path::new(&spool).exists());
    assert_eq!(calls(Path::new(&trace)).0, just(&[(1001, 5)]));
    let made = recording.traces()[&6001].0[&6001];
    // The list contains each of the two processes once.
    let list = fs::read_to_string(recording.of().join("processes.jsonl")).unwrap();
    let lines: Vec<Value> = list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["number"].as_u64()).collect::<Vec<_>>(), [Some(2), Some(1)], "{list}");
    for line in &lines {
        assert!(recording.of().join(line["trace"].as_str().unwrap()).exists(), "{line}");
        assert_eq!(line["command"].as_array().unwrap().len() > 1, options.is_empty(), "{line}");
    }
    // The program writes the count after the call.
    assert!(made == done + 1 || made == done + 2, "{made} recorded of {done}");
    Some(recording)
}
