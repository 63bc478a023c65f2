//! The user metadata of a recording, which describes its origin.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsString};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hatf_record::Clock;
use serde_json::{Value, json};

use super::followed_process::FollowedProcess;
use crate::record::order::Moment;
use crate::record::spool::{SpoolFile, memory_limit};
use hatf_trace::Result;
use hatf_trace::calendar::utc;
use hatf_trace::event::EventSink;

/// The part of a program that is recorded, and the information about the origin that the trace contains.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// The mean number of bytes between recorded blocks; 0 records every block.
    pub(crate) sample: u64,
    /// Whether only the name of the program is kept, without its arguments and the name of the machine.
    pub(crate) private: bool,
    /// Labels that identify the trace.
    pub(crate) labels: BTreeMap<String, String>,
    /// The restriction to certain threads, modules or sizes as in the user metadata; null if everything is recorded.
    pub(crate) only: Value,
    /// The statically linked allocator whose calls are recorded, as in the user metadata; null if there is none.
    pub(crate) linked_in: Value,
}

/// The start and the subject of a recording.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    /// Time 0 of the trace.
    start: Moment,
    wall: Duration,
    command: Vec<String>,
    scope: Scope,
    /// The directory of the spool, which contains the events that an unfinished trace lacks.
    spool: Option<String>,
    /// The number of the process, its ID, and the ID of its parent; `None` for the program started by `hatf record`.
    process: Option<(u32, u32, u32)>,
}

impl Origin {
    /// Creates the origin of a recording that begins now, with a spool in this directory.
    pub(crate) fn now(command: &[OsString], spool: &Path, start: Moment, scope: Scope) -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let spool =
            (!scope.private).then(|| std::path::absolute(spool).ok()?.into_os_string().into_string().ok()).flatten();
        Self { start, wall, command, scope, spool, process: None }
    }

    /// Returns the origin of another process in the same recording, whose times have the same start.
    pub(crate) fn of_process(&self, process: &FollowedProcess) -> Self {
        let numbers = (process.number, process.process, process.parent);
        // Another program has its own allocator.
        let scope = Scope { linked_in: Value::Null, ..self.scope.clone() };
        Self { command: process.command.clone(), process: Some(numbers), scope, ..self.clone() }
    }

    /// Writes the user metadata, with the keys that `dtds/heap.dtd` defines.
    pub(crate) fn write(&self, sink: &mut dyn EventSink) -> Result<()> {
        self.user_metadata().as_object().map_or(Ok(()), |user_metadata| sink.user_metadata(user_metadata))
    }

    /// Returns the JSON that is kept next to the spool.
    pub(crate) fn to_json(&self, clock: Clock) -> Value {
        let Moment { stamp, nanoseconds } = self.start;
        json!({"clock": clock as u32, "stamp": stamp, "nanoseconds": nanoseconds, "user_metadata": self.user_metadata()})
    }

    /// Derives the JSON for the spool of a process from the JSON of the first process.
    pub(crate) fn of_recovered(mut first: Value, process: &FollowedProcess) -> Value {
        let user_metadata = &mut first["start"]["user_metadata"];
        // A private recording contains no command, only the program's name.
        let private = user_metadata["command"].is_null();
        user_metadata["program"] = if private { process.name().into() } else { json!(process.command.first()) };
        user_metadata["command"] = json!((!private).then_some(&process.command));
        user_metadata["linked_in"] = Value::Null;
        let recording = user_metadata["recording"].as_str().unwrap_or_default().to_owned();
        let numbers = (process.number, process.process, process.parent);
        add_process(user_metadata, &recording, numbers);
        first
    }

    /// Builds the missing JSON for a spool that a process created by itself. The start of the recording is stored in
    /// the spool, and the calendar time of that start follows from its files. The recording may be from another
    /// machine.
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
        user_metadata["memory_limit"] = Value::Null;
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
            "memory_limit": memory_limit(),
            "labels": (!labels.is_empty()).then_some(labels),
            "only": only,
            "linked_in": linked_in,
            "sampling": (*sample > 0).then(|| json!({"bytes": sample})),
            // This ID is unique to the recording and identifies the spool that belongs to a trace.
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

/// Adds the process number and IDs to the user metadata.
fn add_process(user_metadata: &mut Value, recording: &str, (number, process, parent): (u32, u32, u32)) {
    user_metadata["recording"] = format!("{recording}/{number}").into();
    user_metadata["process"] = json!({"number": number, "id": process, "parent": parent});
}

/// Returns the version of the C library that `hatf` uses. The program uses the same library unless it comes with its
/// own.
fn libc_version() -> Option<String> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: the pointer is to a constant C string.
        let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
        Some(format!("glibc {}", version.to_string_lossy()))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

fn host() -> String {
    // SAFETY: all zeros is a valid value of this struct of bytes; the call fills it with C strings.
    let name = unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&raw mut name);
        name
    };
    let text = |field: &[libc::c_char]| {
        // SAFETY: the kernel terminates each field with a zero byte within the field.
        unsafe { CStr::from_ptr(field.as_ptr()) }.to_string_lossy().into_owned()
    };
    let fields = [&name.nodename, &name.sysname, &name.release, &name.machine];
    fields.map(|field| text(field)).join(" ")
}
