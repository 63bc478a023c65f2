//! Byte transpose: n elements of `width` bytes, stored as `width` runs of n bytes (spec 5.2, filter 1).

/// Elements are taken in blocks that stay in the first-level cache with all their runs.
const BLOCK: usize = 512;

/// Elements to runs. What is left over of an element at the end is dropped; callers have checked there is none.
pub(crate) fn transpose(raw: &[u8], width: usize, out: &mut [u8]) {
    match width {
        0 | 1 => out.copy_from_slice(raw),
        2 => to_runs::<2>(raw, out),
        3 => to_runs::<3>(raw, out),
        4 => to_runs::<4>(raw, out),
        8 => to_runs::<8>(raw, out),
        _ => {
            let n = raw.len() / width;
            for (k, run) in out.chunks_exact_mut(n.max(1)).take(width).enumerate() {
                for (byte, element) in run.iter_mut().zip(raw.chunks_exact(width)) {
                    *byte = element[k];
                }
            }
        }
    }
}

/// Runs to elements.
pub(crate) fn restore(stored: &[u8], width: usize, out: &mut [u8]) {
    match width {
        0 | 1 => out.copy_from_slice(stored),
        2 => to_elements::<2>(stored, out),
        3 => to_elements::<3>(stored, out),
        4 => to_elements::<4>(stored, out),
        8 => to_elements::<8>(stored, out),
        _ => {
            let n = stored.len() / width;
            for (k, run) in stored.chunks_exact(n.max(1)).take(width).enumerate() {
                for (byte, element) in run.iter().zip(out.chunks_exact_mut(width)) {
                    element[k] = *byte;
                }
            }
        }
    }
}

fn to_runs<const W: usize>(raw: &[u8], out: &mut [u8]) {
    let n = raw.len() / W;
    for (block, elements) in raw.chunks(BLOCK * W).enumerate() {
        for (k, run) in out.chunks_exact_mut(n.max(1)).take(W).enumerate() {
            for (byte, element) in run[block * BLOCK..].iter_mut().zip(elements.chunks_exact(W)) {
                *byte = element[k];
            }
        }
    }
}

fn to_elements<const W: usize>(stored: &[u8], out: &mut [u8]) {
    let n = stored.len() / W;
    for (block, elements) in out.chunks_mut(BLOCK * W).enumerate() {
        for (k, run) in stored.chunks_exact(n.max(1)).take(W).enumerate() {
            for (byte, element) in run[block * BLOCK..].iter().zip(elements.chunks_exact_mut(W)) {
                element[k] = *byte;
            }
        }
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
