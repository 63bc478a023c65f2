//! Messages that `hatf record` prints at the end.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::time::Duration;

use hatf_host::record::{Keep, LinkedIn, Outcome, UnrecordedProgram};
use metatf_cli::shown;

use super::options::{PythonBlocks, Record as Options};
use super::processes::Processes;
use crate::command::print_warning as print_message;

/// Maximum number of programs named because they were not recorded.
const PROGRAMS: usize = 5;

/// A written trace.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    pub(super) path: &'a Path,
    pub(super) bytes: u64,
    /// Whether the trace contains all recorded events.
    pub(super) is_whole: bool,
}

/// Facts known about the program before it ran.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// Whether the program cannot load the recorder. If so, the user has already been warned.
    pub(super) not_loaded: bool,
    /// The allocator linked into the program. If it could not be recorded, the user has been warned.
    pub(super) linked_in: Option<&'a LinkedIn>,
}

/// Warns that calls to an allocator are not recorded, and suggests a solution.
pub(super) fn print_not_recorded(linked_in: &LinkedIn) {
    print_message(&format!("{linked_in}{ADVICE}"));
}

const ADVICE: &str = "; link it as a shared library, or use hatf_record::Recording in Rust";

/// Prints the summary line and the warnings that were not printed before the program ran.
pub(super) fn print_summary(
    options: &Options,
    outcome: &Outcome,
    file: Option<Written<'_>>,
    processes: Option<&Processes<'_>>,
    known: Known<'_>,
) {
    if let Some(warning) = outcome.warning().filter(|_| !known.not_loaded || outcome.recorded.images > 0) {
        print_message(&warning);
    }
    let stackless = processes.map_or(0, Processes::stackless) + u64::from(outcome.recorded.stackless);
    if stackless > 0 {
        let what = if stackless == 1 { "trace has" } else { "traces have" };
        print_message(&format!(
            "{stackless} {what} no stacks: stacks require x86-64, glibc 2.35, and 300 KiB per process in the spool directory (--spool)"
        ));
    }
    if options.python.is_some() {
        warn_of_python(outcome, processes);
    }
    let missed = processes.map_or(0, Processes::stacks_missed) + outcome.recorded.stacks_missed;
    if missed > 0 {
        print_message(&format!(
            "{missed} stacks are missing, because the stack table is full. Its size is limited to a quarter of \
             --spool-size and to the free space in its directory (--spool). Increase --spool-size, record fewer blocks \
             with --sample, or record fewer frames with a smaller --stacks=DEPTH"
        ));
    }
    let allocations = processes.map_or(0, Processes::allocations) + outcome.recorded.allocations;
    let single = processes.map_or(0, Processes::single_frames) + outcome.recorded.single_frames;
    if single > allocations / 2 && options.stacks() > 1 {
        print_message(&format!(
            "most stacks have only one frame ({single} of {allocations}): the allocating code has no unwind tables (.eh_frame), \
             because it was generated at run time or built with -fno-asynchronous-unwind-tables"
        ));
    }
    warn_of_linked(options, outcome, processes, known);
    let left = processes.map_or(0, Processes::left) + u64::from(outcome.recorded.left);
    let mut became = processes.map(Processes::became).unwrap_or_default();
    became.extend(outcome.recorded.became.clone());
    if left > 0 {
        let what = if left == 1 { "process executed a program that" } else { "processes executed programs that" };
        let are_known = became.len() as u64 == left && became.iter().all(|program| program.reason.is_some());
        let reasons = if are_known {
            ""
        } else {
            ". Possible reasons: the program is static or set-user-ID, runs as a different user (su, setpriv), or has a \
             different root directory (chroot)"
        };
        print_message(&format!("{left} {what} did not load the recorder or could not open the spool{reasons}"));
    }
    became.extend(outcome.not_followed.programs.iter().cloned());
    print_unrecorded(&UnrecordedProgram::merged(became));
    if allocations == 0 && outcome.recorded.images > 0 {
        warn_of_names(options);
    }
    if outcome.recorded.is_off {
        print_message(if options.start_off && outcome.recorded.starts == 0 {
            "recording was never turned on: use --toggle-signal, --control, or hatf_start() in the program"
        } else {
            "recording was off when the program ended"
        });
    }
    if let (Some(kept), Some(Keep::Time(asked))) = (outcome.recorded.kept_short, options.keep) {
        let asked = Duration::from_nanos(asked);
        print_message(&format!(
            "kept only the last {:.3} s of the {:.3} s requested by --keep, because they fill half of the spool; to \
             keep more, increase --spool-size or choose a directory with more space with --spool",
            kept.as_secs_f64(),
            asked.as_secs_f64()
        ));
    }
    if let Some(error) = &outcome.recorded.not_lasting {
        print_message(&format!(
            "if the recorder had been killed, less than the part requested by --keep could have been recovered: {error}"
        ));
    }
    if options.quiet {
        return;
    }
    let mut line = format!("{} records", outcome.recorded.events);
    if let Some(Written { path, bytes, is_whole }) = file {
        line += &format!(", {bytes} bytes in {}", path.display());
        if !is_whole {
            line += &format!(", which contains at least {} of them", outcome.recorded.flushed);
        }
    }
    line += &match outcome.recorded.ended_early() {
        None => format!(", {} lost", outcome.recorded.lost),
        // Events of the program after recording ended are not counted.
        Some(_) => {
            format!(", {} lost before recording ended early; later events are not counted", outcome.recorded.lost)
        }
    };
    if let Some(signal) = outcome.status.signal() {
        line += &format!("; the program was killed by signal {signal}");
    }
    print_message(&line);
    if hides_its_objects(options) {
        print_message(match options.python {
            None => {
                "Python allocates small objects from its own arenas, which are not recorded: use --python to record \
                 arenas, functions and lines, or --python=objects to record each object, too"
            }
            Some(_) => {
                "each arena of Python's small objects is recorded as one block: use --python=objects to record each \
                 object, which takes several times as long"
            }
        });
    }
    if let Some(line) = processes.and_then(|processes| processes.summary()) {
        print_message(&line);
    }
    if outcome.not_followed.count > 0 {
        print_message(&outcome.not_followed.to_string());
    }
    if outcome.not_followed.unheard > 0 {
        print_message(&format!(
            "{} forked processes never reported: they ended before they could be recorded, or the fork failed",
            outcome.not_followed.unheard
        ));
    }
}

