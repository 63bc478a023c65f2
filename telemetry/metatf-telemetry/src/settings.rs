//! Settings that users can change in the program and in the environment, which takes precedence.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;
use crate::layout::{RING_LEAST, RING_MOST, RINGS_MOST};
use crate::sys;

/// The behavior of a thread with a full ring. Without the `drain` feature, threads always overwrite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u32)]
#[non_exhaustive]
pub enum Policy {
    /// Drops the event and counts it.
    #[default]
    Drop = 0,
    /// Waits for the drain, and drops the event if the drain makes no progress for [`Settings::patience`].
    Block = 1,
    /// Overwrites the oldest events, as a flight recorder does. Nothing is written to the trace until a dump or the
    /// end.
    Overwrite = 2,
}

impl Policy {
    fn named(name: &str) -> Option<Self> {
        match name {
            "drop" => Some(Self::Drop),
            "block" => Some(Self::Block),
            "overwrite" => Some(Self::Overwrite),
            _ => None,
        }
    }

    /// Returns the policy with this number, if there is one.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Self> {
        [Self::Drop, Self::Block, Self::Overwrite].into_iter().find(|policy| *policy as u32 == number)
    }
}

/// The location of the buffers.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Place {
    /// In `/dev/shm`, or in the directory for temporary files if `/dev/shm` is missing.
    #[default]
    SharedMemory,
    /// In a file in this directory.
    Folder(PathBuf),
    /// In private memory of the process, which is part of its core dumps.
    Core,
}

/// The destination of an additional trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SinkPlace {
    /// A file. `%p` is replaced by the process ID, and `%n` by the name of the DTD.
    File(PathBuf),
    /// A TCP connection to HOST:PORT.
    Tcp(String),
    /// A connection to a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for SinkPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}

/// The word that disables all kinds.
const NONE: &str = "none";

/// The settings of telemetry. See the [crate] documentation for an example.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The path of the trace. `%p` is replaced by the process ID, and `%n` by the name of the DTD. The default is the
    /// name of the DTD, the process ID and `.mtf`.
    pub filename: Option<PathBuf>,
    /// The kinds that are enabled at the start, in the format of [`control::parse`](crate::control::parse). If this is
    /// empty, as by default, all kinds are enabled if the program sets the destination of the trace (with
    /// [`filename`](Self::filename) or a sink); otherwise, no kinds are enabled.
    pub control: String,
    /// The behavior of a thread with a full ring.
    pub policy: Policy,
    /// The size of each thread's ring in bytes: a power of two from 64 KiB to 8 MiB. The default is 1 MiB.
    pub ring_bytes: u64,
    /// The maximum number of threads with rings at the same time, up to 4,096. The default is 128.
    pub threads: u32,
    /// The location of the buffers.
    pub place: Place,
    /// Additional sinks of the same events, each with a separate trace. By default, there are no additional sinks.
    ///
    /// Each sink has a thread and a queue of 16 MiB. If the queue is full, events are dropped with [`Policy::Drop`].
    /// With [`Policy::Block`], the drain waits for up to a second, and so do the threads. With [`Policy::Overwrite`],
    /// the sink receives the content of the buffers at the end.
    pub sinks: Vec<(Policy, SinkPlace)>,
    /// Whether to suppress the message about dropped events at the end. The trace contains their number in any case.
    pub quiet: bool,
    /// The maximum time that a thread with [`Policy::Block`] waits for a ring, or for a drain that makes no progress.
    /// The default is one second.
    pub patience: Duration,
    /// Whether a thread of the program drains the rings. Otherwise, they are drained by
    /// [`flush`](crate::Telemetry::flush) and at the end.
    pub drain: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            filename: None,
            control: String::new(),
            policy: Policy::default(),
            ring_bytes: 1 << 20,
            threads: 128,
            place: Place::default(),
            sinks: Vec::new(),
            quiet: false,
            patience: Duration::from_secs(1),
            drain: true,
        }
    }
}

