//! A failing recoding always terminates, although its threads read, plan, compress and write at the same time.
//! `METATF_TEST_FACTOR` multiplies the number of rounds.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::panic, reason = "a test")]

use metatf_test::{Folder, PATIENCE};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The number of simultaneous recodings. Their threads outnumber the cores, so they are interrupted anywhere.
const TOGETHER: usize = 4;

fn metatfc(folder: &Folder, args: &[String]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_metatfc"));
    command.args(args).current_dir(&**folder).stdin(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("metatfc runs")
}

/// Waits for a child process. A process that hangs is killed and fails the test.
fn ends(mut child: Child, args: &[String]) -> bool {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status.success();
        }
        if started.elapsed() > PATIENCE {
            child.kill().expect("a child");
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn failing_recodes_end() {
    let folder = Folder::new();
    let dtd = "section s 1 { r: (tag, a, b) { tag.value = 4; a.width = 4; a.interpretation = none; b.width = 2; \
               b.interpretation = none; } }";
    folder.write("s.dtd", dtd);
    let mut lines = String::new();
    for i in 0..3000_u32 {
        let (a, b) = (i.wrapping_mul(2_654_435_761) >> 8, i % 1000);
        lines += &format!("{{\"@section\":\"s\",\"@record\":\"r\",\"a\":{a},\"b\":{b}}}\n");
        if i % 500 == 499 {
            lines += "{\"@group\":1}\n";
        }
    }
    folder.write("s.jsonl", lines);
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let encode = words("convert --dtd s.dtd --chunk 1K s.jsonl s.mtf");
    assert!(ends(metatfc(&folder, &encode), &encode));
    let whole = folder.read("s.mtf");
    let mut seed = 1_u32;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as usize % below
    };
    for round in 0..50 * metatf_test::factor() {
        let running = (0..TOGETHER).map(|n| {
            let mut bytes = whole.clone();
            let at = 600 + random(bytes.len() - 600);
            bytes[at] ^= 0xff;
            folder.write(&format!("in{n}.mtf"), &bytes);
            // About half of the recodings cannot write either.
            let out = if random(2) == 0 { "/dev/full".to_owned() } else { format!("out{n}.mtf") };
            let (threads, block) = (2 + random(3), ["256", "1K", "64K"][random(3)]);
            let (chunk, codec) = (["1K", "16K", "4M"][random(3)], ["zstd:19", "zstd:1", "lz4"][random(3)]);
            let args = words(&format!(
                "convert --threads {threads} --block {block} --chunk {chunk} --codec {codec} in{n}.mtf {out}"
            ));
            (metatfc(&folder, &args), args)
        });
        for (child, args) in running.collect::<Vec<_>>() {
            assert!(!ends(child, &args), "round {round}: {args:?} did not fail");
        }
    }
}
