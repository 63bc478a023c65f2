//! CRC-32C, the checksum of chunks (spec 5.2).
//!
//! The crate `crc32c` processes 8 bytes at a time with a common CPU instruction. CPUs with AVX-512 multiply polynomials
//! of 64 bytes, which takes half the time. This matters when a trace is read at gigabytes per second.

/// Returns the CRC-32C of the preceding bytes, whose CRC is `crc`, followed by `bytes`. The CRC of no bytes is 0.
pub(crate) fn append(crc: u32, bytes: &[u8]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    let (crc, bytes) = wide::append(crc, bytes);
    crc32c::crc32c_append(crc, bytes)
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use std::arch::x86_64::{
        __m128i, __m512i, _mm_clmulepi64_si128, _mm_crc32_u64, _mm_cvtsi32_si128, _mm_cvtsi128_si64, _mm_extract_epi64,
        _mm_set_epi64x, _mm_xor_si128, _mm512_broadcast_i32x4, _mm512_clmulepi64_epi128, _mm512_extracti32x4_epi32,
        _mm512_loadu_si512, _mm512_ternarylogic_epi64, _mm512_xor_si512, _mm512_zextsi128_si512,
    };

    /// Number of bytes processed in one step: four 64-byte registers, so that the multiplications are independent.
    const BLOCK: usize = 256;

    /// Processes all complete blocks and returns the remaining bytes. Without the required CPU instructions, no block
    /// is processed.
    #[allow(unsafe_code, reason = "uses instructions that not all CPUs support")]
    pub(super) fn append(crc: u32, bytes: &[u8]) -> (u32, &[u8]) {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let Some((first, others)) = blocks.split_first() else { return (crc, bytes) };
        let has = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("vpclmulqdq");
        if !has || !is_x86_feature_detected!("pclmulqdq") || !is_x86_feature_detected!("sse4.2") {
            return (crc, bytes);
        }
        // SAFETY: this CPU supports the instructions that `of_blocks` is compiled to.
        (unsafe { of_blocks(crc, first, others) }, rest)
    }

    /// Returns x^n modulo the polynomial, with reflected bits: bit 31 is the coefficient of x^0.
    const fn power(n: usize) -> i64 {
        let mut power: u32 = 1 << 31;
        let mut i = 0;
        while i < n {
            power = power >> 1 ^ if power & 1 == 1 { 0x82f6_3b78 } else { 0 };
            i += 1;
        }
        power as i64
    }

    /// Returns the factors that move 16 bytes of a polynomial forward by this many bytes: one for the first 8 bytes and
    /// one for the last 8.
    const fn factors(bytes: usize) -> (i64, i64) {
        (power(8 * bytes + 31), power(8 * bytes - 33))
    }

    #[target_feature(enable = "avx512f,vpclmulqdq,pclmulqdq,sse4.2")]
    fn of_blocks(crc: u32, first: &[u8; BLOCK], others: &[[u8; BLOCK]]) -> u32 {
        let mut sums = load(first);
        let start = _mm512_zextsi128_si512(_mm_cvtsi32_si128((!crc).cast_signed()));
        sums[0] = _mm512_xor_si512(sums[0], start);
        for block in others {
            // `map` is not used, because its code would be compiled for all CPUs.
            let ([a, b, c, d], next) = (sums, load(block));
            sums = [
                move_on::<BLOCK>(a, next[0]),
                move_on::<BLOCK>(b, next[1]),
                move_on::<BLOCK>(c, next[2]),
                move_on::<BLOCK>(d, next[3]),
            ];
        }
        let [a, b, c, d] = sums;
        let sum = move_on::<64>(move_on::<64>(move_on::<64>(a, b), c), d);
        let sum = [
            _mm512_extracti32x4_epi32::<0>(sum),
            _mm512_extracti32x4_epi32::<1>(sum),
            _mm512_extracti32x4_epi32::<2>(sum),
            _mm512_extracti32x4_epi32::<3>(sum),
        ];
        let [a, b, c, d] = sum;
        let sum = move_on_16(move_on_16(move_on_16(a, b), c), d);
        let low = _mm_crc32_u64(0, _mm_cvtsi128_si64(sum).cast_unsigned());
        let crc = _mm_crc32_u64(low, _mm_extract_epi64::<1>(sum).cast_unsigned());
        // The CRC has 32 bits, so the conversion cannot fail.
        !u32::try_from(crc).unwrap_or_default()
    }

    #[target_feature(enable = "avx512f")]
    #[allow(unsafe_code, reason = "loads")]
    fn load(block: &[u8; BLOCK]) -> [__m512i; 4] {
        let at = block.as_ptr().cast::<__m512i>();
        // SAFETY: the block's 256 bytes are four times 64, and these loads require no alignment.
        unsafe {
            [
                _mm512_loadu_si512(at),
                _mm512_loadu_si512(at.add(1)),
                _mm512_loadu_si512(at.add(2)),
                _mm512_loadu_si512(at.add(3)),
            ]
        }
    }

    /// Moves a sum forward by `BYTES` bytes and adds the data at that position.
    #[target_feature(enable = "avx512f,vpclmulqdq")]
    fn move_on<const BYTES: usize>(sum: __m512i, next: __m512i) -> __m512i {
        let (first, last) = const { factors(BYTES) };
        let factors = _mm512_broadcast_i32x4(_mm_set_epi64x(last, first));
        let first = _mm512_clmulepi64_epi128::<0x00>(sum, factors);
        let last = _mm512_clmulepi64_epi128::<0x11>(sum, factors);
        _mm512_ternarylogic_epi64::<0x96>(first, last, next)
    }

    #[target_feature(enable = "pclmulqdq")]
    fn move_on_16(sum: __m128i, next: __m128i) -> __m128i {
        let (first, last) = const { factors(16) };
        let factors = _mm_set_epi64x(last, first);
        let first = _mm_clmulepi64_si128::<0x00>(sum, factors);
        let last = _mm_clmulepi64_si128::<0x11>(sum, factors);
        _mm_xor_si128(_mm_xor_si128(first, last), next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computes the CRC bit by bit, as defined in spec 5.2.
    fn by_bits(crc: u32, bytes: &[u8]) -> u32 {
        let step = |crc: u32, byte: &u8| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
        };
        !bytes.iter().fold(!crc, step)
    }

    #[test]
    fn is_that_of_bits() {
        assert_eq!(append(0, b"123456789"), 0xe306_9283);
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            u32::try_from(state >> 32).unwrap()
        };
        let bytes: Vec<u8> = (0..5000).map(|_| random().to_le_bytes()[3]).collect();
        // Lengths slightly below and above each multiple of the block size, with any alignment.
        let lengths = (0..6).flat_map(|blocks| (0..=16).map(move |more| (blocks * 256 + more).max(8) - 8));
        for length in lengths.chain([1000, 4096, 4900]) {
            let (at, crc) = (random() as usize % 64, random());
            let bytes = &bytes[at..at + length];
            assert_eq!(append(crc, bytes), by_bits(crc, bytes), "{length} bytes at {at}");
            let (head, tail) = bytes.split_at(random() as usize % (length + 1));
            assert_eq!(append(append(crc, head), tail), append(crc, bytes), "{length} bytes at {at}, in two");
        }
    }
}
