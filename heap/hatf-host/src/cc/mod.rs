//! Builds programs that count their loads and stores, by adding arguments to a compiler command (`hatf cc`).
//!
//! As for the thread sanitizer, the compiler inserts a call before each load and store, but the sanitizer's library is
//! not linked. Instead, `access.c` implements the called functions. It is shipped as source and compiled by the same
//! compiler, so no library has to be found at run time or built for each system.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use metatf_cli::output_of;

use hatf_trace::{Error, Result};

/// The functions that instrumented code calls.
const SOURCE: &str = include_str!("access.c");

/// Flags for [`SOURCE`], independent of the flags for the program. `-fno-builtin` prevents the compiler from replacing
/// loops in the source with calls to the functions that it implements.
const OWN_FLAGS: [&str; 6] = ["-O2", "-fPIC", "-mcx16", "-fno-builtin", "-w", "-std=gnu11"];

/// Specs for GCC, which pass the instrumentation option to the compilers proper and the object to the linker. The
/// option must not be passed to the driver, because the driver would then link the sanitizer's library.
const SPECS: &str = "\
*cc1_options:
+ -fsanitize=thread -U__SANITIZE_THREAD__ --param=tsan-instrument-func-entry-exit=FUNCTIONS NO_BUILTIN

*lib:
+ OBJECT

*link:
+ -z now

";

/// The same options for Clang.
const CLANG: [&str; 7] = [
    "-fsanitize=thread",
    "-fno-sanitize-link-runtime",
    "-U__SANITIZE_THREAD__",
    "-mllvm",
    "-tsan-instrument-read-before-write=1",
    "-mllvm",
    "-tsan-instrument-func-entry-exit=FUNCTIONS",
];

/// Functions whose calls are counted. Compilers must keep these calls instead of replacing them with instructions,
/// which would not be instrumented.
const CALLS: [&str; 19] = [
    "memcpy", "memmove", "mempcpy", "memset", "memcmp", "bcmp", "memchr", "strlen", "strnlen", "strcpy", "stpcpy",
    "strncpy", "strcat", "strncat", "strcmp", "strncmp", "strchr", "strrchr", "strstr",
];

/// Flags with which the compiler does not link.
const NOT_LINKING: [&str; 7] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "-r"];

/// A compiler family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// The GNU compilers.
    Gcc,
    /// The LLVM compilers.
    Clang,
}

/// Determines the family of a compiler.
///
/// # Errors
/// Returns an error if the compiler cannot be run, or is neither GCC nor Clang.
pub fn family(compiler: &OsString) -> Result<Family> {
    let name = compiler.to_string_lossy();
    let output = output_of(Command::new(compiler).arg("-v").stderr(Stdio::piped()));
    let output = output.map_err(Error::system(format!("cannot run {name}")))?;
    family_of(&String::from_utf8_lossy(&output.stderr)).ok_or_else(|| {
        Error::Usage(format!(
            "{name} is neither GCC nor Clang; for other compilers, use `hatf cc --object` (see the book)"
        ))
    })
}

fn family_of(version: &str) -> Option<Family> {
    if version.contains("clang version") {
        return Some(Family::Clang);
    }
    version.contains("gcc version").then_some(Family::Gcc)
}

/// Runs a compiler that instruments the code it compiles and links the counting code. With `functions`, the code also
/// reports function entries and exits.
///
/// # Errors
/// Returns an error if the compiler is unknown, cannot be run or cannot compile the counting code, or a temporary
/// directory could not be created.
pub fn compile(compiler: &OsString, arguments: &[OsString], functions: bool) -> Result<ExitStatus> {
    let family = family(compiler)?;
    let place = tempfile::Builder::new().prefix("hatf-cc-").tempdir();
    let place = place.map_err(Error::system("cannot create a temporary directory"))?;
    let object = place.path().join("hatf_access.o");
    if links(arguments) {
        write_object(compiler, &object)?;
    }
    let mut command = Command::new(compiler);
    command.args(arguments).args(flags(family, &object, functions, arguments, place.path())?);
    command.status().map_err(Error::system(format!("cannot run {}", compiler.to_string_lossy())))
}

/// Returns whether a compiler with these arguments links.
fn links(arguments: &[OsString]) -> bool {
    !arguments.iter().any(|argument| NOT_LINKING.iter().any(|flag| argument == flag))
}

