//! The terminal: taken for the screen, and given back in each case: at the end, after a panic, and before a signal ends or stops us.
//!
//! What is done in a signal's handler are system calls that may be made there.

use std::io::{self, BufWriter, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::stdio::stdout;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::{Error, Result};

/// To the alternate screen, without a cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Back, with plain letters and a cursor.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// How the terminal was before. It is never freed: a handler may look at it at any time.
static BEFORE: AtomicPtr<Termios> = AtomicPtr::new(std::ptr::null_mut());
/// The terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// We were stopped, and go on: all has to be drawn again.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Signals that end us.
const ENDS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];

/// Standard output, of which no other part of the process has a lock.
struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal as a screen, for as long as this lives.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Out>>>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Standard output is not a terminal.
    pub fn take() -> Result<Self> {
        let problem = || Error::system("the terminal");
        let before = tcgetattr(stdout()).map_err(|error| problem()(error.into()))?;
        if BEFORE.load(Ordering::SeqCst).is_null() {
            BEFORE.store(Box::into_raw(Box::new(before)), Ordering::SeqCst);
        }
        static HANDLERS: Once = Once::new();
        HANDLERS.call_once(handle);
        enter();
        let terminal = Terminal::new(CrosstermBackend::new(BufWriter::new(Out))).map_err(problem())?;
        Ok(Self { terminal })
    }

    /// Draws.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> Result<()> {
        if STOPPED.swap(false, Ordering::SeqCst) {
            enter();
            self.redraw()?;
        }
        // A thread has panicked, which has given it back: its message stays to be read.
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(Error::Trace("a thread of hatf watch has ended".into()));
        }
        self.terminal.draw(draw).map(drop).map_err(Error::system("the terminal"))
    }

    /// Has all be drawn again, whatever somebody else has written there.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn redraw(&mut self) -> Result<()> {
        self.terminal.clear().map_err(Error::system("the terminal"))
    }

    /// Gives the terminal to the shell until that has us go on.
    pub fn suspend(&self) {
        // SAFETY: a signal to this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTSTP) };
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Takes the terminal: keys come one by one, and are not printed.
fn enter() {
    // SAFETY: null, or what was leaked.
    let Some(before) = (unsafe { BEFORE.load(Ordering::SeqCst).as_ref() }) else { return };
    let mut raw = before.clone();
    raw.make_raw();
    let _ = tcsetattr(stdout(), OptionalActions::Now, &raw);
    write(ENTER);
    TAKEN.store(true, Ordering::SeqCst);
}

/// Gives the terminal back as it was, if it is ours. It may be called in a handler of a signal.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    write(LEAVE);
    // SAFETY: null, or what was leaked.
    if let Some(before) = unsafe { BEFORE.load(Ordering::SeqCst).as_ref() } {
        let _ = tcsetattr(stdout(), OptionalActions::Now, before);
    }
}

fn write(bytes: &[u8]) {
    // What a terminal does not take is lost.
    let _ = rustix::io::write(stdout(), bytes);
}

/// Has the terminal be given back before a signal or a panic ends us.
fn handle() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        give_back();
        before(panic);
    }));
    for signal in ENDS {
        set(signal, on_end);
    }
    set(libc::SIGTSTP, on_stop);
    set(libc::SIGCONT, on_go_on);
}

fn set(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: zero is a value of this structure of integers and pointers; the handlers make system calls that may be made there.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_end(signal: libc::c_int) {
    give_back();
    // SAFETY: the signal's own action, which it has when this returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn on_stop(_: libc::c_int) {
    give_back();
    // SAFETY: stops this process, as the signal would have.
    unsafe { libc::raise(libc::SIGSTOP) };
}

extern "C" fn on_go_on(_: libc::c_int) {
    STOPPED.store(true, Ordering::SeqCst);
}
