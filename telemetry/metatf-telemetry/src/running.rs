//! Starts, runs and ends telemetry. This includes the drain thread, control by other processes, forks and panics.
//!
//! This file exceeds 400 lines, because a start, an end and a fork undo each other's work and must be read together.

use crate::sync::Ordering::{AcqRel, Acquire, Relaxed};
use crate::sync::{AtomicPtr, AtomicU64};
use std::path::{Path, PathBuf};
use std::sync::Once;

use crate::clock::{Clock, monotonic};
use crate::control::{self, Change};
use crate::error::Error;
use crate::folder;
use crate::guard;
use crate::mapping::Shape;
use crate::settings::{Policy, Settings};
use crate::slot::Slot;
use crate::strings::{STRINGS, StringId};
use crate::sys;
use crate::table::Table;
use crate::telemetry::{Chosen, ENDED, IDLE, MUTED, RUNNING, STARTING, Slots, Telemetry};

#[cfg(feature = "drain")]
use crate::drainer::{Drainer, Target};
#[cfg(feature = "drain")]
use crate::queued;
#[cfg(feature = "drain")]
use crate::trace_file::{TraceSink, numbered};

/// Interval in milliseconds at which the drain checks for work.
const TICK: u32 = 100;
/// Maximum time in nanoseconds that events wait before they are written.
const FLUSH_EVERY: u64 = 1_000_000_000;
/// Maximum time in milliseconds to wait for the drain when writing or ending the trace.
#[cfg(feature = "drain")]
const PATIENCE: u64 = 30_000;

/// Sinks provided by the program.
#[cfg(feature = "drain")]
#[derive(Default)]
struct Sinks {
    /// The sink that replaces the file.
    own: Option<TraceSink>,
    further: Vec<(Policy, TraceSink)>,
}

/// The head of the list of started telemetries, linked by `next`.
static FIRST: AtomicPtr<Telemetry> = AtomicPtr::new(core::ptr::null_mut());

/// A guard that ends telemetry when dropped.
#[must_use = "telemetry ends when this is dropped"]
#[derive(Debug)]
pub struct Guard(&'static Telemetry);

impl Guard {
    /// Writes all events and ends the trace.
    ///
    /// # Errors
    /// Returns the trace error.
    pub fn finish(self) -> Result<(), Error> {
        let telemetry = self.0;
        core::mem::forget(self);
        telemetry.stop()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Err(error) = self.0.stop() {
            eprintln!("{error}");
        }
    }
}

impl core::fmt::Debug for Telemetry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Telemetry").field("name", &self.name).field("control", &self.control()).finish_non_exhaustive()
    }
}

impl Telemetry {
    /// Starts telemetry with the settings in the environment (see [`Settings::with_environment`]). Without
    /// `METATF_TELEMETRY_CONTROL`, all kinds are disabled, and no trace is created before an event of an enabled kind.
    /// If the program itself sets the trace, with [`Settings::filename`] or [`start_to`](Self::start_to), all kinds are
    /// enabled by default.
    ///
    /// # Errors
    /// Returns an error if telemetry was started before, a variable has an invalid value, or a file cannot be created.
    pub fn start(&'static self) -> Result<Guard, Error> {
        self.start_with(Settings::default().with_environment()?)
    }

