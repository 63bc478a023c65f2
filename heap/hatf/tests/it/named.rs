//! Commands that print stacks symbolize frames themselves.
#![cfg(target_arch = "x86_64")]
#![expect(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{compiled, hatf};
use metatf_test::{Folder, Run, run, skip};

/// A program and its trace.
struct Recorded {
    folder: Folder,
    program: PathBuf,
    trace: String,
}

fn recorded(options: &[&str]) -> Option<Recorded> {
    let folder = Folder::new();
    let program = compiled(&folder, "stacks", &["-O1", "-Wl,--build-id"])?;
    let (trace, path) = (folder.path("t.mtf"), program.display().to_string());
    hatf([&["record", "-q", "-o", &trace], options, &["--", &path]].concat()).exits(7);
    Some(Recorded { folder, program, trace })
}

impl Recorded {
    fn sites(&self, options: &[&str]) -> Run {
        hatf([&["sites", &self.trace, "--by", "allocated"], options].concat()).exits(0)
    }
}

fn tool(name: &str, arguments: &[&str]) {
    assert!(Command::new(name).args(arguments).status().unwrap().success(), "{name} {arguments:?}");
}

/// Each command shows functions, and also files and lines if there is space.
#[test]
fn commands_name_functions() {
    let Some(recorded) = recorded(&["--stacks"]) else { return };
    let (trace, profile) = (&*recorded.trace, recorded.folder.path("t.prof.mtf"));
    let plain = recorded.sites(&["--symbols", "none"]);
    assert!(plain.text().contains("stacks+0x") && !plain.text().contains("stacks.c:"), "{}", plain.text());
    assert_eq!(plain.err, "");
    let json = recorded.sites(&["--format", "json"]).text();
    assert!(json.contains("\"name\": \"recursion\"") || json.contains("\"name\":\"recursion\""), "{json}");
    let first = "here at ";
    for (arguments, text) in [
        (&["sites", trace][..], first),
        (&["churn", trace], first),
        (&["leaks", trace], "glibc's buffers of stdin"),
        (&["dump", trace], first),
        (&["diff", trace, trace, "--by", "peak"], "no difference"),
        (&["report", trace], "here:"),
        (&["report", trace, "--with", "sites,churn"], first),
        (&["report", trace, "--with", "profile"], first),
        (&["fragmentation", trace, "--at", "30"], " here:"),
        (&["sites", trace, "--by", "allocated", "--format", "folded"], "main;recursion;recursion;"),
        (&["profile", trace, "-o", &profile], "t.prof.mtf"),
        (&["profile", "show", &profile, "--symbols", "none"], first),
    ] {
        hatf(arguments).exits(0).prints(text);
    }
    hatf(["regions", "infer", trace, "--most-cost", "99%"]).exits(0).prints("main");
    // A profile made without symbols is symbolized when it is shown.
    hatf(["profile", trace, "-o", &profile, "--symbols", "none"]).exits(0);
    assert!(!hatf(["profile", "show", &profile, "--symbols", "none"]).exits(0).text().contains(first));
    hatf(["profile", "show", &profile]).exits(0).prints(first);
}

/// The debug information is in a file that the program names.
#[test]
fn a_stripped_program_with_a_debug_link() {
    let Some(recorded) = recorded(&["--stacks"]) else { return };
    let program = recorded.program.display().to_string();
    let separate = format!("{program}.debug");
    tool("objcopy", &["--only-keep-debug", &program, &separate]);
    tool("strip", &[&program]);
    // No message mentions frames that are not shown.
    assert_eq!(recorded.sites(&["--rows", "0"]).err, "");
    let nameless = recorded.sites(&["--rows", "100"]);
    let why = "frames have no names: it has no debug information; compile it with -g and do not strip it\n";
    assert!(nameless.err.starts_with(&format!("hatf: {program}: ")), "{}", nameless.err);
    assert_eq!(nameless.err.matches(why).count(), 1, "{}", nameless.err);
    tool("objcopy", &["--add-gnu-debuglink", &separate, &program]);
    recorded.sites(&["--rows", "100"]).prints("recursion at ").prints("stacks.c:");
}

/// A rebuilt program does not count as the recorded one.
#[test]
fn a_program_that_has_changed() {
    let Some(recorded) = recorded(&["--stacks"]) else { return };
    let other = Folder::new();
    let changed = compiled(&other, "stacks", &["-O0", "-Wl,--build-id"]).unwrap();
    std::fs::rename(&recorded.program, recorded.folder.join("kept")).unwrap();
    std::fs::copy(&changed, &recorded.program).unwrap();
    let sites = recorded.sites(&[]);
    assert!(sites.text().contains("stacks+0x") && !sites.text().contains("recursion"), "{}", sites.text());
    assert_eq!(sites.err.matches("is a different version: its build ID is not ").count(), 1, "{}", sites.err);
    // A missing program is reported once for both traces.
    std::fs::remove_file(&recorded.program).unwrap();
    let diff = hatf(["diff", &recorded.trace, &recorded.trace]).exits(0);
    assert_eq!(diff.err.matches("does not exist").count(), 1, "{}", diff.err);
}

