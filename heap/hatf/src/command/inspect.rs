//! `hatf inspect`: shows what the memory of a running process or of a core file consists of.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hatf_host::record::{ThreadRegisters, while_stopped};
use hatf_inspect::{
    Account, CoreFile, Heap, Inconsistency, Inspection, Mapping, Origin, ProcessMemory, Thread, read_heap,
    write_snapshot,
};
use hatf_trace::event::shell_words;
use hatf_trace::{Error, Result};
use metatf_cli::{FormatArgs, OutputArgs};

use super::output::show;
use super::written::write_trace;

/// Show what the memory of a running process or of a core file consists of, without a recording.
///
/// Resident memory is divided into live blocks, free memory that malloc_trim would return, free memory in pages with
/// live blocks, stacks, files and others. The first sentence states which kind is the largest, and what to do.
///
/// The heap of glibc's malloc is read from outside. The process stops meanwhile, for about a millisecond per megabyte,
/// and then continues. For other allocators, the report only lists the mappings.
///
/// A core file does not contain which pages were resident, so all pages except those that only contain zeros are
/// counted. gcore writes a core file of a running process.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf inspect 1234
  hatf inspect $(pgrep -n node)
  hatf inspect 1234 --format json | jq .account
  hatf inspect core.1234
  hatf inspect 1234 -o heap.mtf
  hatf fragmentation heap.mtf --at end           blocks that keep pages from being freed

Free memory that malloc_trim(0) would return can be returned at once, without changing the program:
  gdb -p 1234 -batch -ex 'call (int)malloc_trim(0)'

Exit status: 0 on success, 1 if the process or core file cannot be inspected or the heap does not
add up, 2 for a usage error.")]
pub(crate) struct Inspect {
    /// ID of the process, or the path of a core file of an x86-64 process.
    #[arg(value_name = "PID|CORE", value_parser = target)]
    target: Target,

    /// Also write the live blocks to this trace, which all commands can read. The trace lacks the history of the
    /// blocks, and contains usable sizes instead of requested ones.
    #[arg(short, long, value_name = "TRACE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: FormatArgs,
}

/// Maximum number of attempts. An attempt fails if a thread was stopped in the middle of a call to the allocator.
const ATTEMPTS: u64 = 10;
/// Number of attempts that end early if a thread was running code of the C library, which may be the allocator.
const CAUTIOUS: u64 = 3;
/// Maximum length of the command line in the report.
const COMMAND: usize = 80;

/// The process or core file to inspect.
#[derive(Clone)]
enum Target {
    Process(u32),
    Core(PathBuf),
}

/// Parses a process ID or a path. A number is never a path.
fn target(text: &str) -> std::result::Result<Target, String> {
    if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Ok(Target::Core(text.into()));
    }
    let process = text.parse().ok().filter(|process| *process > 0);
    process.map(Target::Process).ok_or_else(|| format!("expected a process ID from 1 to {}", u32::MAX))
}

/// The memory of a process.
struct Attempt {
    mappings: Vec<Mapping>,
    threads: Vec<Thread>,
    /// The heap, or `None` if a thread may be in the middle of a call.
    heap: Option<std::result::Result<Option<Heap>, Inconsistency>>,
}

pub(crate) fn run(options: &Inspect) -> Result<u8> {
    match &options.target {
        Target::Process(process) => run_process(*process, options),
        Target::Core(path) => run_core(path, options),
    }
}

fn run_process(process: u32, options: &Inspect) -> Result<u8> {
    let words = command(process);
    let mut attempts = 0;
    let (read, stopped) = loop {
        attempts += 1;
        let (attempt, stopped) = while_stopped(process, |threads| attempt(process, threads, attempts > CAUTIOUS))?;
        let attempt = attempt?;
        if matches!(attempt.heap, Some(Ok(_))) || attempts == ATTEMPTS {
            break (attempt, stopped);
        }
        std::thread::sleep(Duration::from_millis(1 << attempts.min(6)));
    };
    if read.mappings.is_empty() {
        return Err(Error::Trace(format!("process {process} is part of the kernel, or has just ended").into()));
    }
    // The fifth byte of an ELF file states the size of its addresses.
    let mut start = [0; 5];
    let program = fs::File::open(format!("/proc/{process}/exe")).and_then(|mut file| file.read_exact(&mut start));
    let is_32_bit = program.is_ok() && start == *b"\x7fELF\x01";
    let stopped_ns = u64::try_from(stopped.as_nanos()).unwrap_or(u64::MAX);
    let origin = |resident| Origin::Process { process, stopped_ns, attempts, resident };
    report(read, is_32_bit, &words, process, origin, options)
}

