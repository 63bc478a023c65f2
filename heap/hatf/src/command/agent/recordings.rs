//! The recordings of the agent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hatf_host::record::resident_of;
use metatf_cli::OutputFile;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::find::{Found, Stat};
use super::metrics::{Counters, ENDS, FAILURES, TICKS_PER_SECOND};
use super::policy::{Action, Policy};
use super::{Place, remove, size};
use crate::command::print_message;

/// Period over which CPU time is averaged.
const PERIOD: Duration = Duration::from_secs(10);
/// Delay before a failed recording is repeated, which doubles with each failure.
const RETRY: Duration = Duration::from_secs(5);
/// Maximum number of recordings of a process that fail.
const FAILURES_MAX: u32 = 8;
/// Maximum time that a recording may take to end. After that, it is killed.
const END: Duration = Duration::from_secs(60);

/// A process, by its number and its start time.
type Key = (u32, u64);

/// A running `hatf record`.
struct Recording {
    key: Key,
    trace: PathBuf,
    child: Child,
    end: Option<Instant>,
    /// The reason why the agent ended the recording, and the time at which it did.
    ended: Option<(&'static str, Instant)>,
    ticks: u64,
    /// CPU time since the last check.
    recent: u64,
    memory: u64,
}

/// A process that was recorded or could not be recorded.
#[derive(Default)]
struct Past {
    failures: u32,
    /// The time from which the process can be recorded again.
    again: Option<Instant>,
}

/// All recordings of the agent.
pub(super) struct Recordings<'a> {
    policy: &'a Policy,
    place: &'a Place,
    counters: &'a Arc<Counters>,
    finish: Sender<PathBuf>,
    active: Vec<Recording>,
    past: HashMap<Key, Past>,
    /// Files that were passed on for conversion and upload.
    passed: HashSet<PathBuf>,
    /// CPU times of all recorders in the last [`PERIOD`].
    cpu: VecDeque<(Instant, u64)>,
    disk: u64,
    count: u64,
}

impl<'a> Recordings<'a> {
    pub(super) fn new(
        policy: &'a Policy,
        place: &'a Place,
        counters: &'a Arc<Counters>,
        finish: Sender<PathBuf>,
    ) -> Self {
        let (active, past, passed, cpu) = (Vec::new(), HashMap::new(), HashSet::new(), VecDeque::new());
        Self { policy, place, counters, finish, active, past, passed, cpu, disk: 0, count: 0 }
    }

    /// Starts recording the processes that the policy selects.
    pub(super) fn start(&mut self, processes: Vec<Found>) {
        let running: HashSet<Key> = processes.iter().map(|found| (found.process, found.started)).collect();
        self.past.retain(|key, _| running.contains(key));
        let now = Instant::now();
        for found in processes {
            let key = (found.process, found.started);
            let is_past = self.past.get(&key).is_some_and(|past| past.again.is_none_or(|again| again > now));
            let has_room =
                self.active.len() < self.policy.budget.recordings && self.disk < self.policy.budget.disk / 10 * 9;
            let is_active = self.active.iter().any(|recording| recording.key == key);
            let Some((rule, of)) = self.policy.rule(&found) else { continue };
            if of.action == Action::Off || is_past || is_active || !has_room {
                continue;
            }
            let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
            self.count += 1;
            // The name of an executable is chosen by its user.
            let name: String = found.name.chars().filter(|c| c.is_ascii_alphanumeric() || "_-".contains(*c)).collect();
            let trace = self.place.new.join(format!("{name:.64}-{}-{time}-{}.mtf", found.process, self.count));
            let child = std::env::current_exe().and_then(|hatf| {
                let mut command = Command::new(hatf);
                command.args(["record", "--quiet", &format!("--agent={}", std::process::id())]);
                command.args([&format!("--pid={}", found.process), &format!("--label=rule={}", rule + 1)]);
                command.arg("-o").arg(&trace).args(of.arguments());
                command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()
            });
            match child {
                Ok(child) => {
                    self.counters.started.fetch_add(1, Ordering::Relaxed);
                    let end = of.time.and_then(|time| now.checked_add(time));
                    let recording = Recording { key, trace, child, end, ended: None, ticks: 0, recent: 0, memory: 0 };
                    self.active.push(recording);
                }
                Err(error) => {
                    print_message(&format!("could not start hatf record: {error}"));
                    self.failed(key, "start");
                }
            }
        }
    }

    fn failed(&mut self, key: Key, reason: &str) {
        Counters::count(&self.counters.failed, FAILURES, reason);
        let past = self.past.entry(key).or_default();
        past.failures += 1;
        let delay = RETRY.saturating_mul(1 << past.failures.min(FAILURES_MAX).saturating_sub(1));
        past.again = (past.failures < FAILURES_MAX).then(|| Instant::now() + delay);
    }

