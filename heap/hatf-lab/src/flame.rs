//! Totals by call stack as folded lines, which is the input format of flame graph tools.

use std::io::{self, Write};

use metatf_page::{Flame, Node};

/// Prints a line for each stack. A line consists of the functions, outermost first and separated by semicolons, and the
/// amount.
///
/// # Errors
/// Fails if the output cannot be written.
pub fn folded(flame: &Flame, out: &mut dyn Write) -> io::Result<()> {
    node(&flame.root, &mut Vec::new(), out)
}

/// Prints the lines of a function and its callees. Recursion is limited, because stacks are at most 256 frames deep.
fn node(of: &Node, stack: &mut Vec<String>, out: &mut dyn Write) -> io::Result<()> {
    if of.own() > 0 {
        writeln!(out, "{} {}", stack.join(";"), of.own())?;
    }
    for (name, call) in &of.calls {
        stack.push(name.replace([';', '\n'], ","));
        node(call, stack, out)?;
        stack.pop();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use metatf_page::Unit;

    #[test]
    fn weights_of_stacks() {
        let mut flame = Flame::new("", Unit::Bytes);
        flame.add(["main", "parse<a; b>"], 30);
        flame.add(["main"], 10);
        flame.add(["main", "parse<a; b>"], 5);
        flame.add(["nothing"], 0);
        flame.add::<String>([], 5);
        assert_eq!(flame.root.total, 50);
        let mut out = Vec::new();
        folded(&flame, &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), " 5\nmain 10\nmain;parse<a, b> 35\n");
    }
}