    /// Starts telemetry with settings chosen by the program.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    pub fn start_with(&'static self, settings: Settings) -> Result<Guard, Error> {
        self.run(
            settings,
            #[cfg(feature = "drain")]
            Sinks::default(),
        )
    }

    /// Starts telemetry with additional traces of the same events, written to sinks of the program. Each trace has its
    /// own policy (see [`Settings::sinks`]).
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    #[cfg(feature = "drain")]
    pub fn start_with_sinks(
        &'static self,
        settings: Settings,
        sinks: Vec<(Policy, TraceSink)>,
    ) -> Result<Guard, Error> {
        self.run(settings, Sinks { own: None, further: sinks })
    }

    /// Starts telemetry with a sink for the trace, such as a socket, a pipe or memory
    /// ([`Forward`](metatf::container::Forward) converts any writer to a sink). Forked children write to files. The
    /// drain writes to the sink directly, so pass a potentially slow sink to
    /// [`start_with_sinks`](Self::start_with_sinks) instead.
    ///
    /// # Errors
    /// Returns the same errors as [`start`](Self::start).
    #[cfg(feature = "drain")]
    pub fn start_to(&'static self, settings: Settings, sink: TraceSink) -> Result<Guard, Error> {
        self.run(settings, Sinks { own: Some(sink), further: Vec::new() })
    }

    fn run(&'static self, settings: Settings, #[cfg(feature = "drain")] sinks: Sinks) -> Result<Guard, Error> {
        settings.check()?;
        let table = Table::parse(self.table)?;
        #[cfg(feature = "drain")]
        let has_sink = sinks.own.is_some();
        #[cfg(not(feature = "drain"))]
        let has_sink = false;
        let word = control::parse(settings.kinds(has_sink), &table.kinds())?;
        if self.state.compare_exchange(IDLE, STARTING, AcqRel, Relaxed).is_err() {
            return Err(Error::Started);
        }
        let done = sys::without_limit_signal(|| {
            self.begin(
                &settings,
                word,
                table,
                #[cfg(feature = "drain")]
                sinks,
            )
        });
        match done {
            Ok(()) => Ok(Guard(self)),
            Err(error) => {
                self.state.store(IDLE, crate::sync::Ordering::Release);
                Err(error)
            }
        }
    }

    fn begin(
        &'static self,
        settings: &Settings,
        word: u64,
        table: Table,
        #[cfg(feature = "drain")] sinks: Sinks,
    ) -> Result<(), Error> {
        let drains = settings.drain && cfg!(feature = "drain");
        let chosen = self.choose(Chosen::new(settings, self.trace_path(settings), drains));
        #[cfg(feature = "drain")]
        let given = sinks.further.iter().map(|(policy, _)| *policy);
        #[cfg(not(feature = "drain"))]
        let given = std::iter::empty();
        #[cfg(not(feature = "drain"))]
        if !settings.sinks.is_empty() {
            return Err(Error::Setting("additional sinks require the feature `drain` of metatf-telemetry".to_owned()));
        }
        let policies: Vec<_> = settings.sinks.iter().map(|(policy, _)| *policy).chain(given).collect();
        let policy = settings.ring_policy(&policies);
        let texts = [self.dtd.len(), self.table.len(), self.name.len(), chosen.trace.as_os_str().len()];
        let shape =
            Shape::new(settings.threads, settings.ring_bytes, texts.iter().sum::<usize>() as u64, &table, policy);
        if let Some(folder) = &chosen.folder {
            folder::sweep(&path_of_bytes(folder.as_bytes()));
        }
        self.make(shape, chosen, Clock::choose()).map_err(|number| {
            let path = self.buffers_path(chosen).map_or_else(PathBuf::new, |path| path_of_bytes(path.bytes()));
            Error::File("create the buffers", path, unmade(number, shape.bytes()))
        })?;
        #[cfg(feature = "drain")]
        let opened = self.open_drain(table, sinks.own, word != 0);
        #[cfg(feature = "drain")]
        if let Err(error) = opened.and_then(|()| self.add_sinks(settings, sinks.further, policy)) {
            self.remove_buffers();
            self.forget();
            return Err(error);
        }
        self.register();
        self.state.store(RUNNING, crate::sync::Ordering::Release);
        self.count_lost();
        // Copy the strings that other threads have added since the buffers were created.
        self.copy_strings();
        #[cfg(feature = "drain")]
        if drains {
            self.spawn();
        }
        self.set_control(word);
        Ok(())
    }

    /// Sets the enabled kinds by name, as in the environment. If the names have signs, as in `+Pool -Arena`, only these
    /// kinds change.
    ///
    /// # Errors
    /// Returns an error if the DTD does not declare a name, or if only some of the names have a sign.
    pub fn set_kinds(&self, kinds: &str) -> Result<(), Error> {
        let table = Table::parse(self.table)?;
        self.change_control(Change::parse(kinds, &table.kinds())?);
        Ok(())
    }

    /// Returns the path of the trace, before the process IDs of children are inserted.
    fn trace_path(&self, settings: &Settings) -> PathBuf {
        let stem = Path::new(self.name).file_stem().unwrap_or_default().to_string_lossy();
        self.path_of(&settings.filename.clone().unwrap_or_else(|| format!("{stem}.%p.mtf").into()))
    }

    /// Inserts the process ID and the name of the DTD into a path.
    fn path_of(&self, path: &Path) -> PathBuf {
        let stem = Path::new(self.name).file_stem().unwrap_or_default().to_string_lossy();
        let path = match path.to_str() {
            Some(text) => text.replace("%p", &sys::process().to_string()).replace("%n", &stem).into(),
            None => path.to_owned(),
        };
        std::path::absolute(&path).unwrap_or(path)
    }

    /// Returns the path of this process's buffers, if they are in a file that exists.
    #[must_use]
    pub fn buffers(&self) -> Option<PathBuf> {
        self.mapping()?;
        self.chosen().and_then(|chosen| self.buffers_path(chosen)).map(|path| path_of_bytes(path.bytes()))
    }

    fn remove_buffers(&self) {
        if let Some(path) = self.chosen().and_then(|chosen| self.buffers_path(chosen)) {
            sys::remove(path.c_str());
        }
    }

    /// Calls `f` with the events of this thread disabled.
    #[cfg(feature = "drain")]
    fn muted<T>(&self, f: impl FnOnce() -> T) -> T {
        let mut before = [0; 2];
        (self.slots)(&mut |slots| {
            for (slot, before) in slots.iter().zip(&mut before) {
                *before = slot.busy.load(Relaxed);
                slot.busy.store(*before | 1, Relaxed);
            }
        });
        let result = sys::without_limit_signal(f);
        (self.slots)(&mut |slots| {
            slots.iter().zip(before).for_each(|(slot, before)| slot.busy.store(before, Relaxed));
        });
        result
    }

    /// Counts the events emitted before rings were available.
    fn count_lost(&self) {
        if let Some(mapping) = self.mapping() {
            mapping.header().refused.fetch_add(self.lost.swap(0, Relaxed), Relaxed);
        }
    }

    /// Adds the telemetry to the list that is processed at forks and at process exit.
    fn register(&'static self) {
        let this = core::ptr::from_ref(self).cast_mut();
        let mut first = FIRST.load(Relaxed);
        loop {
            self.next.store(first, Relaxed);
            match FIRST.compare_exchange(first, this, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(other) => first = other,
            }
        }
        CONTROL.store(core::ptr::from_ref(self.control_word()).cast_mut(), Relaxed);
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            #[cfg(not(target_feature = "crt-static"))]
            sys::stay_loaded((thread_ends as *const ()).cast());
            sys::at_thread_end(thread_ends);
            guard::install(is_in_buffers);
            // SAFETY: these functions of the program have no arguments and do not unwind.
            unsafe {
                libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child));
                libc::atexit(at_exit);
            }
        });
    }

    pub(crate) fn copy_strings(&self) {
        if let Some(mapping) = self.mapping() {
            mapping.copy_strings();
        }
    }

    /// Applies a change to the enabled kinds if another process has requested one.
    fn obey(&self, seen: &mut u32) {
        if let Some(mapping) = self.mapping() {
            let header = mapping.header();
            let count = header.wanted_count.load(Acquire);
            if count != *seen {
                *seen = count;
                self.set_control(header.wanted.load(Relaxed));
            }
        }
    }
}

