//! `hatf cc`: compiles programs with counters for loads and stores.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;

use hatf_host::cc::{compile, write_object};
use hatf_trace::{Error, Result};

/// Compile a program so that `hatf record` counts its loads and stores.
///
/// Runs the compiler (GCC or Clang, for C or C++, on x86-64) with additional arguments. The compiler inserts a call
/// before each load and store, and the code that handles these calls is linked into the program. Without hatf, the
/// program behaves as before, only a little slower. With `hatf record --stacks`, its trace contains the loads and
/// stores of each block, and `hatf profile` shows which sites allocate blocks that are never read, only written, or
/// cold.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  hatf cc gcc -O2 x.c -o x
  hatf record --stacks -o x.mtf ./x
  hatf profile x.mtf && hatf profile show x.prof.mtf --unread
  make CC='hatf cc gcc' CXX='hatf cc g++'
  hatf cc --functions g++ -O2 x.cc -o x       also record function entries and exits
  hatf cc --object hatf_access.o gcc          only the object file, to link it yourself")]
pub(crate) struct Cc {
    /// Also record function entries and exits. This makes traces many times larger.
    #[arg(long)]
    functions: bool,

    /// Write only the object file that is linked into programs, and compile nothing else.
    #[arg(long, value_name = "FILE", conflicts_with = "functions")]
    object: Option<PathBuf>,

    /// Compiler command with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMPILER")]
    command: Vec<OsString>,
}

pub(crate) fn run(options: &Cc) -> Result<u8> {
    let Some((compiler, arguments)) = options.command.split_first() else {
        return Err(Error::Usage("no compiler given; see hatf cc --help".to_owned()));
    };
    if let Some(object) = &options.object {
        write_object(compiler, object)?;
        return Ok(0);
    }
    let status = compile(compiler, arguments, options.functions)?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
