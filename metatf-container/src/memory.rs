//! Buffers that are reused for contents of similar size (chunks, columns, steps of a plan).

/// Empties a vector and reserves capacity for `length` elements. If the vector must grow, an extra eighth is reserved,
/// because the next contents are often slightly larger. (If `Vec` grew by itself, it would double its capacity and copy
/// the obsolete contents.)
pub fn reserve<T>(vec: &mut Vec<T>, length: usize) {
    vec.clear();
    if vec.capacity() < length {
        // Free the old memory first, so that both never exist at the same time.
        *vec = Vec::new();
        vec.reserve_exact(length.saturating_add(length / 8));
    }
}

/// Copies `slice` into the vector's memory.
pub fn copy<T: Copy>(vec: &mut Vec<T>, slice: &[T]) {
    reserve(vec, slice.len());
    vec.extend_from_slice(slice);
}

/// Removes from a pool the buffer with the smallest capacity that is sufficient for `length`. If no buffer is large
/// enough, removes the largest one. Buffers with a capacity of more than `most` are ignored.
pub fn fitting<T>(idle: &mut Vec<T>, length: usize, most: usize, capacity: impl Fn(&T) -> usize) -> Option<T> {
    let sizes = idle.iter().map(capacity).enumerate().filter(|&(_, size)| size <= most);
    let found = sizes.min_by_key(|&(_, size)| if size >= length { (false, size) } else { (true, usize::MAX - size) });
    found.map(|(at, _)| idle.swap_remove(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growing_bit_by_bit_takes_little_more() {
        let mut vec = Vec::new();
        for length in (0..2000).step_by(10) {
            copy(&mut vec, &vec![7_u8; length]);
            assert!(vec.len() == length && vec.iter().all(|&byte| byte == 7));
            assert!(vec.capacity() <= length.max(1000) * 5 / 4, "{length}: {}", vec.capacity());
        }
        let before = vec.capacity();
        copy(&mut vec, &[1]);
        assert_eq!((&vec[..], vec.capacity()), (&[1][..], before));
    }

    #[test]
    fn the_smallest_that_fits_else_the_largest() {
        let mut idle = vec![30_usize, 10, 50, 20];
        let mut take = |length, most| fitting(&mut idle, length, most, |&size| size);
        assert_eq!(take(15, usize::MAX), Some(20));
        assert_eq!(take(60, usize::MAX), Some(50));
        assert_eq!(take(1, 5), None);
        assert_eq!(take(40, 20), Some(10));
        assert_eq!(take(0, usize::MAX), Some(30));
        assert_eq!(take(0, usize::MAX), None);
    }
}
