//! Tests the page in a headless browser. `METATF_PLAYGROUND` is the file that `dev/scripts/playground` created; without it,
//! the test is skipped.

use crate::heaps::heaps;
use metatf_test::{Folder, root, skip};
use std::process::Command;

#[test]
fn what_is_done_changes_what_it_should() {
    let Ok(page) = std::env::var("METATF_PLAYGROUND") else {
        return skip("METATF_PLAYGROUND does not name a page (dev/scripts/playground makes one)");
    };
    let built = Command::new(env!("CARGO")).args(["build", "--quiet", "--locked", "-p", "metatfc"]).status().unwrap();
    assert!(built.success());
    let target = std::env::var("CARGO_TARGET_DIR").map_or_else(|_| root().join("target"), Into::into);
    let folder = Folder::new();
    for (name, bytes) in heaps() {
        folder.write(&name, &bytes);
    }
    let acts = root().join("dev/playground/tests/acts.mjs");
    let Ok(ran) = Command::new("node")
        .arg(acts)
        .arg(page)
        .arg(target.join("debug/metatfc"))
        .arg(root())
        .arg(folder.path(""))
        .output()
    else {
        return skip("no node on this machine");
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    if said.contains("no browser") {
        skip("no chromium on this machine");
    }
}
