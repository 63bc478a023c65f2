#[metatf_derive::metatf(dtd = "x.dtd", path = "y")]
mod m {}

fn main() {}
