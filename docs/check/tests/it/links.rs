//! Every page of the book is in its table of contents, and links between pages lead somewhere.

use metatf_docs_check::pages;
use metatf_test::root;

/// Targets of the inline links of a page, outside of code.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let plain: String = line.split('`').step_by(2).collect();
            let targets = plain.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.map(str::to_owned));
        }
    }
    found
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let kept = heading.trim_start_matches('#').trim().chars();
        let kept = kept.filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    // mdBook copies nothing else.
    let book = root().join("docs").canonicalize().unwrap();
    for page in pages().unwrap() {
        let path = root().join(&page);
        let text = std::fs::read_to_string(&path).unwrap();
        for link in links(&text) {
            if link.starts_with("http://") || link.starts_with("https://") {
                continue;
            }
            let (file, anchor) = link.split_once('#').map_or((link.as_str(), None), |(f, a)| (f, Some(a)));
            let target = if file.is_empty() { path.clone() } else { path.with_file_name(file) };
            if !target.exists() {
                wrong.push(format!("{}: {link}: there is no such file", page.display()));
            } else if page.starts_with("docs") && !target.canonicalize().unwrap().starts_with(&book) {
                wrong.push(format!("{}: {link}: not in the book: give its address", page.display()));
            } else if let Some(anchor) = anchor {
                let text = std::fs::read_to_string(&target).unwrap();
                if !anchors(&text).iter().any(|a| a == anchor) {
                    wrong.push(format!("{}: {link}: there is no such heading", page.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_contents_once() {
    let contents = links(&std::fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap());
    for page in pages().unwrap() {
        let Ok(name) = page.strip_prefix("docs") else { continue };
        let name = name.to_string_lossy();
        if name != "SUMMARY.md" {
            let count = contents.iter().filter(|link| **link == *name).count();
            assert_eq!(
                count, 1,
                "docs/SUMMARY.md names docs/{name} {count} times: mdbook refuses a page that it has twice"
            );
        }
    }
}