/// The traces contain symbols when the program has ended.
#[test]
fn recorded_with_symbols() {
    let Some(recorded) = recorded(&["--symbolize"]) else { return };
    std::fs::remove_file(&recorded.program).unwrap();
    let sites = recorded.sites(&["--symbols", "none", "--rows", "100"]).prints("recursion at ").prints("stacks.c:");
    assert_eq!(sites.err, "");
    let refused = hatf(["record", "--symbolize", "-o", "-", "--", "true"]).exits(2);
    refused.says("the output must be a file in heap format");

    let folder = Folder::new();
    let (trace, again) = (folder.path("p.mtf"), folder.path("again.mtf"));
    let made = "perl -e 1; perl -e 1; true";
    hatf(["record", "--symbolize", "-q", "-o", &trace, "--", "sh", "-c", made]).exits(0);
    let traces = std::fs::read_dir(folder.join("p.processes")).unwrap().map(|entry| entry.unwrap().path());
    let traces: Vec<_> = traces.filter(|path| path.extension().is_some_and(|ending| ending == "mtf")).collect();
    assert!(traces.len() >= 2, "{traces:?}");
    for trace in traces {
        let trace = trace.display().to_string();
        hatf(["sites", &trace, "--symbols", "none", "--inclusive"]).exits(0).prints("main");
    }
    // A copy of the trace can be read.
    std::fs::copy(&trace, &again).unwrap();
    hatf(["report", &again]).exits(0);
}

/// Writes a debuginfod client, a script that finds files in a directory as a server does. Returns the `PATH` with it.
fn client(folder: &Folder, served: &Path) -> String {
    let bin = folder.join("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$1 $2 $DEBUGINFOD_TIMEOUT $DEBUGINFOD_MAXSIZE\" >> {0}/asked\nfile={0}/buildid/$2/$1\n[ -f $file ] && echo $file\n",
        served.display()
    );
    std::fs::write(bin.join("debuginfod-find"), script).unwrap();
    std::fs::set_permissions(bin.join("debuginfod-find"), std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// Strips the program and stores the removed parts in a directory for a server. Returns the build ID and the directory.
fn served(recorded: &Recorded) -> (String, PathBuf) {
    let program = recorded.program.display().to_string();
    let id = hatf_view::symbolize::build_id(&recorded.program).unwrap();
    let served = recorded.folder.join("served");
    let of_id = served.join("buildid").join(&id);
    std::fs::create_dir_all(&of_id).unwrap();
    tool("objcopy", &["--only-keep-debug", &program, &of_id.join("debuginfo").display().to_string()]);
    tool("strip", &[&program]);
    std::fs::copy(&program, of_id.join("executable")).unwrap();
    (id, served)
}

/// If a file is not on this machine, `hatf` queries debuginfod, but only if its variable is set.
#[test]
fn debuginfod_is_asked() {
    let Some(recorded) = recorded(&["--stacks"]) else { return };
    let (id, served) = served(&recorded);
    let path = client(&recorded.folder, &served);
    let sites = |urls: Option<&str>, path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
        command.args(["sites", &recorded.trace, "--by", "allocated", "--rows", "100"]).env("PATH", path);
        command.env_remove("DEBUGINFOD_URLS").env_remove("DEBUGINFOD_TIMEOUT").env("DEBUGINFOD_MAXSIZE", "12345");
        run(command.envs(urls.map(|urls| ("DEBUGINFOD_URLS", urls)))).exits(0)
    };
    assert!(!sites(None, &path).text().contains("recursion"));
    assert!(!served.join("asked").exists());
    sites(Some("http://localhost:1"), &path).prints("recursion at ");
    let asked = std::fs::read_to_string(served.join("asked")).unwrap();
    assert!(asked.contains(&format!("debuginfo {id} 20 12345\n")) && !asked.contains("executable"), "{asked}");
    std::fs::remove_file(&recorded.program).unwrap();
    sites(Some("http://localhost:1"), &path).prints("recursion at ");
    assert!(std::fs::read_to_string(served.join("asked")).unwrap().contains(&format!("executable {id} ")));
    // A file of another build ID is not used.
    std::fs::copy("/bin/true", served.join("buildid").join(&id).join("executable")).unwrap();
    assert!(!sites(Some("http://localhost:1"), &path).text().contains("recursion"));
    let missing = sites(Some("http://localhost:1"), &recorded.folder.path("nothing"));
    assert_eq!(
        missing.err.matches("DEBUGINFOD_URLS is set, but debuginfod-find is not installed").count(),
        1,
        "{}",
        missing.err
    );
}

/// The elfutils client finds the same names on a server.
#[test]
fn debuginfod_of_elfutils() {
    let Some(recorded) = recorded(&["--stacks"]) else { return };
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("debuginfod-find") || !has("python3") {
        return skip("no debuginfod-find, or no python3");
    }
    let (_, served) = served(&recorded);
    // The port is free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut server = Command::new("python3")
        .args(["-m", "http.server", "--bind", "127.0.0.1", &port])
        .current_dir(&served)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let waits = (0..500).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok()
    });
    let mut command = Command::new(env!("CARGO_BIN_EXE_hatf"));
    command.args(["sites", &recorded.trace, "--by", "allocated", "--rows", "100"]);
    command.env("DEBUGINFOD_URLS", format!("http://127.0.0.1:{port}"));
    let sites = run(command.env("DEBUGINFOD_CACHE_PATH", recorded.folder.path("cache")));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(waits);
    sites.exits(0).prints("recursion at ");
}
