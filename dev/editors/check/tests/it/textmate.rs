//! Checks that the TextMate grammar assigns the same classes as the tree-sitter grammar, wherever both assign one.

use std::process::Command;

use metatf_test::{root, run_with, skip};
use serde_json::{Value, json};

use crate::texts::{blocks, files};
use crate::tokens::{Class, classes};

/// Maximum length of a line that VS Code highlights (`editor.maxTokenizationLineLength`).
const LONGEST_LINE: usize = 20_000;

#[test]
fn agrees_with_tree_sitter() {
    let extension = root().join("dev/editors/vscode");
    if !extension.join("node_modules/vscode-textmate").is_dir() {
        skip("vscode-textmate is not there (npm ci in dev/editors/vscode)");
        return;
    }
    let texts: Vec<_> = files()
        .into_iter()
        .chain(blocks())
        .filter_map(|text| Some((text.name, String::from_utf8(text.bytes).ok()?)))
        .filter(|(_, content)| content.lines().all(|line| line.len() <= LONGEST_LINE))
        .filter(|(_, content)| !metatf_editors_check::parse(content).expect("a tree").root_node().has_error())
        .collect();
    let input = json!(texts.iter().map(|(_, content)| content).collect::<Vec<_>>()).to_string();
    let ran = run_with(Command::new("node").arg("test/tokens.mjs").current_dir(&extension), input.as_bytes()).exits(0);
    let tokens: Vec<Vec<(usize, usize, String)>> = serde_json::from_slice::<Value>(&ran.out)
        .and_then(serde_json::from_value)
        .unwrap_or_else(|error| panic!("{error}: {}", ran.text()));
    assert_eq!(tokens.len(), texts.len());

    let (mut all, mut compared) = ([0; Class::ALL.len()], [0; Class::ALL.len()]);
    let mut different = Vec::new();
    for ((name, content), tokens) in texts.iter().zip(tokens) {
        let expected = classes(content);
        for class in expected.iter().flatten() {
            all[*class as usize] += 1;
        }
        for (start, end, scope) in tokens {
            let Some(class) = Class::of_scope(&scope) else { continue };
            for at in start..end {
                let Some(expected) = expected[at] else { continue };
                compared[expected as usize] += 1;
                if expected != class {
                    let line = content[..start].matches('\n').count() + 1;
                    different.push(format!("{name}:{line}: {:?}: {scope}, not {expected:?}", &content[start..end]));
                    break;
                }
            }
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different[..different.len().min(30)].join("\n"));
    // Both assign a class to nearly all names, numbers, strings and comments.
    for class in Class::ALL {
        let (all, both) = (all[class as usize], compared[class as usize]);
        assert!(both > 100 && both * 100 >= all * 99, "{class:?}: {both} of {all} characters are compared");
    }
}
