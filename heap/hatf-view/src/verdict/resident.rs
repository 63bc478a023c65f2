//! The sentence about resident memory that is not in blocks.

use metatf_page::Value;

/// Minimum number of samples of resident memory. With fewer, the peak may lie between two samples.
const SAMPLES: u64 = 20;
/// Reciprocal of the share by which private memory must exceed live memory: a fifth.
const PART: u64 = 5;
/// The private pages in bytes that a program needs anyway, for its libraries' data and its stack.
const ALWAYS: u64 = 4 << 20;

/// Describes private resident memory in excess of the peak of live bytes. Returns `None` if there is little, or if the
/// kernel was asked for too few samples.
///
/// # Examples
///
/// ```
/// use hatf_view::verdict::resident;
///
/// let (private, live) = (100 << 20, 20 << 20);
/// assert_eq!(
///     resident(private, 50, live).as_deref(),
///     Some("Up to 100 MiB of private memory were resident, 80.0 MiB more than the blocks at their peak: memory that the \
///           program maps itself, stacks, and free memory that the allocator keeps.")
/// );
/// assert_eq!(resident(21 << 20, 50, live), None);
/// ```
#[must_use]
pub fn resident(private: u64, samples: u64, live: u64) -> Option<String> {
    if samples < SAMPLES {
        return None;
    }
    let more = private.saturating_sub(live);
    (more > live / PART + ALWAYS).then(|| {
        format!(
            "Up to {} of private memory were resident, {} more than the blocks at their peak: memory that the program maps \
             itself, stacks, and free memory that the allocator keeps.",
            Value::Bytes(private),
            Value::Bytes(more)
        )
    })
}
