//! Recording of a running process until it ends or this process is interrupted.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use hatf_record::{Conditions, Work};

use super::set_up::SetUp;
use super::signals::Forwarding;
use crate::record::attach;
use crate::record::options::RecordOptions;
use crate::record::order::{MemorySampler, MemorySamples};
use crate::record::processes::{
    Control, ControlSignals, Drain, DumpInto, End, EndedSpool, LastProgram, NotRecordedProcesses, OnDrop, OtherProcess,
    Outcome, Process, began, is_alive,
};
use crate::record::program::Plans;
use crate::record::spool::{Keeper, Naps, READY_FIRST, Returned};
use hatf_trace::event::EventSink;
use hatf_trace::{Error, Result};

/// Records a process that is already running. Returns when it has ended, or when this process is interrupted; the
/// recorded process then continues without being recorded. Processes that it creates are not recorded.
///
/// # Errors
/// [`Error::Trace`] if the process cannot be recorded or could not be released, and [`Error::System`] if the spool or
/// the recorder could not be set up.
pub fn record_process(process: u32, sink: &mut dyn EventSink, options: RecordOptions<'_>) -> Result<Outcome> {
    // This comes first, because an interrupt that ended this process now would leave a spool behind.
    let interrupts = Forwarding::begin();
    let command = attach::command(process)?;
    let set_up = SetUp::make(&command, &options)?;
    let SetUp { file, library, clock, origin, .. } = &set_up;
    let (clock, spool) = (*clock, set_up.spool());
    let header = spool.header();
    header.follow.store(0, Ordering::Relaxed);
    header.process.store(process, Ordering::Relaxed);
    header.set(Conditions::INJECTED);

    let returned = Returned::new(header);
    let samples = MemorySamples::default();
    let mut sampler = MemorySampler::new(header, &samples, clock);
    let keeper = Keeper::new(file, spool, &returned, READY_FIRST);
    let take = options.dump;
    let dump = move |number, give: DumpInto<'_>| take.map_or((), |take| take(number, give));
    let mut encode = set_up.encode(&samples, sink);
    let control = Control::new(options.control, file.folder().path(), clock);
    let signals = ControlSignals::take(options.toggle_signal, options.dump_signal);
    let plans = Plans::new(file);
    let began = began(process);
    // Nothing is recorded until all calls reach the hooks.
    header.ask(true);
    let give_up = || interrupts.interrupted();
    attach::attach(process, Path::new(library.path()), &file.path(), !options.start_off, &give_up)?;
    let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        // If a sink panics, other threads must not wait for events that will never arrive.
        let _stop = OnDrop(|| {
            ended.store(true, Ordering::SeqCst);
            returned.stop();
            control.stop();
        });
        scope.spawn(|| keeper.run(|process, woken| sampler.tend(process, woken || control.is_watched())));
        scope.spawn(|| control.run(header));
        let detached = scope.spawn(|| {
            let _woken = control.alarm.wake(header, None);
            let (mut detached, mut naps) = (Ok(()), Naps::new());
            loop {
                let word = header.lie_down(Work::Processes);
                if ended.load(Ordering::SeqCst) {
                    break;
                }
                if interrupts.interrupted() {
                    // After this, everything that the process recorded is in the spool.
                    detached = attach::detach(process);
                    stop.store(true, Ordering::SeqCst);
                    control.alarm.ring_all();
                    break;
                }
                let _ = header.sleep(Work::Processes, word, naps.next_length());
            }
            detached
        });
        encode.sink.try_to(|_| options.started.map_or(Ok(()), |started| started()));
        let other = OtherProcess { id: process, began, stop: &stop, header, asked: Instant::now() };
        let drain = Drain {
            keeping: set_up.keeping(options.keep, &dump),
            spool,
            encode,
            returned: &returned,
            control: &control,
            process: Process::Other(other),
            clock,
            samples: &samples,
            group: options.group.max(1),
            flush: options.flush,
            flushed: 0,
            last_program: LastProgram::default(),
            plans: &plans,
        };
        let outcome = drain.run(origin, || ended.store(true, Ordering::SeqCst));
        ended.store(true, Ordering::SeqCst);
        returned.stop();
        control.stop();
        let detached =
            detached.join().unwrap_or_else(|_| Err(Error::Trace("an internal thread of hatf has failed".into())));
        Ok::<_, Error>((outcome?, detached))
    });
    drop((signals, interrupts));
    // If the process could not be released, its hooks detect that nobody reads.
    header.closed.store(1, Ordering::SeqCst);
    let ((end, recorded), detached) = outcome?;
    let code = if let End::Exit(status) = end { i32::from(status) } else { 0 };
    let gone = !is_alive(process, began);
    let follow_errors = detached.err().filter(|_| !gone).into_iter().collect();
    let (status, spool) = (ExitStatus::from_raw(code << 8), EndedSpool::new(set_up.file));
    let not_followed = NotRecordedProcesses::default();
    Ok(Outcome { status, recorded, followed: 0, not_followed, follow_errors, refused: None, spool })
}
