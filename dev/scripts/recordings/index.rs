//! Indexes a text: maps each word to the lines that contain it, then groups the words by their number of occurrences.
use std::collections::{BTreeMap, HashMap};

fn words(line: &str) -> Vec<String> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

fn index(text: &str) -> HashMap<String, Vec<u32>> {
    let mut index: HashMap<String, Vec<u32>> = HashMap::new();
    for (number, line) in (0..).zip(text.lines()) {
        for word in words(line) {
            index.entry(word).or_default().push(number);
        }
    }
    index
}

fn by_count(index: &HashMap<String, Vec<u32>>) -> BTreeMap<usize, Vec<&str>> {
    let mut counts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (word, lines) in index {
        counts.entry(lines.len()).or_default().push(word);
    }
    counts
}

fn main() {
    let path = std::env::args().nth(1).expect("a text");
    let text = std::fs::read_to_string(path).expect("a text");
    let index = index(&text);
    let counts = by_count(&index);
    println!("{} words, {} counts", index.len(), counts.len());
}
