//! `hatf tour`

use std::env;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hatf::trace::{TraceReader, TraceWriter};
use hatf::{Error, EventSource as _, Item, Result, What};

use super::Tour as Options;
use super::report::analyse;

/// Programs that many machines have, and something small for each to do.
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

/// Records of the trace that are shown.
const SHOWN: usize = 12;

pub(crate) fn run(options: &Options) -> Result<u8> {
    let mut out = io::stdout().lock();
    for (name, arguments) in PROGRAMS {
        let Some(program) = find(name) else { continue };
        let mut command = vec![OsString::from(&program)];
        command.extend(arguments.iter().map(OsString::from));
        writeln!(out, "1. Record a program: {}\n", program.display())?;
        writeln!(out, "   $ hatf record -o {} {name} {}", options.output.display(), short(arguments))?;
        out.flush()?;
        let mut trace = TraceWriter::create(&options.output)?;
        let recorded = hatf::record::record(&command, &mut trace);
        let written = trace.finish()?;
        let outcome = match recorded {
            Ok(outcome) if outcome.images > 0 && outcome.events > 0 => outcome,
            Ok(_) => {
                writeln!(out, "   {name} cannot be recorded (statically linked?): trying another\n")?;
                continue;
            }
            Err(error) => {
                writeln!(out, "   {error}: trying another\n")?;
                continue;
            }
        };
        if let Some(error) = outcome.sink_error {
            return Err(error);
        }
        writeln!(
            out,
            "   {} events, {} bytes in {}, {} lost",
            outcome.events,
            written.bytes,
            options.output.display(),
            outcome.lost
        )?;
        show(&options.output, &mut out)?;
        return Ok(0);
    }
    Err(Error::Trace("none of the programs of the tour is on this machine: try `hatf record PROGRAM`".into()))
}

fn show(path: &Path, out: &mut dyn io::Write) -> Result<()> {
    let shown = path.display();
    writeln!(out, "\n2. What its heap did:\n\n   $ hatf report {shown}\n")?;
    hatf::report::text(&analyse(path)?, out)?;
    writeln!(out, "\n3. The first records of the trace:\n")?;
    first_records(path, out)?;
    writeln!(
        out,
        "
4. Try next:

   cargo run --release -p hatf -- record -o my.mtf YOUR-PROGRAM ITS ARGUMENTS
   cargo run --release -p hatf -- report my.mtf
   cargo run --release -p hatf -- report {shown} --svg live.svg
   cargo run --release -p metatfc -- dump {shown} --head 20
   cargo run --release -p metatfc -- stat {shown}"
    )?;
    Ok(())
}

fn first_records(path: &Path, out: &mut dyn io::Write) -> Result<()> {
    let mut reader = TraceReader::open(path)?;
    let mut left = SHOWN;
    while let Some(item) = reader.next()?
        && left > 0
    {
        let Item::Record(record) = item else { continue };
        left -= 1;
        let text = String::from_utf8_lossy(record.attributes);
        let fields = match record.what {
            What::Alloc { size, address } => format!("{size} bytes at 0x{address:x}"),
            What::Realloc { old, address } => format!("0x{old:x} is now 0x{address:x}"),
            What::Free { address } => format!("0x{address:x}"),
            _ => String::new(),
        };
        let (time, thread, name) = (record.time, record.thread, record.what.name());
        writeln!(out, "   {time:>10} ns  thread {thread}  {name:<12} {fields} {text}")?;
    }
    Ok(())
}

/// The first program of that name on the path which is no script: the shell wrappers of version
/// managers would be recorded first.
fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|directory| directory.join(name)).find(|file| {
        let runs = file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
        let mut magic = [0; 4];
        let read = |mut file: std::fs::File| io::Read::read_exact(&mut file, &mut magic);
        runs && std::fs::File::open(file).and_then(read).is_ok() && magic == *b"\x7fELF"
    })
}

fn short(arguments: &[&str]) -> String {
    let text = arguments.join(" ");
    if text.chars().count() <= 60 {
        return text;
    }
    text.chars().take(57).chain("...".chars()).collect()
}
