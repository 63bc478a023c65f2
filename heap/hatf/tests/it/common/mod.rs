//! Runs `hatf` and builds programs for it.
#![allow(dead_code, reason = "not each test needs all")]

pub(crate) mod elf;
pub(crate) mod invariants;
pub(crate) mod nonsense;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) mod object_code;
pub(crate) mod taken;

use std::path::{Path, PathBuf};
use std::process::Command;

use metatf_test::{Folder, Run, run};

/// Runs `hatf` with these arguments. A recorded program waits ten minutes for space, so a busy machine loses nothing.
pub(crate) fn hatf<A: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = A>) -> Run {
    let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
    for (place, argument) in arguments.into_iter().enumerate() {
        hatf.arg(&argument);
        if place == 0 && argument.as_ref() == "record" {
            hatf.args(["--patience", "600s"]);
        }
    }
    run(hatf.env_remove("COLUMNS"))
}

/// Returns the source path of a C program in `tests/programs`.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c")
}

/// Compiles a C program from `tests/programs`. Returns `None` if there is no compiler.
pub(crate) fn compiled(folder: &Folder, name: &str, flags: &[&str]) -> Option<PathBuf> {
    compiled_from(&source(name), folder, name, flags)
}

/// Compiles a C++ program from `tests/programs`. Returns `None` if there is no compiler.
pub(crate) fn compiled_cpp(folder: &Folder, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let program = folder.join(name);
    let source = source(name).with_extension("cpp");
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-Wall", "-Wextra", "-pthread"]).args(flags).arg("-o").arg(&program).arg(source);
    let Ok(output) = compiler.output() else {
        metatf_test::skip("no c++ on this machine");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

/// Compiles a C program from this source file.
pub(crate) fn compiled_from(source: &Path, folder: &Folder, name: &str, flags: &[&str]) -> Option<PathBuf> {
    let out = folder.join(name);
    let mut command = Command::new("cc");
    let built = command.args(["-g", "-pthread", "-o"]).arg(&out).args(flags).arg(source).status();
    match built {
        Ok(status) => assert!(status.success()),
        Err(_) => metatf_test::skip("there is no C compiler"),
    }
    out.exists().then_some(out)
}
