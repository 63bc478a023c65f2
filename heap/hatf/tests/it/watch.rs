//! `hatf watch`: its screen, and its effect on a program and its trace.
#![cfg(feature = "watch")]
#![expect(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::{compiled, hatf, invariants};
use hatf::watch::{
    Finder, Function, Functions, Panel, Reading, Shown, Snapshot, Snapshots, Sort, State, View, draw, follow,
};
use hatf_host::record::SpoolState;
use hatf_lab::sites::Amount;
use hatf_lab::statistics::Bucket;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use hatf_view::analysis::{Glance, MarkReport, ThreadReport, Timeline};
use hatf_view::calls::Folding;
use metatf_test::{Folder, PATIENCE, skip};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// Returns the content of a screen for a growing server.
fn shown() -> Shown {
    let mut timeline = Timeline::new(1 << 26);
    let mut resident = Timeline::new(1 << 26);
    for tick in 0..120_u64 {
        let at = tick * 100_000_000;
        timeline.note(at, 1_000_000 + tick * 70_000 + (tick % 12) * 40_000);
        if tick > 20 {
            resident.note(at, 6_000_000 + tick * 60_000);
        }
    }
    let mut glance = Glance { timeline, now: 11_900_000_000, ..Glance::default() };
    glance.live = Amount { blocks: 12_345, bytes: 9_770_000 };
    (glance.peak.bytes, glance.peak.time) = (9_800_000, 11_800_000_000);
    (glance.totals.records, glance.totals.allocs, glance.totals.lost) = (1_234_567, 620_000, 0);
    glance.sizes = [(0, 0, 3), (16, 31, 400_000), (32, 63, 200_000), (1024, 2047, 20_000), (1 << 20, (1 << 21) - 1, 1)]
        .map(|(from, to, count)| Bucket { from, to, count, bytes: count * from })
        .to_vec();
    let thread = |thread, name: &str, allocs| ThreadReport {
        thread,
        name: Some(name.to_owned()),
        allocs,
        bytes: allocs * 100,
        frees: allocs / 2,
        ..ThreadReport::default()
    };
    glance.threads = vec![thread(1, "server", 400_000), thread(2, "worker\u{1b}[2J", 220_000)];
    glance.marks = vec![MarkReport { name: "ready".into(), times: 1, first: 4 << 30, last: 4 << 30, live: 1 }];
    let function = |name: &str, live, blocks, growth| Function {
        name: name.to_owned(),
        live: Amount { blocks, bytes: live },
        allocated: Amount { blocks: blocks * 3, bytes: live * 4 },
        growth,
    };
    let rows = vec![
        function("parse_request at src/parse.c:88,91", 6_000_000, 9_000, 600_000),
        function("cache_insert at src/cache.c:42", 3_000_000, 300, 0),
        function("log_line at src/log.c:7", 700_000, 3_000, -20_480),
        function("evil\u{1b}[31m\nname", 70_000, 45, 0),
    ];
    let total = function("", 9_770_000, 12_345, 579_520);
    let over = Duration::from_secs(10);
    let functions = Functions { rows, total, count: 4, has_stacks: true, unnamed: 12, over };
    let spool =
        SpoolState { process: 1, backlog: 3 << 20, room: 1 << 30, dropped: 0, waits: 0, is_off: false, followed: 2 };
    let snapshot = Snapshot {
        program: "./server --port 8080 --workers 2 --config /etc/server.conf".to_owned(),
        state: State::Recorded,
        glance,
        rate: 98_765,
        spool: Some(spool),
        resident,
        warnings: Vec::new(),
    };
    let output = Some((1..=30).map(|line| format!("GET /page/{line} \u{1b}[32m200\u{1b}[0m")).collect());
    Shown { snapshot: Arc::new(snapshot), functions: Arc::new(functions), output }
}

fn screen(shown: &Shown, view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, shown, view)).unwrap();
    let text = terminal.backend().to_string();
    // The screen contains no control characters.
    assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
    text
}

