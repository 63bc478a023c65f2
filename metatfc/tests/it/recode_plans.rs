//! `metatfc convert`: plans.
#![allow(clippy::expect_used, reason = "a test")]

use crate::common::{metatfc, run};
use metatf_test::Folder;

const DTD: &str = "\
section heap 1 {
    alloc: (tag, size, address) {
        tag.value = 4;
        size.width = 4;     size.interpretation = none;
        address.width = 4;  address.interpretation = none;
    }
    free: (tag, address) {
        tag.value = 5;
        address.width = 4;  address.interpretation = none;
    }
}
";

/// Creates a directory with a trace of repeated sizes and of addresses with a stride.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("h.dtd", DTD);
    let line = |i: u64| {
        let address = 0x5555_0000_0000 + 64 * i;
        format!(
            "{{\"@section\":\"heap\",\"@record\":\"alloc\",\"size\":48,\"address\":{address}}}\n\
             {{\"@section\":\"heap\",\"@record\":\"free\",\"address\":{address}}}\n"
        )
    };
    let lines: String = (0..500).map(line).collect();
    run(&folder, &["convert", "--dtd", "h.dtd", "-", "t.mtf"], lines.as_bytes()).exits(0);
    folder
}

#[test]
fn each_plan_keeps_the_records() {
    let folder = &folder();
    let sizes = ["naive", "optimal"].map(|plan| {
        metatfc(folder, &["convert", "t.mtf", plan, "--plan", plan, "--codec", "stored"]).exits(0);
        metatfc(folder, &["diff", "t.mtf", plan]).exits(0);
        metatfc(folder, &["verify", plan]).exits(0).prints("whole");
        folder.size(plan)
    });
    assert!(sizes[1] < sizes[0] / 2, "strides: {sizes:?}");
}

#[test]
fn only_the_fields_given_are_planned() {
    let folder = &folder();
    let recode = |out: &str, fields: &str| {
        metatfc(folder, &["convert", "t.mtf", out, "--codec", "stored", "--fields", fields]).exits(0);
        metatfc(folder, &["diff", "t.mtf", out]).exits(0);
        folder.size(out)
    };
    let (one, both) = (recode("one", "alloc.address"), recode("both", "size,address"));
    assert!(both + 3 * 500 < one, "{one} {both}");
    let wrong = metatfc(folder, &["convert", "t.mtf", "o", "--fields", "adress"]).exits(2);
    wrong.says("no numeric field `adress`").says("metatfc show");
    assert!(!folder.join("o").exists());
}

#[test]
fn through_pipes_and_containers() {
    let folder = &folder();
    let trace = folder.read("t.mtf");
    let once = run(folder, &["convert", "-", "-", "--version", "0"], &trace).exits(0).out;
    folder.write("v0.mtf", &once);
    metatfc(folder, &["diff", "--dtd", "h.dtd", "t.mtf", "v0.mtf"]).exits(0);
    let groups = run(folder, &["convert", "-", "-", "--block", "100", "--group", "1K"], &trace).exits(0).out;
    let verified = run(folder, &["verify", "-"], &groups).exits(0);
    assert!(!verified.text().contains("1 group"), "{}", verified.text());
    run(folder, &["convert", "-", "-", "--plan", "perfect"], &trace).exits(2).says("[possible values: naive, optimal]");
    run(folder, &["convert", "-", "o.mtf"], &trace[..trace.len() - 300]).exits(1);
    assert!(!folder.join("o.mtf").exists(), "a torn trace leaves nothing behind");
}
