//! A stack frame as the kernel builds it for a thread that runs a signal handler. It contains the registers, vector
//! state and blocked signals that the system call `rt_sigreturn` restores.
//!
//! A function that `hatf` calls in a thread of another process returns through such a frame. As long as `hatf` is
//! running, it stops the thread before `rt_sigreturn` and restores the thread's state itself, so that an interrupted
//! system call is restarted. If `hatf` has been killed, the frame lets the thread resume by itself.

/// Number of 8-byte words in the frame: the return address, the flags and a link, the alternate signal stack, the
/// registers, and the blocked signals.
const WORDS: usize = 1 + 2 + 3 + 32 + 1;
/// The offset, within the vector state, of the kernel's description of that state.
const ABOUT: usize = 464;
const MAGIC_1: u32 = 0x4650_5853;
const MAGIC_2: u32 = 0x4650_5845;
/// Flags which state that the vector state exceeds the SSE state, and that the stack segment is valid.
const FLAGS: u64 = 1 | 2 | 4;
/// Invalid flags for the alternate signal stack, so that the kernel leaves this stack unchanged.
const NO_STACK: u64 = 0x7777;

/// Returns the maximum size of a frame whose vector state has this many bytes.
pub(super) fn most_bytes(vectors: usize) -> usize {
    // The words are followed by the vector state and another word; the words are aligned to 16 bytes, the vector state
    // to 64 bytes.
    WORDS * 8 + vectors + 4 + 8 + 16 + 64
}

/// Builds a frame below an address. Returns the address and the bytes of the frame. The frame begins with a return
/// address, so a function can be called with its stack pointer at the frame.
pub(super) fn frame(
    top: u64,
    back: u64,
    registers: &libc::user_regs_struct,
    vectors: &[u8],
    signals: u64,
) -> (u64, Vec<u8>) {
    let mut saved = vectors.to_vec();
    let size = u32::try_from(vectors.len()).unwrap_or_default();
    if let Some(about) = saved.get_mut(ABOUT..ABOUT + 24) {
        // At this offset, the kernel has stored which vector registers are present.
        let features: [u8; 8] = vectors.get(ABOUT..ABOUT + 8).and_then(|word| word.try_into().ok()).unwrap_or_default();
        about[..4].copy_from_slice(&MAGIC_1.to_ne_bytes());
        about[4..8].copy_from_slice(&(size + 4).to_ne_bytes());
        about[8..16].copy_from_slice(&features);
        about[16..20].copy_from_slice(&size.to_ne_bytes());
        about[20..24].fill(0);
    }
    saved.extend(MAGIC_2.to_ne_bytes());
    let vectors_at = (top - saved.len() as u64) & !63;
    // At the start of a function, the stack is aligned except for the return address.
    let at = ((vectors_at - WORDS as u64 * 8) & !15) - 8;
    let now = again(registers);
    let segments = now.cs | (now.ss << 48);
    let mut words = [0_u64; WORDS];
    let known = [
        back, FLAGS, 0, 0, NO_STACK, 0, now.r8, now.r9, now.r10, now.r11, now.r12, now.r13, now.r14, now.r15, now.rdi,
        now.rsi, now.rbp, now.rbx, now.rdx, now.rax, now.rcx, now.rsp, now.rip, now.eflags, segments, 0, 0, 0, 0,
        vectors_at,
    ];
    for (place, word) in words.iter_mut().zip(known) {
        *place = word;
    }
    words[WORDS - 1] = signals;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes.resize(usize::try_from(vectors_at - at).unwrap_or_default(), 0);
    bytes.extend(saved);
    (at, bytes)
}

/// Returns registers with which an interrupted system call is restarted. If only the kernel could restart it, the call
/// instead fails as if interrupted by a signal.
fn again(registers: &libc::user_regs_struct) -> libc::user_regs_struct {
    /// The kernel's `ERESTARTSYS` to `ERESTARTNOHAND`, and `ERESTART_RESTARTBLOCK`.
    const AGAIN: std::ops::RangeInclusive<i64> = -514..=-512;
    const WITH_MORE: i64 = -516;
    let mut registers = *registers;
    let (call, result) = (registers.orig_rax.cast_signed(), registers.rax.cast_signed());
    if call >= 0 && AGAIN.contains(&result) {
        registers.rax = registers.orig_rax;
        registers.rip -= 2;
    } else if call >= 0 && result == WITH_MORE {
        registers.rax = (-i64::from(libc::EINTR)).cast_unsigned();
    }
    registers
}

/// Returns the machine code to which called functions return. The code stores the function's result and makes the
/// kernel restore the frame.
pub(super) fn code(result: u64) -> Vec<u8> {
    let [a, b, c, d, e, f, g, h] = result.to_ne_bytes();
    vec![
        0x48, 0xa3, a, b, c, d, e, f, g, h, // movabs %rax, result
        0xb8, 15, 0, 0, 0, // mov $15, %eax
        0x0f, 0x05, // syscall
        0xeb, 0xf7, // jmp to the mov: if the call was not made, it is made now
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registers() -> libc::user_regs_struct {
        // SAFETY: all zeros is a valid value of this struct of integers.
        unsafe { std::mem::zeroed() }
    }

    #[test]
    fn places_of_a_frame() {
        let mut registers = registers();
        (registers.rip, registers.rsp, registers.orig_rax) = (0x1234, 0x5678, u64::MAX);
        for length in [576, 832, 2696] {
            for top in [0x10000_u64, 0x10008, 0x10030] {
                let (at, bytes) = frame(top, 77, &registers, &vec![1; length], 99);
                let word = |place: usize| u64::from_ne_bytes(bytes[place * 8..][..8].try_into().unwrap());
                assert_eq!((at % 16, word(0), word(38)), (8, 77, 99));
                assert_eq!((word(21), word(22)), (0x5678, 0x1234));
                assert!(at + bytes.len() as u64 <= top && word(29) % 64 == 0);
                assert!(top - at <= most_bytes(length) as u64);
                let vectors = usize::try_from(word(29) - at).unwrap();
                assert_eq!(bytes[vectors..].len(), length + 4);
                assert_eq!(bytes[vectors + ABOUT..][..4], MAGIC_1.to_ne_bytes());
            }
        }
    }

    #[test]
    fn interrupted_system_calls() {
        let mut registers = registers();
        (registers.rip, registers.orig_rax, registers.rax) = (100, 7, (-512_i64).cast_unsigned());
        let made = again(&registers);
        assert_eq!((made.rip, made.rax), (98, 7));
        registers.rax = (-516_i64).cast_unsigned();
        let made = again(&registers);
        assert_eq!((made.rip, made.rax.cast_signed()), (100, -4));
        registers.orig_rax = u64::MAX;
        assert_eq!(again(&registers).rax, registers.rax);
    }
}