#[test]
fn screens() {
    let shown = shown();
    let plain = View::default();
    insta::assert_snapshot!("watch_60x20", screen(&shown, &plain, 60, 20));
    insta::assert_snapshot!("watch_200x50", screen(&shown, &plain, 200, 50));
    let panels = [Panel::Sizes, Panel::Output, Panel::Help];
    let panels = panels.map(|panel| screen(&shown, &View { panel, ..View::default() }, 100, 30));
    insta::assert_snapshot!("watch_panels", panels.join("\n"));
    let view = View { sort: Sort::Growth, paused: true, scroll: 1, name: Some("rea".to_owned()), ..View::default() };
    insta::assert_snapshot!("watch_paused", screen(&shown, &view, 90, 20));
}

/// Screens can be drawn without data, with errors and without space.
#[test]
fn screens_of_little_and_of_errors() {
    let nothing = Shown::default();
    assert!(screen(&nothing, &View::default(), 80, 24).contains("waiting for the first events"));
    for (width, height) in [(1, 1), (39, 50), (40, 10), (41, 11), (110, 10), (500, 12), (60, 200)] {
        for panel in [Panel::Functions, Panel::Sizes, Panel::Output, Panel::Help] {
            let view = View { panel, scroll: usize::MAX, ..View::default() };
            screen(&nothing, &view, width, height);
            screen(&shown(), &view, width, height);
        }
    }
    let mut wrong = shown();
    let snapshot = Arc::make_mut(&mut wrong.snapshot);
    snapshot.state = State::Damaged("chunk 3: its sum is wrong".to_owned());
    snapshot.warnings = vec!["records are missing".to_owned()];
    snapshot.glance.totals.lost = 7;
    snapshot.glance.sampling = Some(512 << 10);
    Arc::make_mut(&mut wrong.functions).has_stacks = false;
    let text = screen(&wrong, &View::default(), 120, 24);
    for part in [
        "cannot continue reading: chunk 3",
        "records are missing",
        "7 lost",
        "sampled, one block per",
        "hatf record --stacks",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The numbers at the end of a trace are those of `hatf report`.
#[test]
fn numbers_are_those_of_a_report() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "watched", &["-O1"]) else { return };
    let (trace, stop) = (folder.path("w.mtf"), folder.path("stop"));
    std::fs::write(&stop, "").unwrap();
    let stacks = cfg!(target_arch = "x86_64");
    let options = ["record", "-q", if stacks { "--stacks" } else { "-q" }, "-o", &trace, "--"];
    hatf(options.into_iter().chain([program.to_str().unwrap(), &stop])).exits(3);
    let followed = follow(Path::new(&trace)).unwrap();
    let begun = Instant::now();
    while followed.about().reading == Reading::Going {
        assert!(begun.elapsed() < PATIENCE, "{:?}", followed.about());
        std::thread::sleep(Duration::from_millis(5));
    }
    let snapshot = Snapshots::new(Arc::clone(&followed)).snapshot(None);
    assert_eq!(snapshot.state, State::Ended(Some(hatf::watch::End::Exit(3))));
    let report: serde_json::Value =
        serde_json::from_slice(&hatf(["report", "--format", "json", &trace]).exits(0).out).unwrap();
    let glance = &snapshot.glance;
    let numbers = [glance.totals.records, glance.live.bytes, glance.live.blocks, glance.peak.bytes, glance.now];
    let places = ["/totals/records", "/still_live/bytes", "/still_live/blocks", "/peak/bytes", "/duration"];
    assert_eq!(numbers.map(serde_json::Value::from), places.map(|place| report.pointer(place).unwrap().clone()));
    let mut finder = Finder::new(Folding::default());
    finder.look(&followed);
    let functions = finder.functions();
    assert_eq!(functions.total.live.bytes, glance.live.bytes);
    assert_eq!(functions.rows.iter().map(|row| row.live.bytes).sum::<u64>(), glance.live.bytes);
    assert_eq!(functions.has_stacks, stacks);
    assert!(finder.unnamed() > 0 || !stacks);
}