    /// Handles the end of recordings.
    pub(super) fn reap(&mut self) {
        let mut active = Vec::new();
        for mut recording in std::mem::take(&mut self.active) {
            let Ok(Some(status)) = recording.child.try_wait() else {
                active.push(recording);
                continue;
            };
            let mut line = String::new();
            let output = recording.child.stdout.take();
            let _ = output.map(|output| output.take(4096).read_to_string(&mut line));
            let outcome: Value = serde_json::from_str(&line).unwrap_or_default();
            let number = |name: &str| outcome.get(name).and_then(Value::as_u64);
            if let (Some(events), Some(lost)) = (number("events"), number("lost")) {
                self.counters.events.fetch_add(events, Ordering::Relaxed);
                self.counters.lost.fetch_add(lost, Ordering::Relaxed);
                let reason = recording.ended.map_or("process", |(reason, _)| reason);
                Counters::count(&self.counters.ended, ENDS, reason);
                self.past.entry(recording.key).or_default().again = None;
            } else {
                let reason = if status.code().is_none() { "killed" } else { "attach" };
                print_message(&format!("process {}: the recording failed: {status}", recording.key.0));
                self.failed(recording.key, reason);
            }
        }
        self.active = active;
        self.counters.active.store(self.active.len() as u64, Ordering::Relaxed);
    }

    /// Ends recordings whose time or budget is used up.
    pub(super) fn keep_budget(&mut self) {
        let now = Instant::now();
        for recording in &mut self.active {
            let process = recording.child.id();
            let ticks = Stat::of(process).map_or(recording.ticks, |stat| stat.ticks);
            recording.recent = ticks.saturating_sub(recording.ticks);
            recording.ticks = ticks.max(recording.ticks);
            recording.memory = resident_of(process).map_or(0, |memory| memory.resident);
            self.counters.cpu_ticks.fetch_add(recording.recent, Ordering::Relaxed);
            if recording.end.is_some_and(|end| now >= end) {
                recording.stop("time");
            }
            if recording.ended.is_some_and(|(_, at)| now.saturating_duration_since(at) > END) {
                let _ = recording.child.kill();
            }
        }
        let memory = self.active.iter().map(|recording| recording.memory).sum();
        self.counters.memory.store(memory, Ordering::Relaxed);
        if memory > self.policy.budget.memory {
            self.stop_largest("memory", |recording| recording.memory);
        }
        self.cpu.push_back((now, self.counters.cpu_ticks.load(Ordering::Relaxed)));
        while self.cpu.len() > 2 && self.cpu.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) > PERIOD)
        {
            self.cpu.pop_front();
        }
        if let Some((at, ticks)) = self.cpu.front().copied()
            && now.saturating_duration_since(at) >= PERIOD - super::TICK * 2
        {
            let used = self.counters.cpu_ticks.load(Ordering::Relaxed).saturating_sub(ticks);
            let seconds = now.saturating_duration_since(at).as_secs_f64();
            if used as f64 / TICKS_PER_SECOND as f64 / seconds * 100.0 > f64::from(self.policy.budget.cpu) {
                self.stop_largest("cpu", |recording| recording.recent);
                // The next recording is ended only if the others exceed the budget over a whole period.
                self.cpu.clear();
            }
        }
        self.disk = size(&self.place.root);
        if self.disk > self.policy.budget.disk {
            self.remove_oldest();
        }
        if self.disk > self.policy.budget.disk {
            self.active.iter_mut().for_each(|recording| recording.stop("disk"));
        }
        self.counters.disk.store(self.disk, Ordering::Relaxed);
    }

    fn stop_largest(&mut self, reason: &'static str, key: fn(&Recording) -> u64) {
        let active = self.active.iter_mut().filter(|recording| recording.ended.is_none());
        if let Some(largest) = active.max_by_key(|recording| key(recording)) {
            largest.stop(reason);
        }
    }

    /// Deletes the oldest files that are done until the disk budget is met.
    fn remove_oldest(&mut self) {
        let entries = fs::read_dir(&self.place.done).into_iter().flatten().flatten();
        let age = |entry: &fs::DirEntry| entry.metadata().and_then(|metadata| metadata.modified()).ok();
        let mut done: Vec<_> = entries.map(|entry| (age(&entry), entry.path())).collect();
        done.sort();
        for (_, path) in done {
            if self.disk <= self.policy.budget.disk {
                break;
            }
            let bytes = size(&path);
            if remove(&path).is_ok() {
                self.disk = self.disk.saturating_sub(bytes);
            }
        }
    }

    /// Passes complete files on for conversion and upload, also those of an agent that was killed.
    pub(super) fn finish_traces(&mut self) {
        let entries = fs::read_dir(&self.place.new).into_iter().flatten().flatten();
        let all: HashSet<_> = entries.map(|entry| entry.path()).collect();
        self.passed.retain(|path| all.contains(path));
        for path in all {
            let is_active = self.active.iter().any(|recording| recording.trace == path);
            if !is_active && !self.passed.contains(&path) && !OutputFile::is_being_written(&path) {
                let _ = self.finish.send(path.clone());
                self.passed.insert(path);
            }
        }
    }
}

impl Recording {
    /// Asks `hatf record` to end the recording.
    fn stop(&mut self, reason: &'static str) {
        if self.ended.is_none() {
            self.ended = Some((reason, Instant::now()));
            let _ = kill_process(Pid::from_child(&self.child), Signal::INT);
        }
    }
}
