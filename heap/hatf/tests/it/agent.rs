//! The agent: policies, recordings by rule, uploads, counters, hostile clients and kills.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::attach::{Running, program};
use crate::common::hatf;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventSource as _, Item};
use metatf_cli::OutputFile;
use metatf_test::{Folder, PATIENCE};

#[test]
fn mistakes_in_a_policy_are_explained() {
    let folder = Folder::new();
    let path = folder.join("policy.toml").display().to_string();
    for (text, why) in [
        ("[[rule]]\naction = \"off\"", "line 1: missing field `directory`"),
        ("directory = \"x\"\n[[rule]]\naction = \"smapled\"", "line 3: unknown variant `smapled`"),
        ("directory = \"x\"\n[[rule]]\naction = \"smapled\"", "did you mean `sampled`?"),
        ("directory = \"x\"\n[[rule]]\nnaem = \"x\"", "did you mean `name`?"),
        ("directory = \"x\"\nscan = \"soon\"", "line 2: expected a time, such as \"10min\", found `soon`"),
        ("directory = \"x\"\nscan = \"1us\"\nrule = []", "`scan` must be at least 100ms"),
        ("directory = \"x\"\n[[rule]", "line 2: unclosed array table"),
        ("directory = \"x\"\nrule = []\nbudget.disk = \"1KiB\"", "expected at least 1MiB"),
        ("directory = \"x\"\nrule = []\nfinish.upload = [\"x\"]", "`upload` must contain {file}"),
        ("directory = \"x\"\nrule = []\nfinish.convert = [\"../x\"]", "found `../x`"),
        ("directory = \"x\"\n[[rule]]\naction = \"full\"\nsample = \"1MiB\"", "rule 1: `sample` requires"),
        ("directory = \"x\"\n[[rule]]\naction = \"sampled\"\nsample = \"x\"", "rule 1: invalid value 'x'"),
        ("directory = \"x\"\n[[rule]]\naction = \"full\"\noptions = [\"--satcks\"]", "found `--satcks`"),
        ("directory = \"x\"\n[[rule]]\naction = \"full\"\noptions = [\"-o\", \"y\"]", "found `-o y`"),
    ] {
        fs::write(&path, text).unwrap();
        hatf(["agent", "--check", &path]).exits(1).says(why);
    }
}

/// A running agent.
struct Agent(Child);

