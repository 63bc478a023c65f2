//! The guest contract (`docs/guest-contract.md`): the recorder uses no more of its host program's resources than the
//! page states.
//!
//! The tests compare the page with the machine code of the object in `hatf` and with a program that calls the most
//! important hooks in difficult circumstances.
#![expect(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use hatf_host::record::RECORDER;
use hatf_trace::forms::TraceReader;
use hatf_trace::{EventKind, EventSource as _, Item};
use metatf_test::Folder;

use crate::attach::Recording;
use crate::common::object_code::{ObjectCode, Target};
use crate::common::{compiled, hatf};

const PAGE: &str = "../../docs/guest-contract.md";

fn object() -> ObjectCode {
    ObjectCode::read(RECORDER)
}

/// A row of the table on the page.
struct Row {
    /// Bytes of stack; `None` if the function runs on its own stack or only once.
    stack: Option<u64>,
    /// Condition for taking the locks of the loader and the allocator: `never`, `modules` or `yes`.
    loader: String,
}

/// Reads the table of bounds.
fn rows() -> BTreeMap<String, Row> {
    let page = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE)).unwrap();
    let mut rows = BTreeMap::new();
    let table = page.split("## Bounds").nth(1).unwrap().split("\n## ").next().unwrap();
    for line in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        for name in cells[0].split('`').skip(1).step_by(2) {
            let row = Row {
                stack: cells[1].replace(',', "").parse().ok(),
                loader: cells[2].split(':').next().unwrap().to_owned(),
            };
            assert!(rows.insert(name.to_owned(), row).is_none(), "{name} is there twice");
        }
    }
    rows
}

/// Returns the functions that the table can list: exported functions, and callbacks of the C library.
fn functions(code: &ObjectCode) -> BTreeMap<String, u64> {
    let mut functions = code.exports.clone();
    for name in [
        "hooks::fork::before_fork",
        "hooks::fork::after_fork_in_child",
        "hooks::threads::on_start",
        "hooks::exit::at_exit",
        "hooks::control::on_toggle",
        "hooks::control::on_dump",
        "session::thread_end::on_exit",
        "attach::constructor::constructor",
    ] {
        let [function] = code.named(name)[..] else { panic!("{name} is not there once") };
        functions.insert(name.rsplit("::").next().unwrap().to_owned(), function);
    }
    functions
}

/// Maximum bytes of stack of a hook that records Python frames.
const PYTHON: u64 = 8192;

/// Functions that a hook reaches only in the circumstances that the page excludes from its bound.
const EXCEPTIONS: [(&str, &str); 2] = [
    ("elf::real::look_up", "runs once, before there is a second thread"),
    (
        "stacks::own_stack::on_callers_stack",
        "runs if there is no memory for another stack, signals cannot be blocked, or the caller's stack is known to have the room",
    ),
];

