//! An independent count: Valgrind's "total heap usage" of the same programs with the same input.
#![expect(clippy::unwrap_used)]

use metatf_test::skip;
use std::path::Path;
use std::process::{Command, Output};

const PERL: &str = "for (1..20000) { $h{$_ % 977} .= chr(65 + $_ % 26) } print scalar(%h)";
const GAWK: &str = "BEGIN { for (i = 0; i < 9000; i++) h[i % 977] = h[i % 977] i; print length(h) }";
const PYTHON: &str = "print(len({str(i): [i] * 9 for i in range(2000)}))";
const SQL: &str = "create table t(a, b); with recursive n(i) as (select 1 union all select i + 1 \
                   from n where i < 3000) insert into t select i, hex(i * 7919) from n; \
                   select count(distinct b) from t order by a;";

/// Programs, and the maximum difference in allocs and frees between the tools. It is 0 for programs that do not read
/// their environment, which each tool changes in its own way.
const PROGRAMS: &[(&[&str], u64)] = &[
    (&["/usr/bin/sqlite3", ":memory:", SQL], 0),
    (&["/usr/bin/sort", "/etc/passwd"], 0),
    (&["/usr/bin/perl", "-e", PERL], 16),
    (&["/usr/bin/gawk", GAWK], 16),
    (&["/usr/bin/python3", "-I", "-S", "-c", PYTHON], 32),
    (&["/usr/bin/git", "--version"], 16),
];

/// Parses "total heap usage: 1,234 allocs, 1,200 frees, 56,789 bytes allocated".
fn usage(output: &Output) -> Option<[u64; 3]> {
    let text = String::from_utf8_lossy(&output.stderr);
    let (_, rest) = text.split_once("total heap usage: ")?;
    let line = rest.lines().next()?.replace(',', "");
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    Some([numbers.next()?, numbers.next()?, numbers.next()?])
}

fn run(command: &mut Command, program: &[&str]) -> Output {
    command.args(program);
    // Both runs have the same number of variables, because some programs copy each one.
    for variable in ["HATF_SPOOL", "HATF_LIBRARY", "GLIBCPP_FORCE_NEW", "GLIBCXX_FORCE_NEW", "LD_LIBRARY_PATH"] {
        command.env(variable, "");
    }
    command.env("PERL_HASH_SEED", "0").env("PYTHONHASHSEED", "0").env("PYTHONMALLOC", "malloc");
    command.output().unwrap()
}

#[test]
fn counts_agree() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip("valgrind is not on this machine");
        return;
    }
    for (program, apart) in PROGRAMS {
        if !Path::new(program[0]).exists() {
            skip(&format!("{} is not on this machine", program[0]));
            continue;
        }
        let mut valgrind = Command::new("valgrind");
        // Blocks that libraries free at exit only for Valgrind do not count.
        valgrind.args(["--run-libc-freeres=no", "--run-cxx-freeres=no"]);
        let theirs = usage(&run(&mut valgrind, program)).unwrap();
        let mut hatf = Command::new(env!("CARGO_BIN_EXE_hatf"));
        hatf.args(["record", "--report", "--no-trace", "--"]);
        let output = run(&mut hatf, program);
        let ours = usage(&output).unwrap();
        eprintln!("{}: valgrind {theirs:?}, hatf {ours:?}", program[0]);
        assert!(output.status.success());
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(!report.contains("blocks that are not in the trace"), "{report}");
        assert!(!report.contains("records are missing"), "{report}");
        for (theirs, ours) in theirs.iter().zip(ours).take(2) {
            assert!(theirs.abs_diff(ours) <= *apart, "{}", program[0]);
        }
    }
}
