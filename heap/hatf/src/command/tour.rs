//! `hatf tour`: demonstrates hatf on a program on this machine.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hatf_trace::event::{Call, shell_words};
use hatf_trace::forms;
use hatf_trace::heap::{HeapOptions, HeapWriter};
use hatf_trace::{Error, Event, EventKind, EventSource as _, Item, Result};
use hatf_view::calls::Folding;
use metatf_cli::{OutputFile, Style, print_into, shown, stdout, stdout_width};

use super::Tour as Options;
use super::lab::Source;
use super::report::analyse;
use super::symbols::Symbols;

/// Common programs, each with a small task.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("perl", &["-e", "for (1..20000) { $h{$_ % 977} .= chr(65 + $_ % 26) } print scalar(%h), qq{ keys\\n}"]),
    ("gawk", &["BEGIN { for (i = 0; i < 20000; i++) h[i % 977] = h[i % 977] i; print length(h), \"keys\" }"]),
    (
        "sqlite3",
        &[
            ":memory:",
            "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000) insert into t select i, hex(i * 7919) from n; select count(distinct b) || ' rows' from t order by a;",
        ],
    ),
    ("python3", &["-c", "print(len({str(i): [i] * 9 for i in range(20000)}), 'keys')"]),
    ("git", &["--version"]),
    ("sort", &["/etc/passwd"]),
    ("ls", &["-l", "/"]),
];

/// Number of records of the trace to show.
const SHOWN: usize = 12;
/// Clock resolution in nanoseconds, as in `hatf record`.
const CLOCK: u64 = 1_000;

pub(crate) fn run(options: &Options) -> Result<u8> {
    let mut out = stdout(Style::Text);
    for (name, arguments) in PROGRAMS {
        let Some(program) = find(name) else { continue };
        let mut command = vec![OsString::from(&program)];
        command.extend(arguments.iter().map(OsString::from));
        writeln!(out, "1. Record a program: {}\n", program.display())?;
        writeln!(out, "   $ hatf record -o {} {name} {}", options.output.display(), shell_words(*arguments))?;
        out.flush()?;
        let clock = HeapOptions { resolution: CLOCK, ..HeapOptions::default() };
        let problem = || Error::system(options.output.display().to_string());
        let (file, mut sink) = OutputFile::create(&options.output).map_err(problem())?;
        let cause = |error| file.error().map_or(error, problem());
        let mut trace = HeapWriter::new(&mut *sink, &clock).map_err(cause)?;
        let recorded = hatf_host::record::record(&command, &mut trace);
        trace.finish().map_err(cause)?;
        let outcome = match recorded {
            Ok(outcome) if outcome.recorded.images > 0 && outcome.recorded.events > 0 => outcome,
            Ok(_) => {
                writeln!(out, "   {name} cannot be recorded (statically linked?); trying another program\n")?;
                continue;
            }
            Err(error) => {
                writeln!(out, "   {error}; trying another program\n")?;
                continue;
            }
        };
        if let Some(error) = outcome.recorded.sink_error {
            return Err(cause(error));
        }
        file.keep(sink).map_err(problem())?;
        // Remove the spool, because the trace contains all of its events.
        drop(outcome.spool);
        let bytes = options.output.metadata().map_err(problem())?.len();
        writeln!(
            out,
            "   {} records, {} bytes in {}, {} lost",
            outcome.recorded.events,
            bytes,
            options.output.display(),
            outcome.recorded.lost
        )?;
        show(&options.output, &mut out)?;
        out.flush()?;
        return Ok(0);
    }
    Err(Error::Trace("none of the tour's programs is installed on this machine: try `hatf record PROGRAM`".into()))
}

fn show(path: &Path, out: &mut dyn io::Write) -> Result<()> {
    let shown = path.display();
    writeln!(out, "\n2. Report on its heap:\n\n   $ hatf report {shown}\n")?;
    print_into(
        &analyse(&Source::new(path.to_owned(), None, None), &Symbols::default(), &Folding::default())?,
        stdout_width(),
        out,
    )?;
    writeln!(out, "\n3. The first records of the trace:\n")?;
    first_records(path, out)?;
    writeln!(
        out,
        "
4. Try next:

   hatf run YOUR-PROGRAM ITS ARGUMENTS
   hatf record -o my.mtf YOUR-PROGRAM ITS ARGUMENTS
   hatf watch YOUR-PROGRAM ITS ARGUMENTS
   hatf report my.mtf
   hatf report {shown} --svg live.svg
   hatf convert {shown} tour.jsonl
   metatfc dump {shown} --head 20
   metatfc stat {shown}"
    )?;
    Ok(())
}

fn first_records(path: &Path, out: &mut dyn io::Write) -> Result<()> {
    let mut reader = forms::open(path, &super::open_options(None, |_| ()))?;
    let mut left = SHOWN;
    while let Some(item) = reader.next()?
        && left > 0
    {
        let Item::Event(event) = item else { continue };
        left -= 1;
        let Event { time, thread, .. } = event;
        writeln!(out, "   {:>10} us  thread {thread}  {}", time / CLOCK, c_line(&event.kind))?;
    }
    Ok(())
}

/// Formats an event like a line of C.
fn c_line(kind: &EventKind<'_>) -> String {
    match *kind {
        EventKind::Call(Call { function, size, old, address, .. }) => {
            let old = if function.is_realloc() { format!("0x{old:x}, ") } else { String::new() };
            format!("{}({old}{size}) = 0x{address:x}", function.name())
        }
        EventKind::Free { address } => format!("free(0x{address:x})"),
        EventKind::Image { process, path } => {
            format!("image {} (process {process})", shown(&String::from_utf8_lossy(path)))
        }
        EventKind::ThreadStart { .. } => "thread starts".to_owned(),
        EventKind::ThreadEnd => "thread ends".to_owned(),
        ref other => format!("{other:?}"),
    }
}

/// Returns the first program with this name in `PATH` that is not a script, such as a shell wrapper of a version
/// manager.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| {
        let runs = file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        let mut magic = [0; 4];
        let read = |mut file: std::fs::File| io::Read::read_exact(&mut file, &mut magic);
        runs && std::fs::File::open(file).and_then(read).is_ok() && magic == *b"\x7fELF"
    })
}
