//! The values that one record stores for a leaf, and their sizes in each encoding.

use super::setting::Setting;
use metatf::format::Interpretation;
use metatf::internals::bytes_for;

/// The values that one record, or a run of equivalent records, stores for a leaf.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanStep {
    /// The number of the record in the section.
    pub(crate) row: u32,
    /// The number of occurrences, which is one except for repeated leaves and runs.
    pub(crate) items: u32,
    /// The first value and the last value.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// The first value minus the previous value.
    pub(crate) difference: u64,
    /// The width in bytes needed as `none`; as `delta`; as `delta` set right before this step; and with the DTD's base,
    /// if the base is referenced or the step has several occurrences.
    pub(crate) none: u8,
    pub(crate) delta: u8,
    pub(crate) delta_entry: u8,
    pub(crate) reference: u8,
    /// Whether all occurrences are equal.
    pub(crate) uniform: bool,
    /// Whether the step is uniform and repeats the last value before it.
    pub(crate) same: bool,
    /// Whether this is a run of several records that all repeat the value before them.
    pub(crate) run: bool,
}

impl PlanStep {
    /// Returns the step of a single value. `previous` is the leaf's previous value, and `last` is the value that `same`
    /// compares with.
    #[inline(always)]
    pub(super) fn of(value: u64, row: u32, (previous, last): (u64, u64)) -> Self {
        let difference = value.wrapping_sub(previous);
        Self {
            row,
            items: 1,
            first: value,
            last: value,
            least: value,
            most: value,
            difference,
            none: unsigned(value),
            delta: signed(difference),
            uniform: true,
            same: value == last,
            ..Self::default()
        }
    }

    /// Returns the size of the first value in metadata.
    #[inline(always)]
    pub(crate) fn value_bytes(&self) -> u32 {
        bytes_for(self.first, false).into()
    }

    /// Returns the size of the two metadata values of a stride that starts here.
    #[inline(always)]
    pub(crate) fn stride_bytes(&self, stride: u64) -> u32 {
        let initial = bytes_for(self.first.wrapping_sub(stride), false);
        2 * u32::from(initial.max(bytes_for(stride, true)))
    }

    /// Returns the width that fits every value relative to a base. Returns `None` if the minimum and maximum do not
    /// determine this width, because values between them may differ from the base by half the number range and wrap
    /// around.
    #[inline]
    pub(crate) fn offset(&self, base: u64) -> Option<u8> {
        let (low, high) = (self.least.wrapping_sub(base), self.most.wrapping_sub(base));
        (low.cast_signed() <= high.cast_signed()).then(|| signed(low).max(signed(high)))
    }
}

/// Returns the size of a sign-extended integer, which is 0 for 0.
#[inline]
pub(crate) fn signed(raw: u64) -> u8 {
    if raw == 0 { 0 } else { bytes_for(raw, true) }
}

/// Returns the size of a zero-extended integer, which is 0 for 0.
#[inline]
pub(crate) fn unsigned(raw: u64) -> u8 {
    if raw == 0 { 0 } else { bytes_for(raw, false) }
}

/// Checks whether a step is equivalent to the previous step for every encoding.
pub(super) fn still(step: &PlanStep) -> bool {
    step.same && step.difference == 0
}

/// Returns whether a step's values can be stored with a setting. `previous` is the previous value if metadata has set
/// it.
pub(crate) fn fits(step: &PlanStep, setting: &Setting, previous: Option<u64>) -> bool {
    let width = setting.width;
    let difference = previous.map_or(step.difference, |p| step.first.wrapping_sub(p));
    match setting.interpretation {
        Interpretation::None | Interpretation::SectionOffset(_) => step.none <= width,
        Interpretation::Delta(_) => {
            let first = signed(difference);
            let others = if previous.is_some() { step.delta_entry } else { step.delta };
            first.max(others) <= width
        }
        Interpretation::BaseOffset(base) => step.offset(base).unwrap_or(8) <= width,
        Interpretation::BaseOffsetOf(..) => step.reference <= width,
        Interpretation::Default(value) => step.uniform && step.first == value,
        Interpretation::Stride(_, stride) => {
            difference == stride && (step.items == 1 || (stride == 0 && step.delta_entry == 0 && step.uniform))
        }
        // Other interpretations are kept, not planned.
        _ => false,
    }
}

/// Returns half the size of the range of `width` bytes.
pub(crate) fn half(width: u8) -> u64 {
    1 << (8 * u32::from(width.clamp(1, 7)) - 1)
}

/// Returns the smallest base to which an offset of `width` signed bytes can be added to reach `most`.
pub(crate) fn base(most: u64, width: u8) -> u64 {
    most.saturating_sub(half(width) - 1)
}
