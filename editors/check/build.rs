//! Compiles the parser that the grammar of tree-sitter has been made into.

fn main() {
    let parser = "../tree-sitter-metatf/src/parser.c";
    println!("cargo::rerun-if-changed={parser}");
    cc::Build::new().include("../tree-sitter-metatf/src").file(parser).std("c11").compile("tree-sitter-metatf");
}
