#[metatf_derive::metatf()]
mod m {}

fn main() {}
