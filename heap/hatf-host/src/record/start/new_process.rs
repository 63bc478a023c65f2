//! Recording of a program from its start.

use std::ffi::{OsStr, OsString};
use std::sync::atomic::Ordering;

use hatf_record::{Header, NotFollowed};

use super::command;
use super::set_up::SetUp;
use super::signals::Forwarding;
use crate::record::options::RecordOptions;
use crate::record::order::{MemorySampler, MemorySamples};
use crate::record::processes::{
    Control, ControlSignals, Drain, DumpInto, End, EndedSpool, LastProgram, NotRecordedProcesses, OnDrop, Outcome,
    Process, Progress, Shared,
};
use crate::record::program::Plans;
use crate::record::spool::{Keeper, READY_FIRST, Returned};
use hatf_trace::event::EventSink;
use hatf_trace::{Error, Result};

/// Runs `command` (a program and its arguments) and passes its heap events to `sink` while it runs. Returns when the
/// program has ended and all events have been passed on.
///
/// The program inherits standard input, output and error. Interrupt and termination signals that a process sends to
/// this one are forwarded to the program.
///
/// # Errors
/// [`Error::Start`] if the program could not be run, and [`Error::System`] if the spool or the recorder could not be
/// set up. A failing sink is not an error here: see [`sink_error`](crate::record::Recorded::sink_error).
pub fn record(command: &[OsString], sink: &mut dyn EventSink) -> Result<Outcome> {
    record_with(command, sink, RecordOptions::default())
}

/// Does the same as [`record`], with options. Raises the limit on open files for this process; the program starts with
/// the original limit.
///
/// # Errors
/// Returns an error in the same cases as [`record`].
pub fn record_with(command: &[OsString], sink: &mut dyn EventSink, options: RecordOptions<'_>) -> Result<Outcome> {
    // This comes first, because a signal that arrives before the program runs is intended for the program, too.
    let forwarding = Forwarding::begin();
    let set_up = SetUp::make(command, &options)?;
    let SetUp { file, clock, start, origin, .. } = &set_up;
    let (clock, spool) = (*clock, set_up.spool());

    let program = command.first().map_or(OsStr::new(""), OsString::as_os_str);
    let mut child = command::prepare(command, &set_up, &options);
    let returned = Returned::new(spool.header());
    let samples = MemorySamples::default();
    let mut sampler = MemorySampler::new(spool.header(), &samples, clock);
    let keeper = Keeper::new(file, spool, &returned, READY_FIRST);
    let take = options.dump;
    let dump = move |number, give: DumpInto<'_>| take.map_or((), |take| take(number, give));
    let mut encode = set_up.encode(&samples, sink);
    let control = Control::new(options.control, file.folder().path(), clock);
    let plans = Plans::new(file);
    let shared = options.follower.map(|follower| Shared {
        follower,
        most: options.follow_most,
        control: &control,
        keep: options.keep,
        clock,
        start: *start,
        origin,
        group: options.group.max(1),
        flush: options.flush,
        first: spool,
        file,
        plans: &plans,
        progress: Progress::default(),
    });
    let signals = ControlSignals::take(options.toggle_signal, options.dump_signal);
    let (status, recorded, followed, not_followed, follow_errors) = std::thread::scope(|scope| {
        // If a sink panics, other threads must not wait for events that will never arrive.
        let _stop = OnDrop(|| {
            spool.header().closed.store(1, Ordering::SeqCst);
            shared.iter().for_each(Shared::stop);
            returned.stop();
            control.stop();
        });
        let held = forwarding.hold(&mut child);
        let child = child.spawn().map_err(|error| Error::Start(program.to_string_lossy().into_owned(), error))?;
        forwarding.to(child.id());
        drop(held);
        std::thread::Builder::new()
            .name("hatf-keeper".to_owned())
            .spawn_scoped(scope, || {
                keeper.run(|process, woken| sampler.tend(process, woken || control.is_watched()));
            })
            .map_err(Error::system("a thread"))?;
        scope.spawn(|| control.run(spool.header()));
        let forwarding = &forwarding;
        let following =
            shared.as_ref().map(|shared| scope.spawn(move || shared.run(scope, || forwarding.interrupted())));
        encode.sink.try_to(|_| options.started.map_or(Ok(()), |started| started()));
        let drain = Drain {
            keeping: set_up.keeping(options.keep, &dump),
            spool,
            encode,
            returned: &returned,
            control: &control,
            process: Process::Started(child),
            clock,
            samples: &samples,
            group: options.group.max(1),
            flush: options.flush,
            flushed: 0,
            last_program: LastProgram::default(),
            plans: &plans,
        };
        let outcome = drain.run(origin, || forwarding.child_is_gone());
        returned.stop();
        let forks = outcome.as_ref().map_or(0, |(_, recorded)| recorded.forks);
        shared.iter().for_each(|shared| shared.first_has_ended(forks));
        let (followed, programs) = following.and_then(|following| following.join().ok()).unwrap_or_default();
        control.stop();
        drop(signals);
        // The spool is closed only now, because new processes check this flag while other processes are running.
        spool.header().closed.store(1, Ordering::SeqCst);
        let (end, recorded) = outcome?;
        let End::Status(status) = end else {
            return Err(Error::Trace("the exit status of the program is unknown".into()));
        };
        let unheard = shared.as_ref().map_or(0, Shared::unheard);
        let others = not_followed(spool.header(), shared.is_some(), unheard);
        let not_followed = NotRecordedProcesses { programs, ..others };
        Ok((status, recorded, followed, not_followed, shared.as_ref().map(Shared::take_errors).unwrap_or_default()))
    })?;
    let refused = set_up.file.refusal();
    let spool = EndedSpool::new(set_up.file);
    Ok(Outcome { status, recorded, followed, not_followed, follow_errors, refused, spool })
}

/// Returns the minimum number of processes that were not recorded, and the reasons.
fn not_followed(header: &Header, follows: bool, unheard: u32) -> NotRecordedProcesses {
    let others = header.other_processes.load(Ordering::Relaxed);
    if !follows {
        // Each process is noticed when it is forked or when it loads the recorder.
        let count = header.forks.load(Ordering::Relaxed).max(others);
        return NotRecordedProcesses { count, ..NotRecordedProcesses::default() };
    }
    let reasons = header.not_followed_why.load(Ordering::Relaxed);
    NotRecordedProcesses {
        count: header.not_followed.load(Ordering::Relaxed).saturating_add(others),
        reasons: NotFollowed::ALL.into_iter().filter(|why| reasons & why.bit() != 0).collect(),
        unheard,
        programs: Vec::new(),
    }
}
