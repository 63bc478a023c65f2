//! Benchmark rows of LTTng-UST. They use the benchmark's own session daemon and one session per measurement.

use crate::built::run;
use crate::row::Row;
use crate::{EVENTS, Result};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The name of the session.
const SESSION: &str = "metatf-bench";

/// A session daemon, which is started unless one is already running.
#[derive(Debug)]
pub(crate) struct Daemon {
    own: Option<Child>,
    /// The directory for sessions and traces.
    home: PathBuf,
    /// The program with tracepoints.
    program: PathBuf,
}

/// The recording mode of a session: the row name, the event, the options for creating the session and the channel, and
/// whether the events are written to a file.
struct Way {
    name: &'static str,
    event: &'static str,
    session: &'static [&'static str],
    channel: &'static [&'static str],
    files: bool,
}

const WAYS: [Way; 5] = [
    Way { name: "LTTng-UST, off", event: "off", session: &[], channel: &[], files: false },
    Way {
        name: "LTTng-UST, flight recorder (snapshot), three fields and a time",
        event: "stamped",
        session: &["--snapshot"],
        channel: &["--overwrite"],
        files: false,
    },
    Way {
        name: "LTTng-UST, flight recorder (snapshot), a text of 16 bytes and a time",
        event: "said",
        session: &["--snapshot"],
        channel: &["--overwrite"],
        files: false,
    },
    Way { name: "LTTng-UST, to a file, discard", event: "stamped", session: &[], channel: &[], files: true },
    Way {
        name: "LTTng-UST, to a file, blocking",
        event: "stamped",
        session: &[],
        channel: &["--blocking-timeout=inf"],
        files: true,
    },
];

impl Daemon {
    /// Starts the daemon and waits until it responds.
    pub(crate) fn start(folder: &Path, program: &Path) -> Result<Self> {
        let home = folder.join("lttng");
        std::fs::create_dir_all(&home)?;
        let mut daemon = Self { own: None, home, program: program.to_owned() };
        if daemon.answers() {
            // An interrupted run may have left its session.
            let _ = daemon.lttng().args(["destroy", SESSION]).stderr(Stdio::null()).status();
            return Ok(daemon);
        }
        let mut command = Command::new("lttng-sessiond");
        command.args(["--no-kernel", "--quiet"]).stdout(Stdio::null()).stderr(Stdio::null());
        daemon.own = Some(command.env("LTTNG_HOME", &daemon.home).env("HOME", &daemon.home).spawn()?);
        for _ in 0..100 {
            if daemon.answers() {
                return Ok(daemon);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err("lttng-sessiond does not answer".into())
    }

    fn lttng(&self) -> Command {
        let mut command = Command::new("lttng");
        command.args(["--no-sessiond", "--quiet"]).env("LTTNG_HOME", &self.home).env("HOME", &self.home);
        command
    }

    fn answers(&self) -> bool {
        let output = self.lttng().arg("list").stderr(Stdio::null()).stdout(Stdio::null()).status();
        output.is_ok_and(|status| status.success())
    }

    /// Measures all rows once.
    pub(crate) fn measure(&self, add: &mut dyn FnMut(String) -> Result<()>) -> Result<()> {
        WAYS.iter().try_for_each(|way| add(format!("{}\n", self.way(way)?)))
    }

    fn way(&self, way: &Way) -> Result<Row> {
        let trace = self.home.join("trace");
        let mut create = self.lttng();
        create.arg("create").args(way.session);
        if way.files {
            create.arg("--output").arg(&trace);
        }
        run(create.arg(SESSION))?;
        run(self.lttng().args(["enable-channel", "--userspace", "events"]).args(way.channel))?;
        // To measure a disabled event, enable only an event that the program does not emit.
        let event =
            if way.event == "off" { "metatf_bench:said".to_owned() } else { format!("metatf_bench:{}", way.event) };
        run(self.lttng().args(["enable-event", "--userspace", "--channel", "events", &event]))?;
        run(self.lttng().arg("start"))?;
        let before = consumers();
        let mut program = Command::new(&self.program);
        program.args([way.event, &EVENTS.to_string()]).env("LTTNG_HOME", &self.home).env("HOME", &self.home);
        let printed = run(program.env("LTTNG_UST_ALLOW_BLOCKING", "1").env("LTTNG_UST_REGISTER_TIMEOUT", "-1"))?;
        run(self.lttng().args(["destroy", SESSION]))?;
        let drained = (consumers() - before) / EVENTS as f64;
        let (thread, process) = printed.trim().split_once(' ').ok_or("the program of LTTng printed no numbers")?;
        let mut row = Row::new(way.name, thread.parse()?);
        if way.files {
            let kept = kept(&trace)? as f64;
            row.all = Some(process.parse::<f64>()? + drained);
            row.bytes = Some(bytes(&trace)? as f64 / kept);
            row.lost = Some((EVENTS as f64 - kept) * 100.0 / EVENTS as f64);
            std::fs::remove_dir_all(&trace)?;
        }
        Ok(row)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.own.take() {
            // On SIGTERM, unlike on SIGKILL, the daemon also ends its consumer processes.
            let id = daemon.id().to_string();
            let _ = Command::new("kill").arg(&id).status();
            let _ = daemon.wait();
        }
    }
}

/// Returns the CPU time used so far by all daemons that write traces, in nanoseconds.
fn consumers() -> f64 {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
    let daemons = processes.filter(|path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == "lttng-consumerd")
    });
    let threads = daemons.filter_map(|path| std::fs::read_dir(path.join("task")).ok()).flatten().flatten();
    let times = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("schedstat")).ok());
    times.filter_map(|text| text.split(' ').next()?.parse::<f64>().ok()).sum()
}

/// Returns the number of events in a trace as counted by babeltrace2.
fn kept(trace: &Path) -> Result<u64> {
    let counts = run(Command::new("babeltrace2").arg(trace).arg("--component=sink.utils.counter"))?;
    // babeltrace2 prints intermediate counts, and the total at the end.
    let line = counts.lines().rfind(|line| line.contains("Event messages")).ok_or("babeltrace2 counts no events")?;
    Ok(line.split_whitespace().next().unwrap_or_default().replace(',', "").parse()?)
}

/// Returns the bytes of all files in a directory.
fn bytes(folder: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += if metadata.is_dir() { self::bytes(&entry.path())? } else { metadata.len() };
    }
    Ok(bytes)
}
