use super::moved::{Refusal, move_beginning};
use super::*;

/// The number of bytes taken, the moved instructions, and the position and the target of each distance in these
/// instructions.
type Beginning = (usize, Vec<u8>, Vec<(u8, u64)>);

/// Moves the beginning of a function.
fn moved(function: &[u8]) -> std::result::Result<Beginning, Refusal> {
    let moved = move_beginning(0x1000, function, &[0x90; 16])?;
    let fixes = moved.fix[..moved.fixes].iter().map(|fix| (fix.at, fix.target)).collect();
    Ok((moved.taken, moved.code[..moved.length].to_vec(), fixes))
}

#[test]
fn beginnings_that_are_moved() {
    // endbr64; push rbp; mov rbp, rsp
    let plain = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0xc3];
    assert_eq!(moved(&plain), Ok((5, plain[..5].to_vec(), vec![])));
    // push rbx; lea rax, [rip + 0x10]; ret
    let distance = [0x53, 0x48, 0x8d, 0x05, 0x10, 0, 0, 0, 0xc3];
    assert_eq!(moved(&distance), Ok((8, distance[..8].to_vec(), vec![(4, 0x1018)])));
    // cmp dword ptr [rip + 0x10], 1; ret: the distance is relative to the end of the immediate.
    let number = [0x83, 0x3d, 0x10, 0, 0, 0, 1, 0xc3];
    assert_eq!(moved(&number), Ok((7, number[..7].to_vec(), vec![(2, 0x1017)])));
    // test rdi, rdi; je + 5: becomes the longer form.
    let short = [0x48, 0x85, 0xff, 0x74, 5, 0x90, 0x90, 0x90, 0x90, 0x90, 0xc3];
    assert_eq!(moved(&short), Ok((5, vec![0x48, 0x85, 0xff, 0x0f, 0x84, 0, 0, 0, 0], vec![(5, 0x100a)])));
    // A single jump to another function.
    assert_eq!(moved(&[0xe9, 0xfb, 0xff, 0, 0]), Ok((5, vec![0xe9, 0, 0, 0, 0], vec![(1, 0x1_1000)])));
    // jmp + 0x20, and the padding after it.
    assert_eq!(moved(&[0xeb, 0x20]), Ok((5, vec![0xe9, 0, 0, 0, 0], vec![(1, 0x1022)])));
    // sub rsp, 8; call + 0x20: the called function returns to the original position after the call.
    let call = [0x48, 0x83, 0xec, 8, 0xe8, 0x20, 0, 0, 0, 0xc3];
    let pushed = vec![0x48, 0x83, 0xec, 8, 0xff, 0x35, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0];
    assert_eq!(moved(&call), Ok((9, pushed, vec![(6, u64::MAX), (11, 0x1029)])));
    // xor eax, eax; ret
    assert_eq!(moved(&[0x31, 0xc0, 0xc3]), Ok((5, vec![0x31, 0xc0, 0xc3], vec![])));
}

#[test]
fn beginnings_that_are_refused() {
    // A call through a register.
    assert_eq!(moved(&[0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3]), Err(Refusal::Instruction));
    // loop, and an invalid instruction.
    assert_eq!(moved(&[0xe2, 0x10, 0x90, 0x90, 0x90, 0xc3]), Err(Refusal::Instruction));
    assert_eq!(moved(&[0x06, 0x90, 0x90, 0x90, 0x90, 0xc3]), Err(Refusal::Instruction));
    // Too short, without padding.
    assert_eq!(moved(&[0x53, 0x5b]), Err(Refusal::Short));
    assert_eq!(moved(&[]), Err(Refusal::Short));
    assert_eq!(move_beginning(0x1000, &[0x31, 0xc0, 0xc3], &[0x55, 0x53]).map(|_| ()), Err(Refusal::Short));
    // push rbx; dec edi; jne to the second instruction.
    assert_eq!(moved(&[0x53, 0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xf9, 0x5b, 0xc3]), Err(Refusal::Branch));
    // The same after an unknown instruction.
    assert_eq!(moved(&[0x53, 0xff, 0xcf, 0x90, 0x90, 0x06, 0x75, 0xf9, 0x5b, 0xc3]), Err(Refusal::Branch));
    // A branch to the first instruction is allowed: it makes a nested call.
    assert!(moved(&[0x53, 0xff, 0xcf, 0x90, 0x90, 0x90, 0x75, 0xf8, 0x5b, 0xc3]).is_ok());
}

/// Arbitrary bytes either decode to an instruction within them or are rejected.
#[test]
fn any_bytes() {
    let mut random = 1_u64;
    for _ in 0..200_000 {
        let mut bytes = [0; 32];
        for byte in &mut bytes {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = random.to_le_bytes()[5];
        }
        let length = usize::from(bytes[31] % 20);
        if let Some(Instruction { length: read, .. }) = decode(&bytes[..length]) {
            assert!(read <= length.min(15));
        }
        if let Ok(moved) = move_beginning(random, &bytes[..length], &bytes[length..]) {
            assert!((JUMP_BYTES..=TAKEN_MAX).contains(&moved.taken));
            assert!(moved.fix[..moved.fixes].iter().all(|fix| usize::from(fix.at) + 4 <= moved.length));
        }
    }
}

/// Decoded lengths of instructions in real programs match the lengths that binutils report, and hardly any instruction
/// is unknown.
#[test]
fn lengths_are_those_of_binutils() {
    let own = std::env::current_exe().unwrap();
    let mut objdump = std::process::Command::new("objdump");
    let Ok(output) = objdump.args(["-d", "-w", "-z", "--no-show-raw-insn", "--section=.text"]).arg(&own).output()
    else {
        return;
    };
    if !output.status.success() || cfg!(not(target_arch = "x86_64")) {
        return;
    }
    let data = std::fs::read(&own).unwrap();
    let file = object::File::parse(&*data).unwrap();
    let text = file.section_by_name(".text").unwrap();
    let (start, code) = (text.address(), text.data().unwrap());
    let listed = String::from_utf8_lossy(&output.stdout);
    let address = |line: &str| u64::from_str_radix(line.trim_start().split_once(':')?.0, 16).ok();
    let lines: Vec<_> = listed.lines().filter_map(|line| Some((address(line)?, line))).collect();
    let (mut unknown, mut all) = (0, 0);
    for pair in lines.windows(2) {
        let [(at, line), (next, _)] = pair else { continue };
        let Some(place) = at.checked_sub(start).and_then(|place| usize::try_from(place).ok()) else { continue };
        if line.contains("(bad)") {
            continue;
        }
        all += 1;
        match decode(&code[place..]) {
            None => unknown += 1,
            Some(instruction) => assert_eq!(instruction.length as u64, next - at, "{line}"),
        }
    }
    assert!(all > 100_000 && unknown * 1000 < all, "{unknown} of {all}");
}
