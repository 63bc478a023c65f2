//! Programs with planted behavior: `hatf run` prints the sentences that `tests/truth/table.txt` expects, and every other
//! output repeats their words and numbers. The book shows the table.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used, clippy::panic)]

use std::ffi::OsStr;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use metatf_test::{Folder, skip};
use serde_json::Value;

use crate::common::{compiled_from, hatf};

const TRUTH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth");

/// A program and its expected sentences.
#[derive(Default)]
struct Case {
    name: String,
    first: Vec<String>,
    also: Vec<String>,
    never: Vec<String>,
    churn: Vec<String>,
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(Path::new(TRUTH).join("table.txt")).unwrap();
    let mut cases: Vec<Case> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let Some((key, value)) = line.strip_prefix("  ").map(|line| line.split_once(' ').unwrap()) else {
            cases.push(Case { name: line.to_owned(), ..Case::default() });
            continue;
        };
        let case = cases.last_mut().unwrap();
        let list = match key {
            "planted" => continue,
            "first" => &mut case.first,
            "also" => &mut case.also,
            "never" => &mut case.never,
            "churn" => &mut case.churn,
            _ => panic!("unknown key `{key}`"),
        };
        list.push(value.trim().to_owned());
    }
    cases
}

/// Returns whether a sentence matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap()) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[test]
fn patterns() {
    assert!(matches("a", "a") && !matches("a", "ab") && matches("a*", "ab") && matches("a*c*", "abcd"));
    assert!(!matches("a*c", "abcd") && matches("a*d", "abcd") && !matches("a*b*b", "ab"));
}

/// Returns the command that runs a program, or `None` if this machine lacks a compiler or an interpreter.
fn command(folder: &Folder, name: &str) -> Option<Vec<PathBuf>> {
    let source = Path::new(TRUTH).join(name);
    let program = folder.join(name.split('.').next().unwrap());
    let interpreter = match source.extension().and_then(OsStr::to_str).unwrap() {
        "c" => return Some(vec![compiled_from(&source, folder, program.file_name()?.to_str()?, &[])?]),
        "cpp" => {
            let built = Command::new("c++").args(["-g", "-o"]).args([&program, &source]).status();
            if built.is_err() {
                skip("no c++ on this machine");
                return None;
            }
            return program.exists().then(|| vec![program]);
        }
        "py" => "python3",
        _ => "sh",
    };
    if Command::new(interpreter).arg("-c").arg("").output().is_err() {
        skip(&format!("no {interpreter} on this machine"));
        return None;
    }
    Some(vec![interpreter.into(), source])
}

/// Returns the indented lines at the start of a text, or of the part after the line `title`.
fn sentences(text: &str, title: &str) -> Vec<String> {
    let mut lines = text.lines();
    if !title.is_empty() {
        assert!(lines.any(|line| line == title), "there is no `{title}`: {text}");
    }
    lines.map_while(|line| line.strip_prefix("  ").map(str::to_owned)).collect()
}

/// Returns the sentences in an HTML report.
fn of_page(page: &Path) -> Vec<String> {
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("<script id=\"words\" type=\"text/plain\">").unwrap();
    let packed = base64::engine::general_purpose::STANDARD.decode(rest.split('<').next().unwrap().trim()).unwrap();
    let mut words = String::new();
    flate2::read::GzDecoder::new(&*packed).read_to_string(&mut words).unwrap();
    let words: Value = serde_json::from_str(&words).unwrap();
    let sentences = words["sentences"].as_array().unwrap();
    sentences.iter().map(|sentence| sentence["text"].as_str().unwrap().to_owned()).collect()
}

