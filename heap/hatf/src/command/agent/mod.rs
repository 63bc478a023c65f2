//! `hatf agent`: records running processes by policy.

mod find;
mod finish;
mod metrics;
mod policy;
mod recordings;

use std::fs::{self, DirBuilder, File, TryLockError};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hatf_trace::{Error, Result};
use metatf_cli::OutputArgs;
use metatf_page::{Column, Note, Page, Report, Table, Value};
use serde::Serialize;

use super::output::show;
use find::processes;
use metrics::Counters;
use policy::Policy;
use recordings::Recordings;

/// Interval at which budgets are checked.
const TICK: Duration = Duration::from_secs(1);

/// Record running processes as a policy file specifies.
///
/// The agent searches for processes at an interval, records those that a rule of the policy matches, and ends a
/// recording when its time or a budget is used up. Each recording is a separate `hatf record --pid`, so a recording that
/// fails does not end the agent. Complete traces are converted and uploaded as the policy specifies. If the agent ends,
/// even by SIGKILL, its recordings end too, and the recorded programs continue.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf agent --check policy.toml               processes, and the rules that match them
  hatf agent policy.toml

A policy:
  directory = \"/var/lib/hatf\"
  scan = \"5s\"                                  # interval between searches for processes
  metrics = \"127.0.0.1:9464\"                   # counters for Prometheus; or a socket path

  [budget]                                     # for all recordings together
  cpu = 50                                     # percent of a core
  memory = \"256MiB\"
  disk = \"2GiB\"
  recordings = 8

  [finish]
  convert = [\"pprof\"]                          # as in hatf convert --to
  upload = [\"rclone\", \"copy\", \"{file}\", \"store:heap\"]
  delete = true                                # after the upload

  [[rule]]                                     # the first rule that matches decides
  name = \"redis-*\"                             # executable; also command, cgroup, user
  action = \"sampled\"                           # off, sampled or full
  sample = \"512KiB\"
  time = \"10min\"
  options = [\"--stacks\"]                       # further options of hatf record")]
pub(crate) struct Agent {
    /// Print the running processes and the rules that match them, and record nothing.
    #[arg(long)]
    check: bool,

    /// Policy file.
    #[arg(value_name = "POLICY")]
    policy: PathBuf,

    #[command(flatten)]
    output: OutputArgs,
}

/// The processes and their rules, for `--check`.
#[derive(Serialize)]
struct Checked {
    #[serde(skip)]
    title: String,
    processes: Vec<CheckedProcess>,
}

#[derive(Serialize)]
struct CheckedProcess {
    process: u32,
    user: String,
    name: String,
    cgroup: String,
    /// Number of the matching rule, counted from 1.
    rule: Option<usize>,
    action: &'static str,
}

impl Report for Checked {
    fn page(&self) -> Page {
        let mut page = Page::new(self.title.clone());
        let recorded = self.processes.iter().filter(|process| process.action != "off").count() as u64;
        let numbers = [Value::Count(recorded), Value::Count(self.processes.len() as u64)];
        page.push(Note::new("The policy records {} of {} processes.").with(numbers));
        let mut table = Table::new(["process", "user", "rule", "action", "program", "cgroup"].map(Column::new));
        for process in &self.processes {
            table.row([
                Value::text(process.process.to_string()),
                Value::text(process.user.clone()),
                process.rule.map_or(Value::Unknown, |rule| Value::text(rule.to_string())),
                Value::text(process.action),
                Value::text(process.name.clone()),
                Value::text(process.cgroup.clone()),
            ]);
        }
        page.push(table);
        page
    }
}

pub(crate) fn run(options: &Agent) -> Result<u8> {
    let policy = Policy::read(&options.policy)?;
    if options.check {
        let processes = processes().into_iter().map(|found| {
            let rule = policy.rule(&found);
            let action = rule.map_or("off", |(_, rule)| rule.action.name());
            let rule = rule.map(|(place, _)| place + 1);
            let find::Found { process, user, name, cgroup, .. } = found;
            CheckedProcess { process, user, name, cgroup, rule, action }
        });
        let title = options.policy.display().to_string();
        show(&Checked { title, processes: processes.collect() }, &options.output)?;
        return Ok(0);
    }
    record(&policy)
}

/// Records until this process is killed.
fn record(policy: &Policy) -> Result<u8> {
    let place = Place::new(&policy.directory)?;
    let counters = Arc::new(Counters::default());
    if let Some(address) = &policy.metrics {
        metrics::serve(address, &counters)?;
    }
    let finish = finish::start(policy.finish.clone(), &place, &counters)?;
    let mut recordings = Recordings::new(policy, &place, &counters, finish);
    let mut scan = Instant::now();
    loop {
        recordings.reap();
        recordings.keep_budget();
        if Instant::now() >= scan {
            recordings.start(processes());
            scan = Instant::now() + policy.scan;
        }
        recordings.finish_traces();
        std::thread::sleep(TICK.min(scan.saturating_duration_since(Instant::now())));
    }
}

/// The directory of the agent.
struct Place {
    /// Traces that are being written or have not been uploaded.
    new: PathBuf,
    /// Files that are being converted.
    converting: PathBuf,
    /// Files after their upload. The oldest ones are deleted if the disk budget is used up.
    done: PathBuf,
    root: PathBuf,
    _lock: File,
}

impl Place {
    fn new(root: &Path) -> Result<Self> {
        let problem = |path: &Path| Error::system(path.display().to_string());
        let [new, converting, done] = ["new", "converting", "done"].map(|name| root.join(name));
        for folder in [root, &new, &converting, &done] {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(problem(folder))?;
        }
        let path = root.join("lock");
        let lock = File::create(&path).map_err(problem(&path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let why = "another hatf agent uses this directory";
                return Err(Error::Trace(format!("{}: {why}", root.display()).into()));
            }
            Err(TryLockError::Error(error)) => return Err(problem(&path)(error)),
        }
        Ok(Self { new, converting, done, root: root.to_owned(), _lock: lock })
    }
}

/// Returns the size on disk of a file, or of all files in a directory. Does not follow links.
fn size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else { return 0 };
    if !metadata.is_dir() {
        return metadata.len();
    }
    fs::read_dir(path).into_iter().flatten().flatten().map(|entry| size(&entry.path())).sum()
}

/// Deletes a file or directory.
fn remove(path: &Path) -> std::io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