#[cfg(feature = "drain")]
impl Telemetry {
    /// Creates the drain of this process.
    fn open_drain(&self, table: Table, sink: Option<TraceSink>, at_once: bool) -> Result<(), Error> {
        let (Some(mapping), Some(chosen)) = (self.mapping(), self.chosen()) else { return Err(Error::NotRunning) };
        let buffers = self.buffers().unwrap_or_default().display().to_string();
        let path = if chosen.process == sys::process() {
            chosen.trace.clone()
        } else {
            numbered(&chosen.trace, sys::process())
        };
        let target = Target { name: self.name, dtd: self.dtd, path, buffers };
        let mut drainer = Drainer::new(target, table, mapping, self.clock(), sink);
        if at_once {
            drainer.open()?;
        }
        self.drain.with(PATIENCE, |place| *place = Some(Box::new(drainer)));
        Ok(())
    }

    /// Opens the additional sinks.
    fn add_sinks(&self, settings: &Settings, given: Vec<(Policy, TraceSink)>, ring: Policy) -> Result<(), Error> {
        let places = settings.sinks.iter().map(|(policy, place)| {
            let (name, sink) = queued::open(place, |path| self.path_of(path))?;
            Ok((*policy, name, sink))
        });
        let named = given.into_iter().enumerate();
        let named = named.map(|(index, (policy, sink))| Ok((policy, format!("sink {}", index + 1), sink)));
        let all = places.chain(named).collect::<Result<Vec<_>, Error>>()?;
        let slots = self.slots;
        let add = |drainer: &mut Option<Box<Drainer>>| {
            let Some(drainer) = drainer else { return Err(Error::NotRunning) };
            if settings.policy == Policy::Overwrite && ring != Policy::Overwrite {
                drainer.record();
            }
            all.into_iter().try_for_each(|(policy, name, sink)| drainer.add(name, policy, sink, move || mute(slots)))
        };
        self.drain.with(PATIENCE, add).unwrap_or(Err(Error::NotRunning))
    }