/// Runs a program and compares its sentences with the expected ones. Returns the number of compared sentences.
fn check(folder: &Folder, case: &Case) -> usize {
    let name = &case.name;
    let Some(command) = command(folder, name) else { return 0 };
    let output = folder.join(name.replace('.', "_")).with_extension("mtf");
    let title = command.iter().map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ");
    let run = ["run".into(), "-o".into(), output].into_iter().chain(command);
    let screen = hatf(run).err;
    let mut said = sentences(&screen, &title);
    if said.first().is_some_and(|first| first.contains(" processes were recorded; this is process ")) {
        said.remove(0);
    }
    for (number, pattern) in case.first.iter().enumerate() {
        let sentence = said.get(number).map_or("", String::as_str);
        assert!(matches(pattern, sentence), "{name}: sentence {number} is not `{pattern}`: {screen}");
    }
    for pattern in &case.also {
        assert!(said.iter().any(|sentence| matches(pattern, sentence)), "{name}: no `{pattern}`: {screen}");
    }
    for pattern in &case.never {
        assert!(!said.iter().any(|sentence| sentence.contains(pattern)), "{name}: there is `{pattern}`: {screen}");
    }
    // The trace may be that of a child process.
    let page = screen.lines().find_map(|line| line.split_once(": HTML report over time")).unwrap().0.trim();
    let trace = Path::new(page).with_extension("mtf").display().to_string();
    assert_eq!(of_page(Path::new(page)), said, "{name}");
    assert_eq!(sentences(&hatf(["report", &trace]).exits(0).text(), ""), said, "{name}");
    let json: Value = serde_json::from_slice(&hatf(["report", &trace, "--format", "json"]).exits(0).out).unwrap();
    assert_eq!(json["summary"], Value::from(said.clone()), "{name}");
    let markdown = hatf(["report", &trace, "--format", "markdown"]).exits(0).text().replace('\\', "");
    said.iter().for_each(|sentence| assert!(markdown.contains(sentence), "{name}: no `{sentence}`: {markdown}"));
    let leaks = hatf(["leaks", &trace]).exits(0).text();
    assert_eq!(sentences(&leaks, &trace).first(), said.first(), "{name}");
    for text in &case.churn {
        let churn = hatf(["churn", &trace, "--rows", "1"]).exits(0).text();
        assert!(churn.contains(text), "{name}: no `{text}`: {churn}");
    }
    said.len()
}

/// Most of the time, the programs sleep, so several of them run at once.
#[test]
fn the_first_sentences_are_true() {
    let (cases, folder) = (cases(), Folder::new());
    assert!(cases.len() >= 25);
    let files = std::fs::read_dir(TRUTH).unwrap().count();
    assert_eq!(files, cases.len() + 1, "a program is missing in tests/truth/table.txt");
    let compared = std::thread::scope(|scope| {
        let part = |number: usize| {
            let own = cases.iter().skip(number).step_by(WORKERS);
            let folder = &folder;
            scope.spawn(move || own.map(|case| check(folder, case)).collect::<Vec<_>>())
        };
        let workers: Vec<_> = (0..WORKERS).map(part).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    assert!(compared.iter().filter(|count| **count > 0).count() >= 10 || compared.iter().all(|count| *count == 0));
}

/// The number of programs that run at once.
const WORKERS: usize = 3;

/// The script of the HTML report prints bytes, shares and times like the text report.
#[test]
fn the_page_rounds_like_the_text() {
    let data = metatf_test::root().join("heap/hatf-view/src/page/assets/data.js");
    let mut values: Vec<u64> = vec![0, 1, 1023, 1024, 1025, 477_364_224, 47_300];
    let mut value = 1_u64;
    while value < 1 << 50 {
        values.extend([value, value + 1, value - 1]);
        value = value * 3 / 2 + 1;
    }
    let script = "const { bytesText, partText, nanosecondsText } = require(process.argv[1]); \
                  const all = JSON.parse(process.argv[2]); \
                  console.log(JSON.stringify(all.map(value => [bytesText(value), partText(value, 2 ** 50), nanosecondsText(value)])));";
    let ran = Command::new("node").args(["-e", script]).arg(data).arg(serde_json::to_string(&values).unwrap()).output();
    let Ok(ran) = ran else { return skip("no node on this machine") };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: Vec<[String; 3]> = serde_json::from_slice(&ran.stdout).unwrap();
    for (value, found) in values.iter().zip(found) {
        let (bytes, time) = (metatf_page::units::bytes(*value), metatf_page::units::nanoseconds(*value));
        let expected = [bytes, metatf_page::units::percent(*value, 1 << 50), time];
        assert_eq!(found, expected, "{value}");
    }
}