#[test]
fn what_cannot_be_watched() {
    let folder = Folder::new();
    let trace = folder.path("t.mtf");
    hatf(["watch", "true"]).exits(2).says("standard output is not one: use hatf run PROGRAM");
    hatf(["watch"]).exits(2).says("PROGRAM|TRACE");
    assert!(!Path::new(&trace).exists());
}

/// A separate terminal that runs a command.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    /// Starts a shell command. Returns `None` if there is no tmux.
    fn start(folder: &Folder, width: u16, height: u16, command: &str) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        // The previous server takes some time to release its socket.
        let this = Self { socket: folder.join(format!("tmux{}", NEXT.fetch_add(1, Ordering::Relaxed))) };
        let size = ["-x".to_owned(), width.to_string(), "-y".to_owned(), height.to_string()];
        let mut tmux = this.command();
        tmux.args(["-f", "/dev/null", "new-session", "-d"]).args(size).arg(command);
        match tmux.status() {
            Ok(status) => assert!(status.success()),
            Err(_) => {
                skip("no tmux on this machine");
                return None;
            }
        }
        Some(this)
    }

    fn command(&self) -> Command {
        let mut tmux = Command::new("tmux");
        tmux.arg("-S").arg(&self.socket).env_remove("TMUX").env("SHELL", "/bin/sh").env("LC_ALL", "C.UTF-8");
        tmux
    }

    fn press(&self, keys: &[&str]) {
        assert!(self.command().arg("send-keys").args(keys).status().unwrap().success());
    }

    fn screen(&self) -> String {
        let output = self.command().args(["capture-pane", "-p"]).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Waits until the screen contains a string. Returns the screen.
    fn until(&self, text: &str) -> String {
        self.until_is(text, |screen| screen.contains(text))
    }

    fn until_is(&self, what: &str, is: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let screen = self.screen();
            if is(&screen) {
                return screen;
            }
            assert!(begun.elapsed() < PATIENCE, "{what}:\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = self.command().arg("kill-server").status();
    }
}

/// Returns a shell command that watches, then prints the exit status and whether the terminal reads lines again. The
/// file `pid` contains the process ID.
fn watch(folder: &Folder, arguments: &[&str]) -> String {
    let words = std::iter::once(env!("CARGO_BIN_EXE_hatf")).chain(["watch"]).chain(arguments.iter().copied());
    let (pid, words) = (folder.path("pid"), words.collect::<Vec<_>>().join(" "));
    format!("sh -c 'echo $$ > {pid}; exec {words}'; echo \"status $?\"; stty -a | grep -o ' icanon'; exec sleep 1000")
}

/// Returns the marks in a trace, lost events and the exit status.
fn messages(trace: &Path) -> Vec<String> {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut lines = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        match event.kind {
            EventKind::Mark { name } => lines.push(String::from_utf8_lossy(name).into_owned()),
            EventKind::Exit { status } => lines.push(format!("exit {status}")),
            EventKind::Lost { events } => lines.push(format!("lost {events}")),
            _ => {}
        }
    }
    lines
}