impl Agent {
    fn start(policy: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
        Self(command.arg("agent").arg(policy).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns commands that start copies of a program under these names. Returns `None` if there is no compiler.
fn programs<const N: usize>(folder: &Folder, names: [&str; N]) -> Option<[Command; N]> {
    let program = program(folder, "attached")?;
    Some(names.map(|name| {
        let path = folder.join(name);
        fs::copy(program.get_program(), &path).unwrap();
        let mut command = Command::new(path);
        command.args(program.get_args());
        command
    }))
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn request(socket: &Path, text: &str) -> String {
    let mut answer = String::new();
    if let Ok(mut client) = UnixStream::connect(socket) {
        let _ = client.write_all(text.as_bytes());
        let _ = client.read_to_string(&mut answer);
    }
    answer
}

/// Returns the value of a counter, or 0 if the agent does not serve it yet.
fn counter(socket: &Path, name: &str) -> u64 {
    let text = request(socket, "GET /metrics HTTP/1.1\r\n\r\n");
    let value = text.lines().find_map(|line| line.strip_prefix("hatf_agent_")?.strip_prefix(name)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse().unwrap())
}

/// Returns the number of events in a complete trace.
fn events(trace: &Path) -> u64 {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut count = 0;
    while let Some(item) = reader.next().unwrap() {
        count += u64::from(matches!(item, Item::Event(_)));
    }
    count
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn programs_are_recorded_by_policy_and_uploaded() {
    let folder = Folder::new();
    let names = ["agent-off", "agent-full", "agent-sampled"];
    let Some([off, full, mut sampled]) = programs(&folder, names) else { return };
    let [socket, store, ready] = ["metrics", "store", "ready"].map(|name| folder.join(name));
    fs::create_dir(&store).unwrap();
    let policy = folder.join("policy.toml");
    let (root, name) = (folder.join("agent"), folder.join("").display().to_string());
    let text = format!(
        "directory = {root:?}\nscan = \"200ms\"\nmetrics = {socket:?}\n\
         [finish]\nconvert = [\"pprof\"]\nretry = \"200ms\"\ndelete = true\n\
         upload = [\"sh\", \"-c\", \"test -e {ready} && cp $0 {store}\", \"{{file}}\"]\n\
         [[rule]]\ncommand = \"{name}agent-off*\"\naction = \"off\"\n\
         [[rule]]\ncommand = \"{name}*\"\nname = \"*-sampled\"\naction = \"sampled\"\nsample = \"64KiB\"\n\
         [[rule]]\ncommand = \"{name}*\"\naction = \"full\"\noptions = [\"--stacks\"]\n",
        ready = ready.display(),
        store = store.display(),
    );
    fs::write(&policy, text).unwrap();

    let mut before = [off, full].map(|mut program| Running::start(&mut program));
    let checked = hatf(["agent", "--check", policy.to_str().unwrap()]).exits(0).text();
    let is_shown = |process: &Running, action: &str| {
        checked.lines().any(|line| line.contains(&process.id()) && line.contains(action))
    };
    assert!(is_shown(&before[0], " off ") && is_shown(&before[1], " full "), "{checked}");

    let agent = Agent::start(&policy);
    let mut after = Running::start(&mut sampled);
    wait_until("two recordings", || counter(&socket, "recordings") == 2 && files(&root.join("new")).len() == 2);

    // Clients that send nothing, too much or nonsense.
    let silent: Vec<_> = (0..20).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    drop(silent);
    assert!(
        request(&socket, &"x".repeat(100_000)).is_empty() || !request(&socket, "GET / HTTP/1.1\r\n\r\n").is_empty()
    );
    wait_until("an answer", || request(&socket, "GET /etc HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));

    before.iter_mut().for_each(Running::works);
    after.works();
    before.into_iter().chain([after]).for_each(Running::ends);
    wait_until("failed uploads", || counter(&socket, "uploads_failed_total") >= 4);
    assert!(files(&store).is_empty());
    fs::write(&ready, "").unwrap();
    // A trace and a profile for each recording.
    wait_until("uploads", || counter(&socket, "uploads_total") == 4);
    assert_eq!(counter(&socket, "recordings_started_total"), 2);
    assert_eq!(counter(&socket, "recordings"), 0);
    assert_eq!(counter(&socket, "lost_events_total"), 0);
    assert!(files(&root.join("new")).is_empty());
    let stored = files(&store);
    let traces: Vec<_> = stored.iter().filter(|path| path.extension().unwrap() == "mtf").collect();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(traces.iter().all(|path| !name(path).starts_with("agent-off")), "{stored:?}");
    assert_eq!((stored.len(), traces.len()), (4, 2), "{stored:?}");
    assert_eq!(counter(&socket, "events_total"), traces.iter().map(|path| events(path)).sum::<u64>());
    drop(agent);
}

#[test]
fn a_killed_agent_harms_neither_programs_nor_traces() {
    let folder = Folder::new();
    let Some([mut program]) = programs(&folder, ["agent-killed"]) else { return };
    let root = folder.join("agent");
    let policy = folder.join("policy.toml");
    let text = format!(
        "directory = {root:?}\nscan = \"100ms\"\n[[rule]]\ncommand = \"{}*\"\naction = \"full\"\n",
        folder.join("").display()
    );
    fs::write(&policy, text).unwrap();
    let mut running = Running::start(&mut program);
    let all = || [root.join("new"), root.join("done")].map(|folder| files(&folder)).concat();
    for turn in 0..6 * metatf_test::factor() {
        let count = all().len();
        let agent = Agent::start(&policy);
        if turn % 2 == 0 {
            wait_until("a trace", || all().len() > count);
            running.works();
        } else {
            std::thread::sleep(Duration::from_millis(u64::from(turn) * 137 % 900));
        }
        drop(agent);
        running.works();
        wait_until("the end of the recordings", || !all().iter().any(|trace| OutputFile::is_being_written(trace)));
        running.works();
    }
    running.ends();
    let traces = all();
    assert!(traces.len() >= 3, "{traces:?}");
    assert!(traces.iter().map(|trace| events(trace)).sum::<u64>() > 0);
}
