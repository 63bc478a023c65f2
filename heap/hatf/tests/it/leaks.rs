//! `hatf leaks`: live blocks at the end, compared with Valgrind and LeakSanitizer.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Stdio};

use insta::assert_snapshot;
use metatf_test::{Folder, skip};
use serde_json::{Value, json};

use crate::common::{compiled, hatf};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/");

fn leaks(trace: &str, options: &[&str]) -> Value {
    let command = [&["leaks", trace, "--format", "json"], options].concat();
    serde_json::from_str(&hatf(command).exits(0).text()).unwrap()
}

/// Builds and records the program. Returns the paths of the program and its trace.
fn recorded(folder: &Folder) -> Option<(String, String)> {
    let program = compiled(folder, "leaks", &["-O1", "-fno-builtin"])?.display().to_string();
    let trace = folder.path("t.mtf");
    hatf(["record", "--stacks", "--quiet", "-o", &trace, "--", &program]).exits(0);
    Some((program, trace))
}

fn of<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["groups"].as_array().unwrap().iter().find(|group| group["name"] == name).unwrap()
}

/// Returns the bytes and blocks in Valgrind's line with these words: `in use at exit: 1,234 bytes in 5 blocks`.
fn amount(text: &str, words: &str) -> Option<(u64, u64)> {
    let (_, line) = text.lines().find_map(|line| line.split_once(words))?;
    let mut numbers = line.split_whitespace().filter_map(|word| word.replace(',', "").parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

fn memcheck(options: &[&str], program: &[&str]) -> Option<String> {
    let run = Command::new("valgrind")
        .args(["--leak-check=full", "--show-leak-kinds=all"])
        .args(options)
        .args(program)
        .output();
    let Ok(run) = run else {
        skip("there is no valgrind");
        return None;
    };
    Some(String::from_utf8_lossy(&run.stderr).into_owned())
}

#[test]
fn functions_of_a_program() {
    let folder = Folder::new();
    let Some((program, trace)) = recorded(&folder) else { return };
    let report = leaks(&trace, &[]);
    for (name, blocks, bytes, direction) in [
        ("leak_request", 300, 30_000, "growing"),
        ("load_table", 1000, 32_000, "steady"),
        ("fill_cache", 50, 3200, "steady"),
    ] {
        let group = of(&report, name);
        assert_eq!(group["live"], json!({"blocks": blocks, "bytes": bytes}), "{group}");
        assert_eq!(group["growth"]["direction"], direction, "{group}");
        let ages = ["youngest", "median", "oldest"].map(|age| group["ages"][age].as_u64().unwrap());
        assert!(ages.is_sorted() && ages[2] < report["at"]["time"].as_u64().unwrap(), "{group}");
    }
    // Growing functions come first, and blocks from the startup are counted.
    assert_eq!(report["groups"][0]["name"], "leak_request");
    assert_eq!(of(&report, "load_table")["startup"]["blocks"], 1000);
    assert_eq!(of(&report, "fill_cache")["startup"]["blocks"], 0);
    // The buffer of stdout belongs to glibc.
    assert_eq!(report["known_to_stay"][0]["blocks"], 1);
    assert_eq!((&report["left"]["live"]["bytes"], &report["suppressed"]["bytes"]), (&json!(65_200), &json!(0)));
    // The live bytes in all are those that `hatf sites` reports.
    let sites: Value = serde_json::from_str(&hatf(["sites", "--format", "json", &trace]).exits(0).text()).unwrap();
    let leaked: u64 =
        sites["sites"].as_array().unwrap().iter().map(|site| site["leaked"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(report["live"]["bytes"], leaked);
    let text = hatf(["leaks", &trace]).exits(0).text();
    for said in [
        "1 function grows: leak_request at ",
        "KNOWN TO STAY",
        "glibc's buffers of stdin",
        "Valgrind and LeakSanitizer search",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    assert!(!hatf(["leaks", &trace, "--hide-known"]).exits(0).text().contains("glibc's buffers"));
    // At another time, and with another startup time.
    let early = leaks(&trace, &["--at", "peak"]);
    assert_eq!(early["left"]["live"]["bytes"], 65_200, "it is the highest at the end");
    let end = report["at"]["time"].as_u64().unwrap();
    let half = leaks(&trace, &["--at", &format!("{}ns", end - 20_000_000)]);
    assert!(of(&half, "leak_request")["live"]["blocks"].as_u64() < Some(300));
    assert!(half["at"]["time"].as_u64() <= Some(end - 20_000_000));
    let all = leaks(&trace, &["--startup", "end"]);
    assert_eq!((&all["left"]["startup"], &all["left"]["growth"]), (&all["left"]["live"], &Value::Null));
    hatf(["leaks", &trace, "--at", "mark:nowhere"]).exits(2).says("mark:nowhere: the trace has no marks");
    for form in ["markdown", "html", "svg"] {
        assert!(hatf(["leaks", &trace, "--format", form]).exits(0).text().contains("request at"), "{form}");
    }
    // LeakSanitizer and Valgrind find the same leaks.
    let sanitized = folder.path("sanitized");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-g",
        "-O1",
        "-fno-builtin",
        "-fsanitize=address",
        "-o",
        &sanitized,
        "heap/hatf/tests/programs/leaks.c",
    ]);
    let built = compiler.current_dir(metatf_test::root()).stderr(Stdio::null()).status();
    if built.is_ok_and(|built| built.success()) {
        let run = Command::new(&sanitized).env("ASAN_OPTIONS", "detect_leaks=1").output().unwrap();
        let said = String::from_utf8_lossy(&run.stderr).into_owned();
        if said.contains("LeakSanitizer has encountered a fatal error") {
            skip("LeakSanitizer cannot run here");
        } else {
            assert!(said.contains("62000 byte(s) leaked in 1300 allocation(s)"), "{said}");
        }
    }
    let Some(said) = memcheck(&["--run-libc-freeres=no"], &[&program]) else { return };
    let live = &report["live"];
    let [bytes, blocks] = ["bytes", "blocks"].map(|of| live[of].as_u64().unwrap());
    assert_eq!(amount(&said, "in use at exit:"), Some((bytes, blocks)), "{said}");
    let kinds = ["definitely lost:", "indirectly lost:"].map(|kind| amount(&said, kind).unwrap());
    assert_eq!((kinds[0].0 + kinds[1].0, kinds[0].1 + kinds[1].1), (62_000, 1300), "{said}");
}

/// `hatf` reads the suppressions that it writes for either tool.
#[test]
fn suppressions_of_both_tools() {
    let folder = Folder::new();
    let Some((program, trace)) = recorded(&folder) else { return };
    let [supp, lsan, other] = ["a.supp", "b.supp", "c.supp"].map(|name| folder.path(name));
    hatf(["leaks", &trace, "--write-suppressions", &supp]).exits(0);
    let report = leaks(&trace, &["--suppressions", &supp]);
    assert_eq!((&report["left"]["live"]["blocks"], &report["suppressed"]["bytes"]), (&json!(0), &json!(65_200)));
    assert_eq!(report["suppressions"].as_array().unwrap().len(), 3);
    let text = hatf(["leaks", &trace, "--suppressions", &supp]).exits(0).text();
    assert!(text.contains("nothing else is live") && text.contains("SUPPRESSED"), "{text}");
    hatf(["leaks", &trace, "--write-suppressions", &lsan, "--suppression-form", "lsan"]).exits(0);
    assert_eq!(leaks(&trace, &["--suppressions", &lsan])["left"]["live"]["blocks"], 0);
    // An unused suppression is named, and suppressions for other errors are counted.
    std::fs::write(&other, "{\n x\n Memcheck:Cond\n fun:x\n}\n{\n unused\n Memcheck:Leak\n fun:*\n fun:_ZN1x*\n}\n")
        .unwrap();
    let told = hatf(["leaks", &trace, "--suppressions", &other, "--suppressions", &lsan]).exits(0).err;
    assert!(told.contains("c.supp:6: unused suppresses nothing: mangled names with wildcards cannot match"), "{told}");
    assert!(told.contains("1 suppressions were ignored"), "{told}");
    // Limits for the remaining blocks.
    let of = |options: &[&str]| hatf([&["leaks", &trace], options].concat());
    of(&["--fail-over", "65200"]).exits(0);
    of(&["--fail-over", "65199"]).exits(1).says("65,200 bytes remain, more than the limit of 65,199");
    of(&["--fail-over", "1349", "--blocks"]).exits(1).says("1,350 blocks remain, more than the limit of 1,349");
    of(&["--fail-over", "0", "--suppressions", &supp]).exits(0);
    of(&["--fail-over", "5%"]).exits(2).says("expected an amount");
    std::fs::write(&other, "{\n x\n").unwrap();
    of(&["--suppressions", &other])
        .exits(1)
        .says("c.supp:1: the file ends before the suppression's kind, such as Memcheck:Leak");
    of(&["--suppressions", &folder.path("none")]).exits(1).says("none: No such file");
    // Valgrind accepts the suppressions written for it.
    let Some(said) = memcheck(&["-q", &format!("--suppressions={supp}")], &[&program]) else { return };
    assert!(!said.contains("blocks are"), "{said}");
}

/// For real programs, the live bytes and blocks at the end are exactly those that Valgrind reports.
#[test]
fn of_real_programs() {
    let folder = Folder::new();
    let words = folder.path("words");
    std::fs::write(&words, "b\na\nc\n").unwrap();
    for program in [&["sort", &words][..], &["grep", "-r", "b", &words]] {
        let trace = folder.path("t.mtf");
        hatf([&["record", "--stacks", "--quiet", "-o", &trace, "--"], program].concat()).exits(0);
        let report = leaks(&trace, &["--symbols", "none"]);
        let [bytes, blocks] = ["bytes", "blocks"].map(|of| report["live"][of].as_u64().unwrap());
        assert!(blocks > 0, "{program:?}");
        let Some(said) = memcheck(&["--run-libc-freeres=no"], program) else { return };
        assert_eq!(amount(&said, "in use at exit:"), Some((bytes, blocks)), "{said}");
    }
}

/// Traces without stacks and times, and samples, can be analyzed. Traces with sizes only are refused.
#[test]
fn traces_that_lack_something() {
    let folder = Folder::new();
    let gawk = DATA.to_owned() + "gawk.raw32.zst";
    let report = leaks(&gawk, &[]);
    assert_eq!(report["groups"].as_array().unwrap().len(), 1);
    assert_eq!((&report["ages"], &report["rates"]), (&json!("bytes allocated since"), &json!("bytes in 1,000 events")));
    let trace: Value = serde_json::from_str(&hatf(["simulate", &gawk, "--format", "json"]).exits(0).text()).unwrap();
    assert_eq!(report["live"]["blocks"], trace["trace"]["never_freed"]);
    let text = hatf(["leaks", &gawk]).exits(0).text().replace(DATA, "");
    assert_snapshot!("leaks-gawk", text);
    hatf(["leaks", &gawk, "--at", "30s"]).exits(2).says("the trace has no timestamps");
    // Blocks without a stack cannot be suppressed.
    let supp = folder.path("x.supp");
    hatf(["leaks", &gawk, "--write-suppressions", &supp]).exits(0).says("could not write suppressions for 1 stacks");
    assert_eq!(std::fs::read_to_string(&supp).unwrap().lines().count(), 1);
    let Some((program, _)) = recorded(&folder) else { return };
    let [sizes, sample] = ["sizes.mtf", "sample.mtf"].map(|name| folder.path(name));
    hatf(["record", "--sizes-only", "--quiet", "-o", &sizes, "--", &program]).exits(0);
    hatf(["leaks", &sizes]).exits(1).says("the trace was recorded with --sizes-only");
    hatf(["record", "--sample", "256", "--stacks", "--quiet", "-o", &sample, "--", &program]).exits(0);
    let report = leaks(&sample, &[]);
    assert_eq!(report["sampling"], 256);
    // This is an estimate for 1,000 blocks of 32 bytes, of which a sample contains 118 on average.
    let estimate = of(&report, "load_table")["live"]["bytes"].as_u64().unwrap();
    assert!((16_000..48_000).contains(&estimate), "{estimate}");
    assert!(Path::new(&sample).is_file());
}
