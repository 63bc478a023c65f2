//! Compiles the parser generated from the tree-sitter grammar.

fn main() {
    let parser = "../tree-sitter-metatf/src/parser.c";
    println!("cargo::rerun-if-changed={parser}");
    cc::Build::new().include("../tree-sitter-metatf/src").file(parser).std("c11").compile("tree-sitter-metatf");
}