impl Settings {
    /// Applies settings from the environment: `METATF_TELEMETRY_CONTROL`, `_FILENAME`, `_POLICY` (`drop`, `block`,
    /// `overwrite`), `_RING` (bytes), `_THREADS`, `_PATIENCE` (seconds), `_FOLDER` (of the buffers), `_MEMORY` (`core`)
    /// and `_SINKS` (additional sinks). A program that runs with the privileges of a different user from its caller
    /// (set-user-ID, file capabilities) ignores them.
    ///
    /// # Errors
    /// Returns an error if a variable has an invalid value.
    pub fn with_environment(self) -> Result<Self, Error> {
        self.with(sys::environment)
    }

    fn with(mut self, get: impl Fn(&str) -> Option<std::ffi::OsString>) -> Result<Self, Error> {
        let text = |name: &str| get(name).map(|value| value.to_string_lossy().into_owned());
        let wrong =
            |name: &str, value: &str, want: &str| Error::Setting(format!("{name} is `{value}`: expected {want}"));
        if let Some(control) = text("METATF_TELEMETRY_CONTROL") {
            self.control = if control.is_empty() { NONE.to_owned() } else { control };
        }
        if let Some(filename) = get("METATF_TELEMETRY_FILENAME").filter(|name| !name.is_empty()) {
            // A file name in the environment only names the trace; it does not enable any kinds.
            if self.kinds(false).is_empty() {
                self.control = NONE.to_owned();
            }
            self.filename = Some(filename.into());
        }
        if let Some(folder) = get("METATF_TELEMETRY_FOLDER").filter(|name| !name.is_empty()) {
            self.place = Place::Folder(folder.into());
        }
        if let Some(policy) = text("METATF_TELEMETRY_POLICY") {
            self.policy = Policy::named(&policy)
                .ok_or_else(|| wrong("METATF_TELEMETRY_POLICY", &policy, "`drop`, `block` or `overwrite`"))?;
        }
        if let Some(memory) = text("METATF_TELEMETRY_MEMORY") {
            match memory.as_str() {
                "core" => self.place = Place::Core,
                "shared" => {}
                other => return Err(wrong("METATF_TELEMETRY_MEMORY", other, "`core` or `shared`")),
            }
        }
        if let Some(bytes) = text("METATF_TELEMETRY_RING") {
            let parsed = bytes.parse().map_err(|_| wrong("METATF_TELEMETRY_RING", &bytes, "a number of bytes"))?;
            self.ring_bytes = parsed;
        }
        if let Some(patience) = text("METATF_TELEMETRY_PATIENCE") {
            let parsed =
                patience.parse().map_err(|_| wrong("METATF_TELEMETRY_PATIENCE", &patience, "a number of seconds"))?;
            self.patience = Duration::from_secs(parsed);
        }
        if let Some(threads) = text("METATF_TELEMETRY_THREADS") {
            let parsed = threads.parse().map_err(|_| wrong("METATF_TELEMETRY_THREADS", &threads, "a number"))?;
            self.threads = parsed;
        }
        if let Some(sinks) = text("METATF_TELEMETRY_SINKS") {
            let items = sinks.split(';').map(str::trim).filter(|item| !item.is_empty());
            let parsed = items.map(|item| sink(item).ok_or(item)).collect::<Result<_, _>>();
            let want = "items `POLICY PLACE` separated by `;`, where POLICY is `drop`, `block` or `overwrite`, and \
                        PLACE is tcp://HOST:PORT, unix://PATH or a file path";
            self.sinks = parsed.map_err(|item| wrong("METATF_TELEMETRY_SINKS", item, want))?;
        }
        Ok(self)
    }

    /// Returns the kinds that are enabled at the start. `has_sink` indicates whether the program provides a sink for
    /// the trace.
    pub(crate) fn kinds(&self, has_sink: bool) -> &str {
        match self.control.as_str() {
            "" if has_sink || self.filename.is_some() => "all",
            control => control,
        }
    }

    /// Returns the policy for full rings, which is the strictest policy of all sinks. Without a drain, the newest
    /// events are kept.
    pub(crate) fn ring_policy(&self, further: &[Policy]) -> Policy {
        if cfg!(not(feature = "drain")) {
            return Policy::Overwrite;
        }
        let all = || further.iter().chain([&self.policy]);
        let any = |wanted| all().any(|policy| *policy == wanted);
        if any(Policy::Block) {
            Policy::Block
        } else if any(Policy::Drop) {
            Policy::Drop
        } else {
            Policy::Overwrite
        }
    }