fn run_core(path: &Path, options: &Inspect) -> Result<u8> {
    let name = path.display().to_string();
    // Opening a pipe might block forever.
    if !fs::metadata(path).map_err(Error::system(name.clone()))?.is_file() {
        return Err(Error::Trace(format!("{name}: expected a process ID or a core file").into()));
    }
    let file = fs::File::open(path).map_err(Error::system(name.clone()))?;
    let mut core = CoreFile::read(file).map_err(|error| Error::Trace(format!("{name}: {error}").into()))?;
    let heap = read_heap(&core, &core.mappings, &core.threads);
    let (mappings, threads) = (std::mem::take(&mut core.mappings), std::mem::take(&mut core.threads));
    let process = core.process;
    let origin = |bytes| Origin::Core { core: name, process, bytes };
    report(Attempt { mappings, threads, heap: Some(heap) }, false, &core.command, process, origin, options)
}

/// Prints the report and writes the snapshot.
fn report(
    read: Attempt,
    is_32_bit: bool,
    words: &[String],
    process: u32,
    origin: impl FnOnce(u64) -> Origin,
    options: &Inspect,
) -> Result<u8> {
    let Attempt { mappings, threads, heap } = read;
    let (heap, problem) = match heap {
        Some(Ok(heap)) => (heap, None),
        Some(Err(problem)) => (None, Some(problem)),
        None => (None, None),
    };
    let account = Account::new(heap.as_ref(), &mappings, &threads);
    let not_read = match (&heap, &problem) {
        (Some(_), _) => other_allocator(&mappings).map(|name| {
            format!("The process also uses {name}, whose blocks are not counted: they are in the anonymous mappings.")
        }),
        (None, Some(problem)) => Some(format!(
            "The heap does not add up {problem}. Its blocks are therefore not counted, and only the mappings are listed."
        )),
        (None, None) => Some(without_heap(is_32_bit, &mappings)),
    };
    let inspection = Inspection {
        origin: origin(account.sum()),
        command: metatf_page::shortened(&shell_words(words), COMMAND).into_owned(),
        threads: threads.len() as u64,
        arenas: 0,
        not_read,
        account,
        live: None,
        sizes: Vec::new(),
    };
    let inspection = match &heap {
        Some(heap) => inspection.with_heap(heap),
        None => inspection,
    };
    show(&inspection, &OutputArgs::from(&options.format))?;
    if let Some(path) = &options.output {
        let Some(heap) = &heap else {
            let why = format!("{}: not written, because no blocks were read", path.display());
            return Err(Error::Trace(why.into()));
        };
        write_trace(path, 0, |sink| write_snapshot(heap, process, words, sink))?;
    }
    Ok(problem.is_some().into())
}

/// Returns the program and its arguments, or the name of a process without arguments. A server may have replaced its
/// arguments by a title, which zeros follow.
fn command(process: u32) -> Vec<String> {
    let read = |name| fs::read(format!("/proc/{process}/{name}")).unwrap_or_default();
    let (line, name) = (read("cmdline"), read("comm"));
    let length = line.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let line = line.get(..length).filter(|line| !line.is_empty()).unwrap_or(name.trim_ascii());
    line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect()
}

/// Reads the heap while all threads are stopped.
fn attempt(process: u32, registers: &[ThreadRegisters], anyway: bool) -> Result<Attempt> {
    let path = format!("/proc/{process}/smaps");
    let mappings = Mapping::parse(&fs::read(&path).map_err(Error::system(path))?);
    let threads: Vec<_> = registers
        .iter()
        .map(|thread| Thread { stack_pointer: thread.stack_pointer, thread_pointer: thread.thread_pointer })
        .collect();
    let may_allocate = |thread: &ThreadRegisters| {
        let code = mappings.iter().find(|mapping| mapping.contains(thread.instruction_pointer));
        !thread.is_in_kernel && code.is_some_and(|code| code.is_code && is_c_library(code))
    };
    let heap = if !anyway && registers.iter().any(may_allocate) {
        None
    } else {
        let memory = ProcessMemory::open(process).map_err(Error::system(format!("/proc/{process}/mem")))?;
        Some(read_heap(&memory, &mappings, &threads))
    };
    Ok(Attempt { mappings, threads, heap })
}

fn is_c_library(mapping: &Mapping) -> bool {
    mapping.name.contains("/libc.so.6") || mapping.name.contains("/libc-2.")
}

/// Returns the name of a library that replaces the C library's allocator.
fn other_allocator(mappings: &[Mapping]) -> Option<&'static str> {
    let names = ["jemalloc", "mimalloc", "tcmalloc"];
    names.into_iter().find(|name| mappings.iter().any(|mapping| mapping.name.contains(&format!("/lib{name}"))))
}

/// Explains why a process has no heap that can be read.
fn without_heap(is_32_bit: bool, mappings: &[Mapping]) -> String {
    let has = |part: &str| mappings.iter().any(|mapping| mapping.name.contains(part));
    let why = match other_allocator(mappings) {
        Some(name) => format!("The process uses {name}"),
        None if is_32_bit => "The process is a 32-bit program".to_owned(),
        None if has("/ld-musl") => "The process uses the allocator of musl".to_owned(),
        None if mappings.iter().any(is_c_library) => "glibc's malloc has no blocks in this process".to_owned(),
        None => "The process does not use glibc's malloc".to_owned(),
    };
    format!("{why}, so only the mappings are listed.")
}
