//! Quotations on pages match the files.

use metatf_docs_check::{pages, quoted};
use metatf_test::golden::bless;
use metatf_test::page::{blocks, replace};
use metatf_test::root;

#[test]
fn quotes_are_the_text_of_the_files() {
    let mut wrong = Vec::new();
    for page in pages().unwrap() {
        let text = std::fs::read_to_string(root().join(&page)).unwrap();
        let mut changes = Vec::new();
        for block in blocks(&text) {
            let Some(reference) = block.above.as_deref().and_then(|a| a.strip_prefix("file: ")) else { continue };
            let place = format!("{}:{}", page.display(), block.line);
            match quoted(reference) {
                Ok(lines) if lines == block.lines => {}
                Ok(lines) if bless() => changes.push((block.line, lines)),
                Ok(_) => wrong.push(format!("{place}: differs from {reference}")),
                Err(why) => wrong.push(format!("{place}: {why}")),
            }
        }
        if !changes.is_empty() {
            std::fs::write(root().join(&page), replace(&text, &changes)).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{}\nMETATF_BLESS=1 copies the files into the pages", wrong.join("\n"));
}
