//! `doc`: the pages contain no dead links, escape names, and do not overwrite other files.
#![allow(clippy::unwrap_used, reason = "a test")]

use super::common::metatfc;
use metatf_test::{Folder, root};
use std::collections::BTreeSet;

/// Returns the parts of a string between `before` and the next quote.
fn quoted<'t>(text: &'t str, before: &str) -> Vec<&'t str> {
    text.split(before).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Returns the number of links in the pages and all dead links.
fn dead_links(folder: &Folder, pages: &str) -> (usize, Vec<String>) {
    let files: Vec<_> =
        std::fs::read_dir(folder.join(pages)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    let files: Vec<String> = files.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    let mut addresses = BTreeSet::new();
    for file in &files {
        let text = folder.text(&format!("{pages}/{file}"));
        addresses.insert(file.clone());
        addresses.extend(quoted(&text, " id=\"").iter().map(|id| format!("{file}#{id}")));
    }
    let mut dead = Vec::new();
    let mut links = 0;
    for file in &files {
        for link in quoted(&folder.text(&format!("{pages}/{file}")), "href=\"") {
            let full = if link.starts_with('#') { format!("{file}{link}") } else { link.to_owned() };
            links += 1;
            if !addresses.contains(&full) {
                dead.push(format!("{file}: {link}"));
            }
        }
    }
    (links, dead)
}

#[test]
fn sample() {
    let folder = Folder::new();
    let samples = root().join("docs/samples");
    let dtd = samples.join("requests.dtd").display().to_string();
    let lines = samples.join("requests.jsonl").display().to_string();
    let _ = metatfc(&folder, &["convert", "--dtd", &dtd, &lines, "r.mtf"]).exits(0);
    let _ = metatfc(&folder, &["show", &dtd, "--doc", "pages", "--trace", "r.mtf"])
        .exits(0)
        .prints("pages/index.html: 5 pages");
    insta::assert_snapshot!("doc-section", folder.text("pages/section-1.html"));
    insta::assert_snapshot!("doc-index", folder.text("pages/index.html"));
    let (links, dead) = dead_links(&folder, "pages");
    assert!(links > 35, "{links}");
    assert_eq!(dead, [""; 0]);
    // A second run replaces the pages of the first.
    let _ = metatfc(&folder, &["show", &dtd, "--doc", "pages"]).exits(0);
    assert!(!folder.text("pages/section-1.html").contains("r.mtf"));
}

#[test]
fn built_in_formats() {
    let folder = Folder::new();
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("dtds")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "dtd") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let _ = metatfc(&folder, &["show", &path.display().to_string(), "--doc", &name]).exits(0);
        let (links, dead) = dead_links(&folder, &name);
        assert!(links > 5, "{name}");
        assert_eq!(dead, [""; 0], "{name}");
        // The pages contain no scripts and load nothing from other servers.
        for file in std::fs::read_dir(folder.join(&name)).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            assert!(!text.contains("<script") && !text.contains("src=") && !text.contains("href=\"http"), "{name}");
        }
        count += 1;
    }
    assert!(count > 10, "{count}");
}

#[test]
fn markup_is_harmless() {
    let folder = Folder::new();
    folder.write(
        "f<b>.dtd",
        "// <script>alert(1)</script>\nsection s 1 {\n    // <img src=x> `<i>`\n    r: (tag, a) {\n        tag.value = 4; a.width = 1; \
         a.interpretation = none; a.unit = \"<u>\"; a.values = \"1 <v>\"; a.\"x<y\" = \"\\\"><script>\";\n    }\n}\n",
    );
    let _ = metatfc(&folder, &["show", "f<b>.dtd", "--doc", "pages"]).exits(0);
    for file in ["index.html", "section-1.html", "dtd.html"] {
        let text = folder.text(&format!("pages/{file}"));
        for bad in ["<script", "<img", "<i>&", "<u>", "<v>", "<y", "f<b>"] {
            assert!(!text.contains(bad), "{file} has {bad}");
        }
    }
    assert!(folder.text("pages/section-1.html").contains("&lt;img src=x&gt; <code>&lt;i&gt;</code>"));
}

#[test]
fn nothing_else_is_replaced() {
    let folder = Folder::new();
    folder.write("a.dtd", "section s 1 { r: (tag) { tag.value = 4; } }");
    std::fs::create_dir(folder.join("mine")).unwrap();
    folder.write("mine/index.html", "mine");
    let _ = metatfc(&folder, &["show", "a.dtd", "--doc", "mine"])
        .exits(1)
        .says("mine/index.html")
        .says("choose another directory");
    assert_eq!(folder.text("mine/index.html"), "mine");
    assert_eq!(std::fs::read_dir(folder.join("mine")).unwrap().count(), 1);
    folder.write("mine/index.html", "");
    let _ = metatfc(&folder, &["show", "a.dtd", "--doc", "mine/index.html"]).exits(1).says("mine/index.html");
    // A trace with a different DTD cannot provide examples.
    let dtd = root().join("docs/samples/requests.dtd").display().to_string();
    let lines = root().join("docs/samples/requests.jsonl").display().to_string();
    let _ = metatfc(&folder, &["convert", "--dtd", &dtd, &lines, "r.mtf"]).exits(0);
    let _ = metatfc(&folder, &["show", "a.dtd", "--doc", "new", "--trace", "r.mtf"])
        .exits(1)
        .says("the trace has a different DTD");
    assert!(!folder.join("new").exists());
    let _ = metatfc(&folder, &["show", "r.mtf", "--doc", "new", "--trace", "r.mtf"]).exits(0);
}
