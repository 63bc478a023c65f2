//! Control of the terminal. The terminal is always restored: at the end, after a panic, and before a signal ends or
//! stops the process.
//!
//! Signal handlers make only async-signal-safe system calls.

use std::io::{self, BufWriter, Write};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use rustix::stdio::stdout;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

use hatf_trace::{Error, Result};

/// Sequence that switches to the alternate screen and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[2J";
/// Sequence that resets attributes, shows the cursor and leaves the alternate screen.
const LEAVE: &[u8] = b"\x1b[0m\x1b[?25h\x1b[?1049l";

/// Previous state of the terminal. It is never freed, because a signal handler may read it at any time.
static BEFORE: AtomicPtr<Termios> = AtomicPtr::new(std::ptr::null_mut());
/// Whether the terminal is in use for the screen.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// Whether the process was stopped and continued, which requires redrawing the entire screen.
static STOPPED: AtomicBool = AtomicBool::new(false);

/// Signals that end the process.
const ENDS: [libc::c_int; 4] = [libc::SIGTERM, libc::SIGHUP, libc::SIGINT, libc::SIGQUIT];

/// Standard output, which no other part of the process locks.
struct Out;

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(stdout(), bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The terminal in screen mode, for as long as this value lives.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Out>>>,
}

impl Screen {
    /// Switches the terminal to screen mode.
    ///
    /// # Errors
    /// Returns an error if standard output is not a terminal.
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

    /// Draws a frame.
    ///
    /// # Errors
    /// Returns an error if the terminal is gone.
    pub fn draw(&mut self, draw: impl FnOnce(&mut ratatui::Frame<'_>)) -> Result<()> {
        if STOPPED.swap(false, Ordering::SeqCst) {
            enter();
            self.redraw()?;
        }
        // If a thread has panicked and restored the terminal, keep the panic message readable.
        if !TAKEN.load(Ordering::SeqCst) {
            return Err(Error::Trace("a hatf watch thread panicked".into()));
        }
        self.terminal.draw(draw).map(drop).map_err(Error::system("the terminal"))
    }

    /// Redraws the entire screen, in case another program has written to the terminal.
    ///
    /// # Errors
    /// Returns an error if the terminal is gone.
    pub fn redraw(&mut self) -> Result<()> {
        self.terminal.clear().map_err(Error::system("the terminal"))
    }

    /// Restores the terminal and stops the process until the shell continues it.
    pub fn suspend(&self) {
        // SAFETY: sends a signal to this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGTSTP) };
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Switches the terminal to screen mode, in which keys are read one by one and not echoed.
fn enter() {
    // SAFETY: the pointer is null or to a leaked value.
    let Some(before) = (unsafe { BEFORE.load(Ordering::SeqCst).as_ref() }) else { return };
    let mut raw = before.clone();
    raw.make_raw();
    let _ = tcsetattr(stdout(), OptionalActions::Now, &raw);
    write(ENTER);
    TAKEN.store(true, Ordering::SeqCst);
}

/// Restores the terminal if it is in screen mode. Can be called in a signal handler.
pub fn give_back() {
    if !TAKEN.swap(false, Ordering::SeqCst) {
        return;
    }
    write(LEAVE);
    // SAFETY: the pointer is null or to a leaked value.
    if let Some(before) = unsafe { BEFORE.load(Ordering::SeqCst).as_ref() } {
        let _ = tcsetattr(stdout(), OptionalActions::Now, before);
    }
}

fn write(bytes: &[u8]) {
    // Output that the terminal does not accept is lost.
    let _ = rustix::io::write(stdout(), bytes);
}

/// Installs handlers that restore the terminal before a signal or a panic ends the process.
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
    // SAFETY: zero is a valid value of this structure of integers and pointers; the handlers make only async-signal-safe
    // system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

extern "C" fn on_end(signal: libc::c_int) {
    give_back();
    // SAFETY: raises the signal, whose default action takes effect when the handler returns.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

extern "C" fn on_stop(_: libc::c_int) {
    give_back();
    // SAFETY: stops this process, as the signal would have done.
    unsafe { libc::raise(libc::SIGSTOP) };
}

extern "C" fn on_go_on(_: libc::c_int) {
    STOPPED.store(true, Ordering::SeqCst);
}
