//! The user metadata of a recording: where it comes from.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hatf_record::Clock;
use serde_json::{Value, json};

use super::followed_process::FollowedProcess;
use crate::Result;
use crate::calendar::utc;
use crate::event::EventSink;
use crate::record::order::Moment;
use crate::record::spool::SpoolFile;

/// What is recorded of a program, and what is kept of where that was.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The mean number of bytes from one block that is recorded to the next; 0: every block is.
    pub(crate) sample: u64,
    /// The program's name alone is kept, and not its arguments, nor the machine.
    pub(crate) private: bool,
    /// What tells the trace from others.
    pub(crate) labels: BTreeMap<String, String>,
    /// What alone is recorded, as the user metadata has it; null: everything is.
    pub(crate) only: Value,
    /// The allocator that the program has linked in, whose calls are recorded, as the user metadata has it; null: there is none.
    pub(crate) linked_in: Value,
}

/// When a recording began, and of what.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// The trace's time 0.
    start: Moment,
    wall: Duration,
    command: Vec<String>,
    scope: Scope,
    /// The folder of the spool, which has what the trace has not as long as it is unfinished.
    spool: Option<String>,
    /// The number of the process, the process, and the one that made it, where that is not `hatf record`.
    process: Option<(u32, u32, u32)>,
}

impl Origin {
    /// Makes one for a recording that begins now, with a spool in this folder.
    pub(crate) fn now(command: &[OsString], spool: &Path, start: Moment, scope: Scope) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let spool =
            (!scope.private).then(|| std::path::absolute(spool).ok()?.into_os_string().into_string().ok()).flatten();
        Self { start, wall, command, scope, spool, process: None }
    }

    /// Returns that of another process of the same recording, whose times begin at the same moment.
    pub(crate) fn of_process(&self, process: &FollowedProcess) -> Self {
        let numbers = (process.number, process.process, process.parent);
        // Another program has its own.
        let scope = Scope { linked_in: Value::Null, ..self.scope.clone() };
        Self { command: process.command.clone(), process: Some(numbers), scope, ..self.clone() }
    }

    /// Writes where the trace comes from; the keys are those that `dtds/heap.dtd` names.
    pub(crate) fn write(&self, sink: &mut dyn EventSink) -> Result<()> {
        self.user_metadata().as_object().map_or(Ok(()), |user_metadata| sink.user_metadata(user_metadata))
    }

    /// Returns it as it is kept beside the spool.
    pub(crate) fn to_json(&self, clock: Clock) -> Value {
        let Moment { stamp, nanoseconds } = self.start;
        json!({"clock": clock as u32, "stamp": stamp, "nanoseconds": nanoseconds, "user_metadata": self.user_metadata()})
    }

    /// Makes what is kept beside the spool of a process from that of the first.
    pub(crate) fn of_recovered(mut first: Value, process: &FollowedProcess) -> Value {
        let user_metadata = &mut first["start"]["user_metadata"];
        // A recording in private has no command, and the program's name alone.
        let private = user_metadata["command"].is_null();
        user_metadata["program"] = if private { process.name().into() } else { json!(process.command.first()) };
        user_metadata["command"] = json!((!private).then_some(&process.command));
        user_metadata["linked_in"] = Value::Null;
        let recording = user_metadata["recording"].as_str().unwrap_or_default().to_owned();
        let numbers = (process.number, process.process, process.parent);
        add_process(user_metadata, &recording, numbers);
        first
    }

    /// Makes what would be kept beside the spool that a process made itself, in which nobody has written it: the spool says when the recording began, and its
    /// files when that was by the calendar. The machine may have been another.
    pub(crate) fn of_standalone(file: &SpoolFile) -> Value {
        let header = file.spool().header();
        let nanoseconds = header.start.load(Ordering::Relaxed);
        let origin = Self {
            start: Moment { stamp: nanoseconds, nanoseconds },
            wall: file.made_at().duration_since(UNIX_EPOCH).unwrap_or_default(),
            command: file.command(),
            scope: Scope { sample: header.sample.load(Ordering::Relaxed), ..Scope::default() },
            spool: None,
            process: None,
        };
        let mut json = json!({"start": origin.to_json(Clock::Monotonic), "about": {}});
        let user_metadata = &mut json["start"]["user_metadata"];
        user_metadata["host"] = Value::Null;
        user_metadata["libc"] = Value::Null;
        user_metadata["recording"] = format!("{}-{nanoseconds}", header.process.load(Ordering::Relaxed)).into();
        json
    }

    fn user_metadata(&self) -> Value {
        let recording = format!("{}-{}", std::process::id(), self.start.nanoseconds);
        let program = self.command.first().map(String::as_str);
        let name = program.and_then(|program| program.rsplit('/').next());
        let Scope { sample, private, labels, only, linked_in } = &self.scope;
        let mut user_metadata = json!({
            "program": if *private { name } else { program },
            "command": (!private).then_some(&self.command),
            "host": (!private).then(host),
            "start": utc(self.wall.as_secs()),
            "clock": {"name": "CLOCK_MONOTONIC", "resolution_ns": 1},
            "libc": libc_version(),
            "labels": (!labels.is_empty()).then_some(labels),
            "only": only,
            "linked_in": linked_in,
            "sampling": (*sample > 0).then(|| json!({"bytes": sample})),
            // No other recording has the same: by it a trace is known to be of a spool.
            "recording": recording,
            "spool": self.spool,
            "recorder": format!("hatf {}", env!("CARGO_PKG_VERSION")),
        });
        if let Some(numbers) = self.process {
            add_process(&mut user_metadata, &recording, numbers);
        }
        user_metadata
    }
}

/// Says which process of a recording it is.
fn add_process(user_metadata: &mut Value, recording: &str, (number, process, parent): (u32, u32, u32)) {
    user_metadata["recording"] = format!("{recording}/{number}").into();
    user_metadata["process"] = json!({"number": number, "id": process, "parent": parent});
}

/// The C library that `hatf` runs on, which is the program's, too, unless that brings its own.
fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: a constant C string.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

fn host() -> String {
    // SAFETY: zero is a value of this structure of bytes; the call fills it with C strings.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        name
    };
    let text = |field: &[libc::c_char]| {
        // SAFETY: the kernel ends each field with a zero, within it.
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_string_lossy().into_owned()
    };
    let fields = [&name.nodename, &name.sysname, &name.release, &name.machine];
    fields.map(|field| text(field)).join(" ")
}
