//! What one record stores of a leaf, and the bytes that this needs in each encoding.

use super::setting::Setting;
use metatf::format::Interpretation;
use metatf::internals::bytes_for;

/// What one record stores of a leaf, or a run of records that say the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlanStep {
    /// The record, by its number in the section.
    pub(crate) row: u32,
    /// Occurrences: one, except for repeated leaves and runs.
    pub(crate) items: u32,
    /// First value and last value.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) least: u64,
    pub(crate) most: u64,
    /// First value less the previous one.
    pub(crate) difference: u64,
    /// Bytes needed as `none`; as `delta`; as `delta` set right here; with the DTD's base, where it is referenced or the step
    /// has several occurrences.
    pub(crate) none: u8,
    pub(crate) delta: u8,
    pub(crate) delta_entry: u8,
    pub(crate) reference: u8,
    /// All occurrences are equal.
    pub(crate) uniform: bool,
    /// Uniform, and equal to the last value before.
    pub(crate) same: bool,
    /// More than one record, all with the value before them; nothing changes inside.
    pub(crate) run: bool,
}

impl PlanStep {
    /// Of one value; `previous` is the leaf's previous value, `last` the one that `same` compares with.
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

    /// Bytes of the first value in metadata.
    #[inline(always)]
    pub(crate) fn value_bytes(&self) -> u32 {
        bytes_for(self.first, false).into()
    }

    /// Bytes of the two values of a stride that begins here, in metadata.
    #[inline(always)]
    pub(crate) fn stride_bytes(&self, stride: u64) -> u32 {
        let initial = bytes_for(self.first.wrapping_sub(stride), false);
        2 * u32::from(initial.max(bytes_for(stride, true)))
    }

    /// Bytes that every value needs from a base. `None` where the least and the greatest value do not tell: values between
    /// them may lie on the far side, half of all numbers away.
    #[inline]
    pub(crate) fn offset(&self, base: u64) -> Option<u8> {
        let (low, high) = (self.least.wrapping_sub(base), self.most.wrapping_sub(base));
        (low.cast_signed() <= high.cast_signed()).then(|| signed(low).max(signed(high)))
    }
}

/// Bytes of a sign-extended integer; 0 for 0.
#[inline]
pub(crate) fn signed(raw: u64) -> u8 {
    if raw == 0 { 0 } else { bytes_for(raw, true) }
}

/// Bytes of a zero-extended integer; 0 for 0.
#[inline]
pub(crate) fn unsigned(raw: u64) -> u8 {
    if raw == 0 { 0 } else { bytes_for(raw, false) }
}

/// The same for every encoding as the step before it, which is alike.
pub(super) fn still(step: &PlanStep) -> bool {
    step.same && step.difference == 0
}

/// Whether a step's values can be stored under a setting; `previous`: what metadata made the previous value.
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

/// Half of what `width` bytes can tell apart.
pub(crate) fn half(width: u8) -> u64 {
    1 << (8 * u32::from(width.clamp(1, 7)) - 1)
}

/// The smallest base from which `width` signed bytes reach up to `most`.
pub(crate) fn base(most: u64, width: u8) -> u64 {
    most.saturating_sub(half(width) - 1)
}
