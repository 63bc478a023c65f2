//! Text reports fit the terminal, and the output of `hatf run` fits one screen.
#![expect(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

use metatf_test::{Folder, Run, run, skip};

use super::common::{compiled_cpp, compiled_from, hatf};

const WIDTHS: [usize; 3] = [60, 80, 200];
/// Maximum number of lines that `hatf run` prints.
const SCREEN: usize = 30;

/// Runs `hatf` in a terminal with this many columns.
fn hatf_in<A: AsRef<std::ffi::OsStr>>(columns: usize, arguments: impl IntoIterator<Item = A>) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_hatf")).args(arguments).env("COLUMNS", columns.to_string()))
}

fn assert_fits(text: &str, columns: usize) {
    for line in text.lines() {
        assert!(line.chars().count() <= columns, "longer than {columns}: `{line}`\n{text}");
    }
}

/// Returns the functions in lines that are not sentences, without arguments, and the file names with lines.
fn names(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let is_row =
        |line: &&str| line.starts_with("  ") && !line.ends_with('.') && !line.trim_start().starts_with("at peak");
    for line in text.lines().filter(is_row) {
        let Some((before, place)) = line.split_once(" at ") else { continue };
        let function = before.rsplit("  ").next().unwrap().trim_start_matches("<- ");
        let function = function.rsplit("% ").next().unwrap().split(['<', '(']).next().unwrap();
        names.extend([function, place.rsplit('/').next().unwrap()].map(|name| name.replace(' ', "")));
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Each report fits the terminal and still contains all names of functions and files, and all line numbers.
#[test]
fn reports_fit_the_terminal() {
    let folder = Folder::new();
    let mut traces = Vec::new();
    for items in ["200", "260"] {
        let Some(program) = compiled_cpp(&folder, "shop", &["-O1", "-g", &format!("-DITEMS={items}")]) else { return };
        let trace = folder.path(&format!("{items}.mtf"));
        hatf(["record", "--stacks", "-q", "-o", &trace, "--", program.to_str().unwrap()]).exits(0);
        hatf(["symbolize", &trace]).exits(0);
        traces.push(trace);
    }
    let [before, after] = &traces[..] else { panic!() };
    let commands: [&[&str]; 9] = [
        &["report", before],
        &["sites", before],
        &["sites", before, "--group", "stack"],
        &["leaks", before],
        &["churn", before],
        &["fragmentation", before],
        &["whatif", before],
        &["processes", before],
        &["diff", before, after],
    ];
    let mut found = 0;
    for command in commands {
        let whole = hatf(command).exits(0).text();
        let names = names(&whole);
        found += names.len();
        for columns in WIDTHS {
            let text = hatf_in(columns, command).exits(0).text();
            assert_fits(&text, columns);
            // A name may be continued in the next line.
            let joined = text.replace([' ', '\n'], "");
            for name in &names {
                assert!(
                    joined.contains(name.as_str()),
                    "{command:?} in {columns} columns: no `{name}`\n{text}\n{whole}"
                );
            }
        }
        let text = hatf_in(0, command).exits(0).text();
        assert_eq!(text, whole, "COLUMNS is not a width");
    }
    assert!(found > 50, "{found}");
    let file = folder.path("report.txt");
    hatf_in(60, ["sites", before, "-o", &file]).exits(0);
    assert_eq!(std::fs::read_to_string(file).unwrap(), hatf(["sites", before]).text(), "files are not wrapped");
}

/// Returns programs that leak, crash, create processes or are Python programs.
fn programs(folder: &Folder) -> Vec<(&'static str, Vec<String>)> {
    let truth = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/truth");
    let mut all = Vec::new();
    for name in ["leak_and_churn", "crash", "leak_in_child", "fork_server"] {
        let Some(program) = compiled_from(&truth.join(name).with_extension("c"), folder, name, &[]) else { continue };
        all.push((name, vec![program.display().to_string()]));
    }
    if Command::new("python3").arg("-c").arg("").output().is_ok() {
        all.push(("leak.py", vec!["python3".to_owned(), truth.join("leak.py").display().to_string()]));
    } else {
        skip("no python3 on this machine");
    }
    all
}

/// The sentences, one table and the next commands fit a screen, and warnings come last.
#[test]
fn a_run_fits_the_screen() {
    let folder = Folder::new();
    for (name, command) in programs(&folder) {
        let trace = folder.path(&format!("{name}.mtf"));
        let arguments = ["run", "-o", &trace].map(str::to_owned).into_iter().chain(command.iter().cloned());
        let arguments: Vec<String> = arguments.collect();
        let screen = hatf(&arguments).err;
        let names = names(&screen);
        assert!(!names.is_empty(), "{name}: {screen}");
        for columns in [None, Some(60), Some(80), Some(200)] {
            let screen = columns.map_or_else(|| screen.clone(), |columns| hatf_in(columns, &arguments).err);
            let lines: Vec<_> = screen.lines().collect();
            assert!(columns == Some(60) || lines.len() <= SCREEN, "{name}: {} lines\n{screen}", lines.len());
            assert_fits(&screen, columns.unwrap_or(usize::MAX));
            let at = |start: &str| lines.iter().position(|line| line.starts_with(start));
            let tables = lines.iter().filter(|line| line.trim_start().starts_with("at peak")).count();
            assert_eq!(tables, 1, "{name}: {screen}");
            let next = at("NEXT").unwrap_or_else(|| panic!("{name}: no NEXT\n{screen}"));
            assert!(at("hatf:").is_none_or(|warning| warning > next), "{name}: a warning is not last\n{screen}");
            assert!(!screen.contains("in 1 blocks"), "{name}: {screen}");
            // Later runs may differ in the functions with few blocks.
            assert!(screen.replace([' ', '\n'], "").contains(&names[0]), "{name}: no `{}`\n{screen}", names[0]);
        }
    }
}

/// The title quotes arguments for a shell.
#[test]
fn a_title_can_be_run_again() {
    let folder = Folder::new();
    let trace = folder.path("quoted.mtf");
    let screen = hatf(["run", "-o", &trace, "sh", "-c", "echo 'a b' > /dev/null; ls / > /dev/null"]).exits(0).err;
    assert!(screen.starts_with("sh -c 'echo '\\''a b'\\'' > /dev/null; ls / > /dev/null'\n"), "{screen}");
}
