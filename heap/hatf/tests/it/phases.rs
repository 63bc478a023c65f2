//! A C program that includes the shipped header and names marks and phases.
#![expect(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Command;

use hatf_trace::forms::TraceReader;
use hatf_trace::{Event, EventKind, EventSource as _, Item};
use metatf_test::{Folder, skip};

/// Compiles the program with additional options. Returns `None` if no C compiler supports them.
fn program(folder: &Folder, name: &str, options: &[&str]) -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let out = folder.join(name);
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-I"]).arg(home.join("../hatf-record/include")).args(options);
    compiler.arg("-o").arg(&out).arg(home.join("tests/programs/phases.c"));
    match compiler.output() {
        Ok(output) if output.status.success() => Some(out),
        Ok(output) if options.is_empty() => {
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{messages}");
            None
        }
        _ => {
            skip(&format!("no cc on this machine, or none that makes {name}"));
            None
        }
    }
}

/// Returns the marks, phases and two large blocks in a trace.
fn messages(trace: &Path) -> Vec<String> {
    let mut reader = TraceReader::open(trace).unwrap();
    let mut lines = Vec::new();
    let mut large = 0;
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(Event { kind, .. }) = item else { continue };
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        lines.push(match kind {
            EventKind::Mark { name } => format!("mark {}", text(name)),
            EventKind::PhaseBegin { name } => format!("begin {}", text(name)),
            EventKind::PhaseEnd { name } => format!("end {}", text(name)),
            EventKind::Call(call) if call.size > 1_000_000 => {
                large = call.address;
                format!("malloc {}", call.size)
            }
            EventKind::Free { address } if address == large => "free".to_owned(),
            _ => continue,
        });
    }
    lines
}

#[test]
fn marks_and_phases_of_a_program() {
    let longest = format!("mark {}", "n".repeat(1000));
    let expected = [
        "mark start",
        "begin load",
        "malloc 1000001",
        "begin parse",
        "end load",
        "free",
        "end parse",
        "mark ",
        &longest,
        "begin never ended",
        "malloc 1000002",
    ];
    for (name, options) in [("phases", &[][..]), ("phases-fixed", &["-fno-pie", "-no-pie"])] {
        let folder = Folder::new();
        let Some(program) = program(&folder, name, options) else { continue };
        // Without `hatf`, the program runs and the marks have no effect.
        assert!(Command::new(&program).status().unwrap().success(), "{name}");
        let trace = folder.join("phases.mtf");
        let hatf = || Command::new(env!("CARGO_BIN_EXE_hatf"));
        let recorded = hatf().args(["record", "--quiet", "-o"]).arg(&trace).arg("--").arg(&program).status();
        assert!(recorded.unwrap().success(), "{name}");
        assert_eq!(messages(&trace), expected, "{name}");

        let report = hatf().args(["report", "--format", "json"]).arg(&trace).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        let phases = report["phases"].as_array().unwrap();
        let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["load", "parse", "never ended"]);
        let figures: Vec<_> = phases.iter().map(|p| ["allocs", "bytes", "change"].map(|of| p[of].as_i64())).collect();
        assert_eq!(figures[0], [Some(1), Some(1_000_001), Some(1_000_001)]);
        assert_eq!(figures[1], [Some(0), Some(0), Some(-1_000_001)]);
        assert_eq!(phases[2]["not_ended"], 1);
        let report = hatf().arg("report").arg(&trace).output().unwrap();
        let report = String::from_utf8(report.stdout).unwrap();
        assert!(
            report.contains("PHASES\n") && report.contains("MARKS\n") && report.contains("  never ended "),
            "{report}"
        );
    }
}