    /// Calls `f` with the drainer. A forked child with buffers first creates its own drainer.
    fn with_drainer<T>(
        &self,
        patience: u64,
        f: impl FnOnce(&mut Option<Box<Drainer>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.muted(|| {
            let is_there = self.drain.with(patience, |drainer| drainer.is_some()).unwrap_or(true);
            if !is_there && self.mapping().is_some() && self.state.load(Acquire) == RUNNING {
                self.open_drain(Table::parse(self.table)?, None, false)?;
            }
            self.drain.with(patience, f).unwrap_or(Err(Error::NotRunning))
        })
    }

    /// Writes all events emitted so far to the trace and flushes it to the operating system. Does nothing with
    /// [`Policy::Overwrite`].
    ///
    /// # Errors
    /// Returns the trace error.
    pub fn flush(&self) -> Result<(), Error> {
        self.flush_within(PATIENCE)
    }

    fn flush_within(&self, patience: u64) -> Result<(), Error> {
        let Some(mapping) = self.mapping() else { return Ok(()) };
        if mapping.shape.policy == Policy::Overwrite {
            return Ok(());
        }
        self.with_drainer(patience, |drainer| match drainer {
            Some(drainer) => {
                let done = drainer.batch(true);
                if matches!(done, Ok(true)) {
                    self.moved_on();
                }
                drainer.flush_queued();
                done.map(drop)
            }
            None => Err(Error::NotRunning),
        })
    }

    /// Writes the events in the buffers to a separate trace, without removing them from the buffers. This records the
    /// events that led to the current state. Returns the number of events.
    ///
    /// # Errors
    /// Returns an error if telemetry is not running, or the trace cannot be written.
    pub fn dump(&self, path: impl AsRef<Path>) -> Result<u64, Error> {
        self.with_drainer(PATIENCE, |drainer| match drainer {
            Some(drainer) => drainer.dump(path.as_ref()),
            None => Err(Error::NotRunning),
        })
    }

    /// Writes all events and ends the trace. No events are emitted afterwards. A second call does nothing.
    ///
    /// # Errors
    /// Returns the trace error, in which case the buffers are kept for `metatfc telemetry`.
    pub fn stop(&self) -> Result<(), Error> {
        if self.state.compare_exchange(RUNNING, ENDED, AcqRel, Relaxed).is_err() {
            return Ok(());
        }
        self.set_control(0);
        sys::wake(&self.wake);
        if self.mapping().is_none() {
            return Ok(());
        }
        let finished = self.muted(|| self.end());
        self.tell_dropped();
        match &finished {
            Ok(()) => self.remove_buffers(),
            Err(_) => {
                if let Some(path) = self.buffers() {
                    eprintln!("telemetry: some events were not written to the trace and remain in {}", path.display());
                }
            }
        }
        finished
    }

    /// Prints the number of dropped events, unless [`Settings::quiet`] is set.
    fn tell_dropped(&self) {
        let dropped = self.mapping().map_or(0, |mapping| mapping.dropped());
        if dropped != 0 && self.chosen().is_some_and(|chosen| !chosen.quiet) {
            eprintln!(
                "telemetry: {dropped} events were dropped, and the trace shows where; to lose fewer events, set \
                 METATF_TELEMETRY_POLICY=block or a larger METATF_TELEMETRY_RING"
            );
        }
    }

    fn end(&self) -> Result<(), Error> {
        let taken = self.drain.with(PATIENCE, Option::take).flatten();
        let taken = match taken {
            Some(drainer) => Some(drainer),
            None => {
                self.open_drain(Table::parse(self.table)?, None, false)?;
                self.drain.with(PATIENCE, Option::take).flatten()
            }
        };
        taken.map_or(Err(Error::NotRunning), |drainer| drainer.finish())
    }

    /// Starts the drain thread.
    fn spawn(&'static self) {
        let thread = std::thread::Builder::new().name("telemetry".to_owned());
        if let Err(error) = thread.spawn(|| self.work()) {
            eprintln!(
                "telemetry: cannot start the drain thread: {error}; events will be written when the program ends"
            );
        }
    }

    /// Drains until telemetry ends.
    fn work(&self) {
        // Signal handlers should run in other threads. The events of this thread itself are disabled, because draining
        // them would never end.
        sys::block_signals();
        mute(self.slots);
        let (mut seen, mut is_over) = (0, false);
        let mut last = monotonic();
        while self.state.load(Acquire) == RUNNING {
            let wake = self.wake.load(Relaxed);
            let full = !is_over && self.is_filling();
            self.obey(&mut seen);
            let is_due = monotonic().saturating_sub(last) >= FLUSH_EVERY;
            if full || is_due {
                last = monotonic();
                match self.work_once() {
                    Ok(done) => is_over = done,
                    Err(error) => eprintln!("{error}"),
                }
            } else {
                self.sleeping.store(1, crate::sync::Ordering::SeqCst);
                sys::wait(&self.wake, wake, TICK);
                self.sleeping.store(0, Relaxed);
            }
        }
    }

    /// Drains once. Returns whether draining has ended, because the trace is lost or the rings are corrupt.
    fn work_once(&self) -> Result<bool, Error> {
        let Some(mapping) = self.mapping() else { return Ok(false) };
        self.with_drainer(PATIENCE, |drainer| {
            let Some(drainer) = drainer else { return Ok(false) };
            if mapping.find_left() {
                self.moved_on();
            }
            if mapping.shape.policy == Policy::Overwrite {
                return Ok(false);
            }
            if drainer.batch(false)? {
                self.moved_on();
            } else if !drainer.is_over() {
                // All remaining events are still too young to drain.
                sys::pause();
            }
            Ok(drainer.is_over())
        })
    }

    /// Returns whether any ring is a quarter full.
    fn is_filling(&self) -> bool {
        let Some(mapping) = self.mapping() else { return false };
        mapping.shape.policy != Policy::Overwrite && mapping.rings().any(|ring| ring.own.held() >= ring.bytes / 4)
    }
}

#[cfg(not(feature = "drain"))]
impl Telemetry {
    /// Ends telemetry. The buffers are kept for `metatfc telemetry`.
    ///
    /// # Errors
    /// Never returns an error.
    pub fn stop(&self) -> Result<(), Error> {
        if self.state.compare_exchange(RUNNING, ENDED, AcqRel, Relaxed).is_ok() {
            self.set_control(0);
        }
        Ok(())
    }
}

/// Returns the reason why buffers could not be created, and a remedy.
fn unmade(number: i32, bytes: u64) -> std::io::Error {
    let error = std::io::Error::from_raw_os_error(number);
    match number {
        libc::EFBIG | libc::ENOSPC => std::io::Error::new(
            error.kind(),
            format!(
                "{error}; the buffers need {bytes} bytes: reduce METATF_TELEMETRY_THREADS or METATF_TELEMETRY_RING, or \
                 set METATF_TELEMETRY_MEMORY=core, which uses no file"
            ),
        ),
        _ => error,
    }
}

/// Disables the events of this thread, which are neither written nor counted.
fn mute(slots: Slots) {
    slots(&mut |slots| slots.iter().for_each(|slot| slot.busy.store(MUTED, Relaxed)));
}

fn path_of_bytes(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

/// Returns all started telemetries, starting with the most recent one.
pub(crate) fn all() -> impl Iterator<Item = &'static Telemetry> {
    let mut next = FIRST.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: the list contains only references to static telemetries, and entries are never removed.
        let telemetry = unsafe { next.as_ref() }?;
        next = telemetry.next.load(Relaxed);
        Some(telemetry)
    })
}