    /// Checks the numbers.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let bytes = self.ring_bytes;
        if !bytes.is_power_of_two() || !(RING_LEAST..=RING_MOST).contains(&bytes) {
            return Err(Error::Setting(format!(
                "the ring size is {bytes} bytes: expected a power of two from 65536 to 8388608"
            )));
        }
        if !(1..=RINGS_MOST).contains(&self.threads) {
            let threads = self.threads;
            return Err(Error::Setting(format!("the number of threads is {threads}: expected 1 to {RINGS_MOST}")));
        }
        Ok(())
    }
}

/// Parses an additional sink.
fn sink(item: &str) -> Option<(Policy, SinkPlace)> {
    let (policy, place) = item.split_once(' ')?;
    let place = place.trim();
    let place = match place.split_once("://") {
        Some(("tcp", address)) if address.contains(':') => SinkPlace::Tcp(address.to_owned()),
        Some(("unix", path)) if !path.is_empty() => SinkPlace::Unix(path.into()),
        Some(_) => return None,
        None => SinkPlace::File(place.into()),
    };
    Some((Policy::named(policy)?, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<Settings, Error> {
        let settings = Settings::default().with(|asked| (asked == name).then(|| value.into()))?;
        settings.check().map(|()| settings)
    }

    #[test]
    fn the_environment_has_the_last_word() {
        assert_eq!(with("METATF_TELEMETRY_POLICY", "overwrite").unwrap().policy, Policy::Overwrite);
        assert_eq!(with("METATF_TELEMETRY_MEMORY", "core").unwrap().place, Place::Core);
        assert_eq!(with("METATF_TELEMETRY_RING", "65536").unwrap().ring_bytes, 65536);
        assert_eq!(with("METATF_TELEMETRY_PATIENCE", "60").unwrap().patience, Duration::from_secs(60));
        assert_eq!(with("METATF_TELEMETRY_CONTROL", "all").unwrap().control, "all");
        assert_eq!(with("METATF_TELEMETRY_FILENAME", "").unwrap().filename, None);
    }

    #[test]
    fn a_path_of_the_program_turns_kinds_on() {
        let of = |filename: Option<&str>, control: &str, environment: &[(&str, &str)]| {
            let program =
                Settings { filename: filename.map(PathBuf::from), control: control.to_owned(), ..Settings::default() };
            let get = |asked: &str| environment.iter().find(|(name, _)| *name == asked).map(|(_, value)| value.into());
            let settings = program.with(get).unwrap();
            [false, true].map(|has_sink| settings.kinds(has_sink).to_owned())
        };
        let (control, filename) = ("METATF_TELEMETRY_CONTROL", "METATF_TELEMETRY_FILENAME");
        assert_eq!(of(None, "", &[]), ["", "all"]);
        assert_eq!(of(Some("x.mtf"), "", &[]), ["all", "all"]);
        assert_eq!(of(Some("x.mtf"), "", &[(filename, "y.mtf")]), ["all", "all"]);
        assert_eq!(
            of(None, "", &[(filename, "y.mtf")]),
            ["none", "none"],
            "a path of the environment turns nothing on"
        );
        assert_eq!(of(Some("x.mtf"), "Pool", &[]), ["Pool", "Pool"]);
        assert_eq!(of(Some("x.mtf"), "", &[(control, "Pool")]), ["Pool", "Pool"]);
        assert_eq!(of(Some("x.mtf"), "", &[(control, "")]), ["none", "none"]);
    }

    #[test]
    fn values_that_cannot_be_name_their_variable() {
        for name in
            ["POLICY", "RING", "THREADS", "PATIENCE", "MEMORY", "SINKS"].map(|name| format!("METATF_TELEMETRY_{name}"))
        {
            let error = with(&name, "many").unwrap_err().to_string();
            assert!(error.contains(&name) && error.contains("`many`"), "{error}");
        }
        assert!(with("METATF_TELEMETRY_RING", "100000").is_err());
        assert!(with("METATF_TELEMETRY_THREADS", "0").is_err());
    }
}
