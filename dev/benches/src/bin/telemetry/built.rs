//! The programs that the benchmark builds and runs, and the reasons why programs are missing.

use crate::Result;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The path of a program, or the reason why it is missing.
type Program = std::result::Result<PathBuf, String>;

/// All programs.
#[derive(Debug)]
pub(crate) struct Built {
    /// The shared library.
    pub(crate) shared: Program,
    /// The program that uses the C header.
    pub(crate) c: Program,
    /// The program that uses LTTng tracepoints.
    pub(crate) lttng: Program,
    /// The program that uses Tracy's client.
    pub(crate) tracy: Program,
    /// The program that writes Tracy's traces.
    pub(crate) capture: Program,
}

impl Built {
    /// Builds the requested programs. An error in our own code is returned as an error; a missing third-party tool is a
    /// reason for a missing program.
    pub(crate) fn new(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Self> {
        let left_out = || Err(String::new());
        let when =
            |group: &str, program: &dyn Fn() -> Result<Program>| if wanted(group) { program() } else { Ok(left_out()) };
        Ok(Self {
            shared: when("shared", &|| Ok(Ok(library()?)))?,
            c: when("c", &|| c_header(folder))?,
            lttng: when("lttng", &|| Ok(lttng(folder)))?,
            tracy: when("tracy", &|| tracy())?,
            capture: when("tracy", &|| Ok(capture()))?,
        })
    }

    /// Returns the missing rows and the reasons.
    pub(crate) fn missing(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let programs = [
            ("C header", &self.c),
            ("LTTng-UST", &self.lttng),
            ("Tracy", &self.tracy),
            ("Tracy, to a file", &self.capture),
        ];
        let reasons = programs.into_iter().filter_map(|(name, program)| Some((name, program.as_ref().err()?.as_str())));
        reasons.filter(|(_, reason)| !reason.is_empty())
    }
}

/// Runs a program and returns its output.
pub(crate) fn run(command: &mut Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Returns whether a program with this name exists and runs with this argument.
fn is_there(program: impl AsRef<OsStr>, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null());
    command.status().is_ok()
}

/// Returns the path of a file in this package.
fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns cargo's output directory, and a cargo command for a release build.
fn cargo() -> Result<(PathBuf, Command)> {
    let itself = std::env::current_exe()?;
    let target = itself.ancestors().nth(2).ok_or("this program is not in a target directory of cargo")?.to_owned();
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    Ok((target, cargo))
}

/// Builds the shared library.
fn library() -> Result<PathBuf> {
    let (target, mut cargo) = cargo()?;
    cargo.arg(source("Cargo.toml")).args([
        "--no-default-features",
        "--features",
        "telemetry",
        "--example",
        "telemetry_library",
    ]);
    run(cargo.arg("--target-dir").arg(&target))?;
    Ok(target.join("release/examples/libtelemetry_library.so"))
}

/// Generates the C header and compiles the program that uses it.
fn c_header(folder: &Path) -> Result<Program> {
    let parsed = metatf_parser::parse("telemetry.dtd", &std::fs::read(source("schemas/telemetry.dtd"))?);
    let mut options = metatf_codegen::Options::new("telemetry.dtd");
    options.emitters = Some("bench".to_owned());
    let header = metatf_codegen::generate_c(&parsed.dtd.ok_or("the DTD has errors")?, &options)?;
    std::fs::write(folder.join("bench.h"), header)?;
    if !is_there("cc", "--version") {
        return Ok(Err("no C compiler".to_owned()));
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-O2", "-pthread", "-DBENCH_POSIX", "-I."]).arg(source("src/c/telemetry.c"));
    run(compiler.args(["-o", "c_header"]).current_dir(folder))?;
    Ok(Ok(folder.join("c_header")))
}

/// Compiles the program with LTTng tracepoints.
fn lttng(folder: &Path) -> Program {
    let missing =
        ["cc", "lttng", "lttng-sessiond", "babeltrace2"].into_iter().find(|name| !is_there(name, "--version"));
    if let Some(name) = missing {
        return Err(format!("`{name}` is not installed"));
    }
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-I"]).arg(source("src/c")).arg(source("src/c/lttng.c"));
    compiler.args(["-o", "lttng_program", "-llttng-ust", "-ldl"]).current_dir(folder);
    compiler.stderr(Stdio::null());
    match compiler.status() {
        Ok(status) if status.success() => Ok(folder.join("lttng_program")),
        _ => Err("`liblttng-ust-dev` is not installed".to_owned()),
    }
}

/// Builds the program with Tracy's client, which is a separate package.
fn tracy() -> Result<Program> {
    let (target, mut cargo) = cargo()?;
    cargo.arg(source("tracy/Cargo.toml")).arg("--target-dir").arg(target.join("tracy"));
    match run(&mut cargo) {
        Ok(_) => Ok(Ok(target.join("tracy/release/telemetry-tracy"))),
        Err(_) => Ok(Err("the client does not build".to_owned())),
    }
}

/// Finds the program that writes Tracy's traces.
fn capture() -> Program {
    let named = std::env::var_os("TRACY_CAPTURE").map(PathBuf::from);
    let names = ["tracy-capture", "iree-tracy-capture"].map(PathBuf::from);
    let mut programs = named.into_iter().chain(names);
    programs.find(|program| is_there(program, "-h")).ok_or_else(|| "no `tracy-capture`".to_owned())
}