/// Calls `f` for each started telemetry.
fn each(f: impl FnMut(&'static Telemetry)) {
    all().for_each(f);
}

/// Calls `f` for each slot of the calling thread.
fn each_slot(f: fn(&Slot)) {
    each(|telemetry| (telemetry.slots)(&mut |slots| slots.iter().for_each(f)));
}

/// Returns whether an address is in mapped buffers.
fn is_in_buffers(address: usize) -> bool {
    all().filter_map(|telemetry| telemetry.mapping()).any(|mapping| mapping.has(address))
}

extern "C" fn thread_ends(_: *mut core::ffi::c_void) {
    each(|telemetry| (telemetry.slots)(&mut |slots| slots.iter().for_each(|slot| telemetry.leave(slot))));
}

extern "C" fn before_fork() {
    each_slot(|slot| slot.busy.store(slot.busy.load(Relaxed) | FORKING, Relaxed));
}

extern "C" fn in_parent() {
    each_slot(|slot| slot.busy.store(slot.busy.load(Relaxed) & !FORKING, Relaxed));
}

/// Detaches the child from the parent's buffers. The first event of the child creates new buffers.
extern "C" fn in_child() {
    STRINGS.forget_lock();
    each(|telemetry| {
        telemetry.forget();
        // SAFETY: a forked child has a single thread. That thread was not draining when it called `fork`, because a
        // thread is muted while it drains.
        #[cfg(feature = "drain")]
        unsafe {
            telemetry.drain.forget();
        }
        (telemetry.slots)(&mut |slots| {
            for slot in slots {
                slot.detach();
                slot.busy.store(slot.busy.load(Relaxed) & !FORKING, Relaxed);
            }
        });
        #[cfg(feature = "drain")]
        if telemetry.control() != 0 && telemetry.chosen().is_some_and(|chosen| chosen.drains) {
            telemetry.spawn();
        }
    });
}

/// The bit of a slot whose thread is forking.
const FORKING: u32 = 4;

extern "C" fn at_exit() {
    each(|telemetry| {
        if let Err(error) = telemetry.stop() {
            eprintln!("{error}");
        }
    });
}

/// Installs a panic hook that writes all events to the trace before it calls the program's own hook. With
/// [`Policy::Overwrite`], the events are written to the trace's path when the program ends.
#[cfg(feature = "drain")]
pub fn install_panic_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        each(|telemetry| {
            // The panicking thread may be the drain thread.
            let _ = telemetry.flush_within(2000);
        });
        before(info);
    }));
}

/// Returns the ID of a string. All telemetry of the process is notified of a new string. For generated code.
#[must_use]
pub fn intern(text: &str) -> StringId {
    if cfg!(feature = "off") {
        return StringId::NONE;
    }
    STRINGS.intern(text, || each(Telemetry::copy_strings))
}

/// Sets the enabled kinds of all telemetry in the process. `kinds` contains names, a number, `all` or `none`. Each
/// telemetry ignores names that its DTD does not declare.
pub fn set_all(kinds: &str) {
    each(|telemetry| {
        let Ok(table) = Table::parse(telemetry.table) else { return };
        let words = kinds.split([' ', ',']).filter_map(|word| control::parse(word, &table.kinds()).ok());
        telemetry.set_control(words.fold(0, |all, word| all | word));
    });
}

/// The control word of the telemetry that was started last. To change it in a debugger:
/// `print *(unsigned long *)metatf_telemetry_control = 3`.
#[unsafe(export_name = "metatf_telemetry_control")]
static CONTROL: AtomicPtr<AtomicU64> = AtomicPtr::new(core::ptr::null_mut());
