//! The programs that a process executed, and those whose allocations are missing in the trace.

use hatf_trace::event::UserMetadata;
use serde::Serialize;

/// Maximum number of programs kept. A process that executes more programs is probably a shell script's loop.
const PROGRAMS: usize = 100;

/// A program that a process executed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProgramReport {
    /// The path of the program file.
    pub path: String,
    /// The time at which the program started.
    pub began: u64,
    /// The peak of live bytes until the process executed the next program.
    pub peak: u64,
}

/// The last program that a process executed, if it did not load the recorder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UnrecordedProgram {
    /// The path of the program file, if known.
    pub path: Option<String>,
    /// The reason why the program did not load the recorder, if known. It completes a sentence that begins with "it".
    pub reason: Option<String>,
    /// The peak of its resident memory in bytes, if known.
    pub resident: Option<u64>,
}

/// A program that contains an allocator whose calls are not in the trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OwnAllocator {
    /// The path of the program file.
    pub path: String,
    /// A function of the allocator, or a description of how the recorder found the allocator.
    pub function: String,
}

/// The programs of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Programs {
    /// The recorded programs in the order of their execution, at most 100.
    pub recorded: Vec<ProgramReport>,
    /// The program that followed without being recorded, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unrecorded: Option<UnrecordedProgram>,
    /// The program with its own allocator, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub own_allocator: Option<OwnAllocator>,
}

impl Programs {
    /// Returns whether nothing is known about programs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recorded.is_empty() && self.are_recorded()
    }

    /// Returns whether the trace contains the calls of all programs to their allocators.
    #[must_use]
    pub fn are_recorded(&self) -> bool {
        self.unrecorded.is_none() && self.own_allocator.is_none()
    }

    pub(super) fn image(&mut self, path: &[u8], now: u64) {
        if self.recorded.len() < PROGRAMS {
            let path = String::from_utf8_lossy(path).into_owned();
            self.recorded.push(ProgramReport { path, began: now, peak: 0 });
        }
    }

    /// Sets the peak of the current program.
    pub(super) fn set_peak(&mut self, peak: u64) {
        self.recorded.last_mut().into_iter().for_each(|program| program.peak = program.peak.max(peak));
    }

    pub(super) fn user_metadata(&mut self, user_metadata: &UserMetadata) {
        let text = |value: &serde_json::Value| value.as_str().map(str::to_owned);
        if let Some(program) = user_metadata.get("unrecorded").filter(|program| program.is_object()) {
            self.unrecorded = Some(UnrecordedProgram {
                path: text(&program["program"]),
                reason: text(&program["reason"]),
                resident: program["resident"].as_u64(),
            });
        }
        if let Some(allocator) = user_metadata.get("own_allocator") {
            let (path, function) = (text(&allocator["program"]), text(&allocator["function"]));
            self.own_allocator = path.zip(function).map(|(path, function)| OwnAllocator { path, function });
        }
    }
}
