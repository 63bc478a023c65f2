fn main() {
    for p in std::env::args().skip(1) {
        let t = std::fs::read(&p).unwrap();
        let r = metatf_parser::parse(&p, &t);
        for d in &r.diagnostics {
            println!("{}\n", metatf_parser::render(d, &p, &t, false));
        }
    }
}
