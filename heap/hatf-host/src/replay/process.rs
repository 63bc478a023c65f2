//! Replays in separate processes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;

use metatf_cli::output_of;

use super::compile::Operations;
use super::worker::{Run, Task};
use hatf_trace::{Error, Result};

/// Known allocators, and the files that their packages install.
const KNOWN: [(&str, &[&str]); 3] = [
    ("jemalloc", &["libjemalloc.so.2", "libjemalloc.so"]),
    ("mimalloc", &["libmimalloc.so.3", "libmimalloc.so.2", "libmimalloc.so.2.0", "libmimalloc.so"]),
    ("tcmalloc", &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4", "libtcmalloc_minimal.so", "libtcmalloc.so"]),
];

/// The system's library directories.
const FOLDERS: [&str; 5] = ["/usr/local/lib", "/usr/lib64", "/usr/lib", "/lib64", "/lib"];

/// An allocator to test, with its settings: the system's allocator or a preloaded library.
///
/// # Examples
///
/// ```
/// use hatf_host::replay::Allocator;
///
/// let allocator: Allocator = "MALLOC_ARENA_MAX=1 system".parse()?;
/// assert_eq!(allocator.library, None);
/// assert_eq!(allocator.environment, [("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocator {
    /// The name given by the user.
    pub name: String,
    /// The library, or `None` for the system's allocator.
    pub library: Option<PathBuf>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
}

impl FromStr for Allocator {
    type Err = String;

    /// Parses `NAME` or `VARIABLE=VALUE .. NAME`, as in a shell. The name is `system`, a known allocator, or a path.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let last = words.pop().ok_or("expected an allocator, such as jemalloc")?;
        let environment = words.iter().map(|word| {
            let (name, value) =
                word.split_once('=').ok_or_else(|| format!("expected VARIABLE=VALUE, found `{word}`"))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        let environment = environment.collect::<std::result::Result<_, String>>()?;
        let library = if last == "system" { None } else { Some(library(last)?) };
        Ok(Self { name: text.to_owned(), library, environment })
    }
}

/// Finds the file of an allocator.
fn library(name: &str) -> std::result::Result<PathBuf, String> {
    if name.contains('/') {
        return std::fs::canonicalize(name).map_err(|error| format!("{name}: {error}"));
    }
    let names = || KNOWN.map(|(name, _)| name).join(", ");
    let known = KNOWN.iter().find(|(known, _)| *known == name);
    let (_, files) = known.ok_or_else(|| format!("expected system, {} or a path, found `{name}`", names()))?;
    let mut folders: Vec<PathBuf> =
        std::env::var_os("LD_LIBRARY_PATH").iter().flat_map(std::env::split_paths).collect();
    for folder in FOLDERS {
        folders.push(folder.into());
        // Debian has a directory for each architecture.
        folders.push(Path::new(folder).join(format!("{}-linux-gnu", std::env::consts::ARCH)));
    }
    let mut paths = files.iter().flat_map(|file| folders.iter().map(move |folder| folder.join(file)));
    paths.find_map(|path| std::fs::canonicalize(path).ok()).ok_or_else(|| {
        format!("{name} is not installed: cannot find {}; specify the path of the library", files.join(" or "))
    })
}

/// The program that runs replays, with its arguments.
#[derive(Clone, Debug)]
pub struct Worker {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Worker {
    /// Creates a worker from a program that passes its options to [`replay`](super::replay): the options of [`Task`],
    /// followed by the path of the operations.
    #[must_use]
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments }
    }

    /// Runs one replay.
    ///
    /// # Errors
    /// Returns an error if the process could not be run or failed, or the allocator could not be preloaded.
    pub fn run(&self, operations: &Operations, allocator: &Allocator, task: Task) -> Result<Run> {
        let failed = || Error::system("the replay process");
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).args(task.arguments()).arg(operations.path());
        command.stderr(Stdio::piped());
        command.envs(allocator.environment.iter().map(|(name, value)| (name, value)));
        match &allocator.library {
            Some(library) => command.env("LD_PRELOAD", library),
            None => command.env_remove("LD_PRELOAD"),
        };
        let output = output_of(&mut command).map_err(failed())?;
        let said = String::from_utf8_lossy(&output.stderr);
        let wrong = |what: String| Error::Trace(format!("{}: {what}", allocator.name).into());
        if !output.status.success() {
            let said = said.trim().trim_start_matches("hatf: ");
            return Err(wrong(if said.is_empty() { output.status.to_string() } else { said.to_owned() }));
        }
        let run: Run =
            serde_json::from_slice(&output.stdout).map_err(|error| wrong(format!("invalid output ({error})")))?;
        if let Some(library) = &allocator.library
            && std::fs::canonicalize(&run.allocator).ok().as_ref() != Some(library)
        {
            let said = said.lines().find(|line| line.contains("preload")).unwrap_or("it does not define malloc");
            return Err(wrong(format!("{} was not used: {said}", library.display())));
        }
        Ok(run)
    }
}
