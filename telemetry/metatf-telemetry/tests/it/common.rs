//! Scenarios that run in separate processes. Each process runs a single test of this binary, with the scenario's name
//! in the environment.

use metatf_derive::metatf;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

#[metatf(dtd = "tests/events.dtd", emitters = "crate::common::events")]
pub(crate) mod events {}

pub(crate) use events::{Events, Record};

/// The environment variable that contains the name of a scenario.
const SCENARIO: &str = "METATF_TEST_SCENARIO";

/// Returns the scenario that this process should run.
pub(crate) fn scenario() -> Option<String> {
    std::env::var(SCENARIO).ok()
}

/// A directory for a scenario and its trace.
pub(crate) struct Scene {
    /// The test that runs the scenarios of a module.
    child: &'static str,
    pub(crate) folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new(child: &'static str) -> Self {
        Self { child, folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn trace(&self) -> PathBuf {
        self.folder.path().join("events.mtf")
    }

    /// Returns a command that runs a scenario, given a `program` that runs this binary.
    pub(crate) fn command(&self, mut program: Command, scenario: &str, environment: &[(&str, &str)]) -> Command {
        program
            .args(["--exact", self.child, "--nocapture", "--test-threads=1"])
            .env(SCENARIO, scenario)
            .env("METATF_TELEMETRY_FILENAME", self.trace())
            .env("METATF_TELEMETRY_FOLDER", self.folder.path())
            .env_remove("METATF_TELEMETRY_CONTROL")
            // With `block`, nothing is lost even on a slow machine.
            .env("METATF_TELEMETRY_PATIENCE", "600")
            .envs(environment.iter().copied())
            .current_dir(self.folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        program
    }

    /// Starts a scenario.
    pub(crate) fn start(&self, scenario: &str, environment: &[(&str, &str)]) -> Child {
        self.command(Command::new(std::env::current_exe().unwrap()), scenario, environment).spawn().unwrap()
    }

    /// Runs a scenario, which must succeed. Returns its standard error output.
    pub(crate) fn run(&self, scenario: &str, environment: &[(&str, &str)]) -> String {
        let output = self.start(scenario, environment).wait_with_output().unwrap();
        let [text, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        assert!(output.status.success() && text.contains("running 1 test"), "{scenario}: {text}{errors}");
        errors
    }

    /// Returns the buffers in the directory.
    pub(crate) fn buffers(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("metatf.")).collect()
    }
}

/// Returns the records of a trace, which must be complete.
pub(crate) fn records(path: &Path) -> Vec<Events> {
    let mut trace = events::Trace::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut records = Vec::new();
    while let Some(record) = trace.next_owned().unwrap_or_else(|error| panic!("{}: {error}", path.display())) {
        let Record::Events(event) = record;
        records.push(event);
    }
    records
}

/// Returns the number of steps in a trace by thread. The steps of a thread must count up from 0 without gaps, and times
/// must not decrease.
pub(crate) fn steps(records: &[Events]) -> std::collections::BTreeMap<u64, u64> {
    let mut threads = std::collections::BTreeMap::new();
    let mut last = 0;
    for record in records {
        if let Events::Step(step) = record {
            let next = threads.entry(step.thread).or_insert(0);
            assert_eq!(step.number, *next, "thread {}", step.thread);
            *next += 1;
            assert!(
                step.time >= last,
                "time goes back from {last} to {}, thread {} {}",
                step.time,
                step.thread,
                step.number
            );
            last = step.time;
        }
    }
    threads
}