#[test]
fn no_hook_takes_more_of_the_stack_than_the_page_says() {
    let (code, rows) = (object(), rows());
    let functions = functions(&code);
    let missing: Vec<_> = functions.keys().filter(|name| !rows.contains_key(*name)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
    let gone: Vec<_> = rows.keys().filter(|name| !functions.contains_key(*name)).collect();
    assert!(gone.is_empty(), "on the page, and not in the object: {gone:?}");
    for (name, _) in EXCEPTIONS {
        assert!(!code.named(name).is_empty(), "{name} is not in the object");
    }
    let is_exception = |name: &str| EXCEPTIONS.iter().any(|(exception, _)| *exception == name);
    let mut wrong = Vec::new();
    for (name, Row { stack, .. }) in &rows {
        let Some(most) = *stack else { continue };
        let without = |name: &str| is_exception(name) || name == "stacks::capture::walk_python";
        for (most, (bytes, path)) in [
            (most, code.deepest(functions[name], &without)),
            (PYTHON.max(most), code.deepest(functions[name], &is_exception)),
        ] {
            if bytes > most {
                wrong.push(format!("{name}: {bytes} bytes, by {}", path.join(" > ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Work on the recorder's own stacks fits on them.
#[test]
fn own_stacks_are_large_enough() {
    let code = object();
    let work = code.named("platform::own_stack::run_on::call");
    assert!(work.len() >= 2, "{work:?}");
    let mut sizes = Vec::new();
    for function in work {
        let (bytes, path) = code.deepest(function, &|name| name == "elf::real::look_up");
        let begins = path.iter().any(|name| name.starts_with("session::") || name.starts_with("attach::"));
        // A quarter is reserved for C library functions.
        let room = if begins { 256 * 1024 } else { 16 * 1024 };
        assert!(bytes <= room / 4 * 3, "{bytes} bytes, by {}", path.join(" > "));
        sizes.push(begins);
    }
    assert!(sizes.contains(&true) && sizes.contains(&false), "{sizes:?}");
}

/// Functions with calls through a register, and the targets of these calls. No target is a function of the object to
/// which the contract applies.
const UNKNOWN: [(&str, &str); 15] = [
    ("_exit", "the C library's function of this name"),
    ("_Exit", "the C library's function of this name"),
    ("dlclose", "the C library's function of this name"),
    ("dlopen", "jumps to the C library's function"),
    ("dlsym", "jumps to the C library's function"),
    ("execl", "jumps to the C library's function"),
    ("execlp", "jumps to the C library's function"),
    ("__cxa_allocate_exception", "jumps to the C++ library's function"),
    ("hooks::longjmp::jump", "the C library's function"),
    ("hooks::exec::with_short", "the C library's exec or posix_spawn, which its caller passes on"),
    ("hooks::exit::register", "on_exit of the C library"),
    ("hooks::fork::register", "pthread_atfork of the C library"),
    ("hatf_thread_start", "jumps to the routine of the program's thread"),
    ("platform::own_stack::on_stack", "run_on::call, which own_stacks_are_large_enough looks at"),
    ("attach::linked::entry::entry", "the program's own allocator"),
];

#[test]
fn every_call_is_known() {
    let code = object();
    assert!(code.uncovered.is_empty(), "code of no function: {:x?}", code.uncovered);
    let mut wrong = Vec::new();
    for function in code.functions.values() {
        // C++ `operator new` jumps to the throwing function, which it looks up first.
        let is_new = function.name.starts_with("hooks::cxx::NEW");
        let may = is_new || UNKNOWN.iter().any(|(name, _)| *name == function.name);
        if !may && function.calls.iter().any(|call| call.target == Target::Unknown) {
            wrong.push(format!("{}: a call through a register", function.name));
        }
        // Only this function sets the stack pointer to another stack.
        if let Some(why) = function.unclear.as_ref().filter(|_| function.name != "platform::own_stack::on_stack") {
            wrong.push(format!("{}: {why}", function.name));
        }
        // Variables contain real functions of the C and C++ libraries, of an allocator or of Python.
        for call in &function.calls {
            if let Target::Variable(name) = &call.target {
                let known = [
                    "elf::real::pointers::",
                    "hooks::cxx::",
                    "accesses::blocks::behind::",
                    "stacks::unwind::FIND",
                    "stacks::python::THREAD_STATE",
                ];
                if !known.iter().any(|known| name.starts_with(known)) {
                    wrong.push(format!("{}: calls what {name} holds", function.name));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Functions that take a lock of the loader or of an allocator.
const LOCKS: [&str; 14] = [
    "dlsym",
    "dlvsym",
    "dlopen",
    "dlclose",
    "dlerror",
    "dladdr",
    "dl_iterate_phdr",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "memalign",
    "posix_memalign",
    "__tls_get_addr",
];

#[test]
fn no_hook_takes_a_lock_that_the_page_does_not_name() {
    let (code, rows) = (object(), rows());
    let functions = functions(&code);
    let mut wrong = Vec::new();
    for (name, Row { loader, .. }) in &rows {
        let stops: &[&str] = match &**loader {
            "never" => &["elf::real::look_up"],
            "modules" => &["elf::real::look_up", "elf::redirected::look"],
            "yes" => continue,
            other => panic!("{name}: `{other}` in the table"),
        };
        code.reach(
            functions[name],
            |function| stops.contains(&function),
            |function, path| {
                if stops.contains(&&*function.name) {
                    return;
                }
                for call in &function.calls {
                    let callee = match &call.target {
                        Target::Import(callee) => callee,
                        Target::Own(target) => match code.functions.get(target) {
                            Some(callee) => &callee.name,
                            None => continue,
                        },
                        _ => continue,
                    };
                    // A hook may call the hook of an equivalent function, as `cfree` calls `free`.
                    let is_hook = path.len() == 1 && code.exports.contains_key(callee);
                    if LOCKS.contains(&callee.as_str()) && !is_hook {
                        wrong.push(format!("{name}: {} calls {callee}", path.join(" > ")));
                    }
                }
            },
        );
    }
    // A forked child begins its session on its own stack.
    for function in code.named("platform::own_stack::run_on::call") {
        code.reach(
            function,
            |_| false,
            |function, path| {
                for call in &function.calls {
                    if let Target::Import(callee) = &call.target
                        && LOCKS.contains(&callee.as_str())
                    {
                        wrong.push(format!("{} calls {callee}", path.join(" > ")));
                    }
                }
            },
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Parses the bytes of stack that `guest.c` prints.
fn taken(text: &str) -> BTreeMap<String, i64> {
    let line = |line: &str| line.rsplit_once(": ").map(|(what, bytes)| (what.to_owned(), bytes.parse().unwrap()));
    text.lines().filter_map(line).collect()
}

/// Maximum additional bytes of stack per call: while it is recorded, and after `hatf` has detached.
const RECORDED: i64 = 3072;
const DETACHED: i64 = 1024;

fn compare(alone: &BTreeMap<String, i64>, recorded: &BTreeMap<String, i64>, more: i64, options: &[&str]) {
    assert_eq!(alone.keys().collect::<Vec<_>>(), recorded.keys().collect::<Vec<_>>());
    for (what, bytes) in recorded {
        let most = if what.contains("fork") { 600 } else { more };
        let more = if what.contains("KiB that 30 programs") { 16 } else { most };
        assert!(bytes - alone[what] <= more, "{options:?}: {what}: {bytes}, and alone {}", alone[what]);
    }
}

/// Every hook works on small stacks, in a forked child while another thread holds the loader's lock, in a `vfork` child
/// and at the end of a thread.
#[test]
fn every_hook_in_every_circumstance() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "guest", &["-O1"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    let alone = metatf_test::run(&mut Command::new(&program)).exits(0).text();
    let alone = taken(&alone);
    assert!(alone.len() > 100, "{alone:?}");
    for options in [&[][..], &["--stacks"], &["--pages", "--usable"], &["--no-follow"]] {
        let command = ["record", "-o", &trace].into_iter().chain(options.iter().copied());
        let run = hatf(command.chain(["--", &program])).exits(0);
        assert!(run.err.contains(" 0 lost"), "{options:?}: {}", run.err);
        compare(&alone, &taken(&run.text()), RECORDED, options);
    }
}

/// After `hatf` has detached, each function uses at most 1 KiB more stack than without a recorder.
#[test]
fn every_function_after_detaching() {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "guest", &["-O1"]) else { return };
    let alone = taken(&metatf_test::run(&mut Command::new(&program)).exits(0).text());
    for options in [&[][..], &["--stacks"]] {
        let mut guest =
            Command::new(&program).arg("wait").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (mut input, mut output) = (guest.stdin.take().unwrap(), guest.stdout.take().unwrap());
        output.read_exact(&mut [0; 6]).unwrap();
        Recording::of(&guest.id().to_string(), &folder.path("trace.mtf"), options).interrupted();
        input.write_all(b"go\n").unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        assert!(guest.wait().unwrap().success(), "{options:?}: {text}");
        compare(&alone, &taken(&text), DETACHED, options);
    }
}

/// A round of `stepped.c`: the interruption, the interrupted call, the number of instructions between interruptions,
/// and options.
type Stepped<'a> = (&'a str, &'a str, usize, &'a [&'a str]);

/// Interrupts recorded calls between two instructions with a signal, a fork or a kill, at least `least` times. The
/// interval is a number of instructions, which is divided by `METATF_FINER`.
fn step(calls: &[Stepped<'_>], least: usize) {
    let folder = Folder::new();
    let Some(program) = compiled(&folder, "stepped", &["-O1", "-fno-builtin"]) else { return };
    let (program, trace) = (program.display().to_string(), folder.path("trace.mtf"));
    let finer: usize = std::env::var("METATF_FINER").map_or(1, |finer| finer.parse().unwrap());
    for (what, call, stride, options) in calls {
        let stride = (stride / finer).max(1).to_string();
        let what_is_done = format!("{what} {call} {options:?}");
        let command = ["record", "-o", &trace].into_iter().chain(options.iter().copied());
        let run = hatf(command.chain(["--", &program, what, call, &stride]));
        if run.status == 77 {
            return metatf_test::skip("no process may be traced here");
        }
        assert_eq!(run.status, 0, "{what_is_done}: {}", run.err);
        let rounds: usize = run.text().split(' ').next().unwrap().parse().unwrap();
        assert!(rounds >= least, "{what_is_done}: {rounds}");
        assert!(!run.err.contains(" lost") || run.err.contains(" 0 lost"), "{what_is_done}: {}", run.err);
        let traces = std::fs::read_dir(Path::new(&trace).with_extension("processes")).into_iter().flatten();
        let traces: Vec<_> =
            traces.map(|entry| entry.unwrap().path()).filter(|path| path.extension().unwrap() == "mtf").collect();
        assert!(!traces.is_empty(), "{what_is_done}");
        for trace in traces {
            whole(&trace, &what_is_done);
        }
    }
}

#[test]
fn between_each_two_instructions() {
    step(
        &[
            ("signal", "malloc", 1, &[]),
            ("signal", "realloc", 1, &[]),
            ("signal", "malloc", 3, &["--stacks"]),
            ("signal", "deep", 17, &["--stacks"]),
            ("signal", "exec", 31, &[]),
            ("signal", "map", 5, &["--pages"]),
            ("signal", "vfork", 1, &[]),
            ("signal", "spawn", 19, &[]),
            ("signal", "thread", 53, &[]),
            ("signal", "unload", 97, &[]),
            ("fork", "malloc", 3, &[]),
            ("fork", "deep", 31, &["--stacks"]),
            ("fork", "exec", 43, &[]),
            ("fork", "map", 43, &["--pages"]),
            ("fork", "spawn", 19, &[]),
            ("kill", "malloc", 7, &[]),
            ("kill", "vfork", 23, &[]),
            ("kill", "spawn", 19, &[]),
            ("kill", "map", 57, &["--pages"]),
            ("kill", "unload", 97, &[]),
            ("kill", "deep", 199, &["--stacks"]),
        ],
        12,
    );
}

/// The first block of the thread is complete, and about four of five further blocks are in the sample.
#[test]
fn between_each_two_instructions_of_short_paths() {
    let calls: [Stepped<'_>; 6] = [
        ("signal", "malloc", 1, &["--sample", "64"]),
        ("signal", "realloc", 1, &["--sample", "64"]),
        ("signal", "malloc", 1, &["--start-off"]),
        ("fork", "malloc", 2, &["--sample", "64"]),
        ("fork", "malloc", 1, &["--start-off"]),
        ("kill", "malloc", 2, &["--sample", "64", "--stacks"]),
    ];
    step(&calls, 6);
}

/// Stepping continues in the forked child, which begins its recording and ends with `_exit`. There are hundreds of
/// thousands of steps, each of which takes microseconds.
#[test]
fn between_two_instructions_of_a_forked_child() {
    step(&[("signal", "fork", 2003, &[]), ("kill", "fork", 2503, &["--stacks"])], 2);
}

/// Checks that a trace of one process allocates no live address again.
fn whole(trace: &Path, what: &str) {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut live = BTreeSet::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        let (begins, ends) = match event.kind {
            EventKind::Call(call) | EventKind::ReallocEnd(call) => (call.address, call.old),
            EventKind::Free { address } | EventKind::ReallocBegin { old: address } => (0, address),
            _ => continue,
        };
        live.remove(&ends);
        assert!(begins == 0 || live.insert(begins), "{what}: {:x} begins twice in {}", begins, trace.display());
    }
}
