//! Byte transpose, which stores n elements of `width` bytes as `width` runs of n bytes (spec 5.2, filter 1).
//!
//! Interleaving two runs produces elements of two bytes, and after three rounds of interleaving, eight runs have become
//! elements of eight bytes. Compilers vectorize the loop of each round, but not a loop over elements and their bytes,
//! so widths 2, 4 and 8 are several times as fast.

/// Block size in elements. A block and all its runs stay in the first-level cache.
const BLOCK: usize = 512;

/// Transposes elements into runs. The caller has checked that `raw` consists of complete elements and that `out` has
/// the same length.
pub(crate) fn transpose(raw: &[u8], width: usize, out: &mut [u8]) {
    match width {
        0 | 1 => out.copy_from_slice(raw),
        2 => to_runs::<2>(raw, out),
        4 => to_runs::<4>(raw, out),
        8 => to_runs::<8>(raw, out),
        _ => {
            let n = (raw.len() / width).max(1);
            for (block, elements) in raw.chunks(BLOCK * width).enumerate() {
                for (k, run) in out.chunks_exact_mut(n).take(width).enumerate() {
                    for (byte, element) in run[block * BLOCK..].iter_mut().zip(elements.chunks_exact(width)) {
                        *byte = element[k];
                    }
                }
            }
        }
    }
}

/// Restores elements from runs. The caller has checked that `stored` consists of complete elements and that `out` has
/// the same length.
pub(crate) fn restore(stored: &[u8], width: usize, out: &mut [u8]) {
    match width {
        0 | 1 => out.copy_from_slice(stored),
        2 => to_elements::<2>(stored, out),
        4 => to_elements::<4>(stored, out),
        8 => to_elements::<8>(stored, out),
        _ => {
            let n = (stored.len() / width).max(1);
            for (block, elements) in out.chunks_mut(BLOCK * width).enumerate() {
                for (k, run) in stored.chunks_exact(n).take(width).enumerate() {
                    for (byte, element) in run[block * BLOCK..].iter().zip(elements.chunks_exact_mut(width)) {
                        element[k] = *byte;
                    }
                }
            }
        }
    }
}

/// Transposes elements of `W` bytes, where `W` is 2, 4 or 8.
fn to_runs<const W: usize>(raw: &[u8], out: &mut [u8]) {
    let n = raw.len() / W;
    let (mut a, mut b) = ([0; BLOCK * 8], [0; BLOCK * 8]);
    let (mut from, mut to) = (&mut a[..BLOCK * W], &mut b[..BLOCK * W]);
    for (block, elements) in raw.chunks(BLOCK * W).enumerate() {
        let len = elements.len();
        from[..len].copy_from_slice(elements);
        for _ in 1..W.ilog2() {
            let (even, odd) = to[..len].split_at_mut(len / 2);
            part(&from[..len], even, odd);
            std::mem::swap(&mut from, &mut to);
        }
        // Run k is now interleaved with run k + W / 2.
        let pair_len = len / (W / 2).max(1);
        for (k, pair) in from[..len].chunks_exact(pair_len.max(1)).enumerate() {
            let (low, high) = out.split_at_mut((k + W / 2) * n);
            let at = block * BLOCK;
            let m = pair_len / 2;
            part(pair, &mut low[k * n + at..][..m], &mut high[at..][..m]);
        }
    }
}

/// Restores elements of `W` bytes, where `W` is 2, 4 or 8.
fn to_elements<const W: usize>(stored: &[u8], out: &mut [u8]) {
    let n = stored.len() / W;
    let (mut a, mut b) = ([0; BLOCK * 8], [0; BLOCK * 8]);
    let (mut from, mut to) = (&mut a[..BLOCK * W], &mut b[..BLOCK * W]);
    for (block, elements) in out.chunks_mut(BLOCK * W).enumerate() {
        let len = elements.len();
        let pair_len = len / (W / 2).max(1);
        for (k, pair) in from[..len].chunks_exact_mut(pair_len.max(1)).enumerate() {
            let at = block * BLOCK;
            let m = pair_len / 2;
            take_turns(&stored[k * n + at..][..m], &stored[(k + W / 2) * n + at..][..m], pair);
        }
        for _ in 1..W.ilog2() {
            let (even, odd) = from[..len].split_at(len / 2);
            take_turns(even, odd, &mut to[..len]);
            std::mem::swap(&mut from, &mut to);
        }
        elements.copy_from_slice(&from[..len]);
    }
}

fn take_turns(even: &[u8], odd: &[u8], both: &mut [u8]) {
    for ((pair, even), odd) in both.as_chunks_mut::<2>().0.iter_mut().zip(even).zip(odd) {
        *pair = [*even, *odd];
    }
}

#[allow(clippy::cast_possible_truncation, reason = "one of two bytes; other ways are ten times slower")]
fn part(both: &[u8], even: &mut [u8], odd: &mut [u8]) {
    for ((pair, even), odd) in both.as_chunks::<2>().0.iter().zip(even).zip(odd) {
        let pair = u16::from_le_bytes(*pair);
        *even = pair as u8;
        *odd = (pair >> 8) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_back() {
        for width in [1_usize, 2, 3, 4, 5, 7, 8, 16, 255] {
            for n in [0_usize, 1, 2, 511, 512, 513, 2000] {
                let raw: Vec<u8> = (0..=250_u8).cycle().step_by(31).take(n * width).collect();
                let mut runs = vec![0; raw.len()];
                transpose(&raw, width, &mut runs);
                for (i, byte) in runs.iter().enumerate() {
                    assert_eq!(*byte, raw[i % n * width + i / n], "width {width}, {n} elements, byte {i}");
                }
                let mut back = vec![0; raw.len()];
                restore(&runs, width, &mut back);
                assert_eq!(back, raw);
            }
        }
    }
}