/// Names programs that were not recorded.
fn print_unrecorded(programs: &[UnrecordedProgram]) {
    for UnrecordedProgram { path, reason, processes, resident } in programs.iter().take(PROGRAMS) {
        let times = if *processes == 1 { String::new() } else { format!(", executed by {processes} processes,") };
        let reason = reason.map_or_else(String::new, |reason| format!(", because it {}", reason.phrase()));
        let resident = resident.map_or_else(String::new, |bytes| {
            format!("; at most {} of its memory were resident", metatf_page::units::bytes(bytes))
        });
        print_message(&shown(&format!("{}{times} was not recorded{reason}{resident}", path.display())));
    }
}

/// Warns about programs with a linked-in allocator whose calls were not recorded.
fn warn_of_linked(options: &Options, outcome: &Outcome, processes: Option<&Processes<'_>>, known: Known<'_>) {
    let mut unrecorded = outcome.recorded.unrecorded.clone();
    unrecorded.extend(processes.map(Processes::unrecorded).unwrap_or_default());
    let file = |path: &Path| std::fs::canonicalize(path).ok();
    // The user was told before the first program ran that its allocator cannot be recorded.
    let told = known.linked_in.filter(|first| first.is_refused()).and_then(|first| file(&first.program));
    unrecorded.retain(|linked_in| told.is_none() || file(&linked_in.program) != told);
    let mut counts: BTreeMap<&Path, (&LinkedIn, u64)> = BTreeMap::new();
    for linked_in in &unrecorded {
        counts.entry(&linked_in.program).or_insert((linked_in, 0)).1 += 1;
    }
    for (linked_in, processes) in counts.into_values() {
        let why = if options.no_linked_in {
            ", because of --no-linked-in"
        } else if linked_in.is_refused() {
            ""
        } else {
            ADVICE
        };
        let times =
            if processes == 1 { String::new() } else { format!("; {processes} processes executed the program") };
        print_message(&format!("{linked_in}{why}{times}"));
    }
}

/// Warns that nothing was recorded, possibly because no thread or module has the given names.
fn warn_of_names(options: &Options) {
    let named = [
        ("thread", "--only-threads", &options.only_threads, "hatf report on a recording without"),
        ("module", "--only-modules", &options.only_modules, "hatf sites on a recording with --stacks but without"),
    ];
    for (what, option, names, command) in named.into_iter().filter(|(_, _, names, _)| !names.is_empty()) {
        let names = names.join(",");
        print_message(&format!(
            "no {what} that {option}={names} matches allocated memory: to see the names, run {command} {option}"
        ));
    }
}

/// Warns if stacks contain no Python frames although Python frames were requested.
fn warn_of_python(outcome: &Outcome, processes: Option<&Processes<'_>>) {
    let mut versions = processes.map(Processes::pythons).unwrap_or_default();
    versions.extend(outcome.recorded.python);
    if versions.is_empty() {
        print_message("no Python was found: stacks contain only native frames");
    }
    if let Some(version) = versions.iter().find(|version| !version.is_known) {
        print_message(&format!(
            "stacks contain no Python frames for {version}: --python supports CPython 3.11, 3.12 and 3.13"
        ));
    }
}

/// Returns whether the program is Python and places small objects in its own arenas.
pub(in crate::command) fn hides_its_objects(options: &Options) -> bool {
    let name = options.command.first().and_then(|program| Path::new(program).file_name()).unwrap_or_default();
    let how = std::env::var_os("PYTHONMALLOC");
    let by_malloc =
        how.map_or(options.python == Some(PythonBlocks::Objects), |how| how == "malloc" || how == "malloc_debug");
    name.to_string_lossy().starts_with("python") && !by_malloc
}