fn flags(
    family: Family,
    object: &Path,
    functions: bool,
    arguments: &[OsString],
    place: &Path,
) -> Result<Vec<OsString>> {
    let functions = if functions { "1" } else { "0" };
    // The fortified versions of memory functions have other names.
    let mut flags = vec![OsString::from("-U_FORTIFY_SOURCE")];
    let calls = CALLS.map(|name| format!("-fno-builtin-{name}"));
    match family {
        Family::Gcc => {
            let specs = place.join("hatf.specs");
            let text = SPECS.replace("FUNCTIONS", functions).replace("NO_BUILTIN", &calls.join(" "));
            let text = text.replace("OBJECT", &quoted(object)?);
            fs::write(&specs, text).map_err(Error::system(specs.display().to_string()))?;
            let mut option = OsString::from("-specs=");
            option.push(specs);
            flags.push(option);
        }
        Family::Clang => {
            flags.extend(calls.map(OsString::from));
            flags.extend(CLANG.iter().map(|flag| OsString::from(flag.replace("FUNCTIONS", functions))));
            if links(arguments) {
                flags.extend([OsString::from(object), OsString::from("-Wl,-z,now")]);
            }
        }
    }
    Ok(flags)
}

/// Returns a path as a string for GCC specs, or an error if the path contains whitespace or characters with a special
/// meaning. Specs do not support quoting, so a path with a space would become two words.
fn quoted(path: &Path) -> Result<String> {
    let text =
        path.to_str().filter(|text| !text.contains(|letter: char| letter.is_whitespace() || "%{}\\".contains(letter)));
    text.map(str::to_owned).ok_or_else(|| {
        Error::Usage(format!(
            "{}: GCC does not accept this path: set TMPDIR to a directory without spaces",
            path.display()
        ))
    })
}

/// Writes the object with the functions that instrumented code calls, to be passed to a linker.
///
/// # Errors
/// Returns an error if the compiler cannot be run or rejects the source, for example because it does not target Linux
/// on x86-64.
pub fn write_object(compiler: &OsString, object: &Path) -> Result<()> {
    let name = compiler.to_string_lossy();
    let place = tempfile::Builder::new().prefix("hatf-cc-").tempdir();
    let place = place.map_err(Error::system("cannot create a temporary directory"))?;
    let source: PathBuf = place.path().join("hatf_access.c");
    fs::write(&source, SOURCE).map_err(Error::system(source.display().to_string()))?;
    let mut command = Command::new(compiler);
    command.args(["-x", "c"]).args(OWN_FLAGS);
    if family(compiler)? == Family::Gcc {
        command.arg("-fno-tree-loop-distribute-patterns");
    }
    let output = output_of(command.arg("-c").arg(&source).arg("-o").arg(object).stderr(Stdio::piped()));
    let output = output.map_err(Error::system(format!("cannot run {name}")))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(Error::Trace(
        format!("{name} could not compile the code that counts loads and stores:\n{}", why.trim_end()).into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_versions() {
        let gcc =
            "Using built-in specs.\nCOLLECT_GCC=gcc\nTarget: x86_64-linux-gnu\ngcc version 12.2.0 (Debian 12.2.0-14)\n";
        assert_eq!(family_of(gcc), Some(Family::Gcc));
        assert_eq!(family_of("Debian clang version 14.0.6\nTarget: x86_64-pc-linux-gnu\n"), Some(Family::Clang));
        assert_eq!(family_of("tcc version 0.9.27\n"), None);
    }

    #[test]
    fn what_links() {
        let of = |arguments: &[&str]| links(&arguments.iter().map(OsString::from).collect::<Vec<_>>());
        assert!(of(&["-O2", "x.c", "-o", "x"]) && of(&["-shared", "x.o"]));
        assert!(!of(&["-c", "x.c"]) && !of(&["-MM", "x.c"]));
    }

    #[test]
    fn specs_take_no_spaces() {
        assert_eq!(quoted(Path::new("/tmp/a.o")).unwrap(), "/tmp/a.o");
        assert!(quoted(Path::new("/tmp/a b.o")).unwrap_err().to_string().contains("TMPDIR"));
    }
}
