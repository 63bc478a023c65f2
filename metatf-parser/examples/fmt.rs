fn main() {
    for p in std::env::args().skip(1) {
        let t = std::fs::read(&p).unwrap();
        println!("=== {p}\n{}", metatf_parser::format(&p, &t).unwrap());
    }
}