/// A program is watched, marked, left and watched again. It runs all the time, and its trace is complete.
#[test]
fn a_program_in_a_terminal() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "watched", &["-O1"]) else { return };
    let (trace, stop, program) = (folder.path("w.mtf"), folder.path("stop"), program.display().to_string());
    let Some(tmux) = Tmux::start(&folder, 100, 30, &watch(&folder, &["-o", &trace, "--", &program, &stop])) else {
        return;
    };
    let named = if cfg!(target_arch = "x86_64") { "grow at " } else { "unknown stack" };
    tmux.until_is("the function", |screen| screen.contains(named) && screen.contains("by live bytes"));
    tmux.press(&["s"]);
    tmux.until("by growth");
    tmux.press(&["o"]);
    // The program does not print over the screen.
    tmux.until_is("the output", |screen| screen.contains("program output") && screen.contains("\nround "));
    tmux.press(&["o"]);
    // A paused screen stays unchanged, but marks are set.
    tmux.press(&["p"]);
    let paused = tmux.until("PAUSED");
    tmux.press(&["m", "r", "e", "a", "d", "y", "Enter"]);
    tmux.until("mark ready");
    let line = |screen: &str| screen.lines().find(|line| line.contains(" events")).unwrap().to_owned();
    assert_eq!(line(&tmux.screen()), line(&paused));
    tmux.press(&["p"]);
    tmux.until_is("it goes on", |screen| !screen.contains("PAUSED") && line(screen) != line(&paused));
    tmux.until("mark ready at ");
    tmux.press(&["q"]);
    let left = tmux.until(" icanon");
    assert!(left.contains("still running; to return, run hatf watch") && left.contains("status 0"), "{left}");
    drop(tmux);
    // Again until the end, with another name of the trace.
    let Some(tmux) = Tmux::start(&folder, 60, 20, &watch(&folder, &[&trace])) else { return };
    tmux.until_is("the mark", |screen| screen.contains("running, ") && screen.contains("mark ready at "));
    tmux.press(&["m", "Enter"]);
    tmux.until("mark watch-1");
    tmux.press(&["w"]);
    tmux.until("wrote ");
    std::fs::write(&stop, "").unwrap();
    tmux.until("ended with status 3");
    tmux.press(&["q"]);
    let left = tmux.until("status 0");
    assert!(left.contains("never freed") && left.contains("hatf report"), "{left}");
    assert_eq!(messages(Path::new(&trace)), ["ready", "watch-1", "exit 3"]);
    assert_eq!(invariants::broken(Path::new(&trace)), [""; 0]);
    let page = std::fs::read_to_string(folder.join("w.now1.html")).unwrap();
    assert!(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"), "{}", &page[..80]);
    let printed = std::fs::read_to_string(folder.join("w.mtf.out")).unwrap();
    assert!(printed.starts_with("round 1\n") && printed.contains("it was told to stop"), "{printed}");
}

/// A key interrupts the program, and `hatf` exits with the program's status.
#[test]
fn an_interrupt_is_for_the_program() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "watched", &["-O1"]) else { return };
    let (trace, program) = (folder.path("w.mtf"), program.display().to_string());
    let Some(tmux) = Tmux::start(&folder, 80, 24, &watch(&folder, &["-o", &trace, "--", &program])) else { return };
    tmux.until("running, ");
    tmux.press(&["C-c"]);
    tmux.until("ended with status 4");
    tmux.press(&["q"]);
    tmux.until("status 4");
    assert_eq!(messages(Path::new(&trace)), ["exit 4"]);
}

/// Signals end the screen but not the recording. The terminal is restored except after `SIGKILL`.
#[test]
fn what_kills_the_screen_ends_no_recording() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "watched", &["-O1"]) else { return };
    let program = program.display().to_string();
    for (signal, status) in [("TERM", "status 143"), ("KILL", "status 137")] {
        let (trace, stop) = (folder.path(&format!("{signal}.mtf")), folder.path(&format!("{signal}.stop")));
        let Some(tmux) = Tmux::start(&folder, 80, 24, &watch(&folder, &["-o", &trace, "--", &program, &stop])) else {
            return;
        };
        tmux.until("running, ");
        let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
        assert!(Command::new("kill").args([&format!("-{signal}"), pid.trim()]).status().unwrap().success());
        tmux.until(status);
        if signal != "KILL" {
            tmux.until(" icanon");
        }
        drop(tmux);
        let rounds = || std::fs::read_to_string(format!("{trace}.out")).unwrap().lines().count();
        let before = rounds();
        std::fs::write(&stop, "").unwrap();
        let begun = Instant::now();
        while !std::fs::read_to_string(format!("{trace}.out")).unwrap().contains(" lost") {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(rounds() > before);
        assert_eq!(messages(Path::new(&trace)), ["exit 3"], "{signal}");
        assert_eq!(invariants::broken(Path::new(&trace)), [""; 0]);
    }
}
