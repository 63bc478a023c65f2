//! One file for each defect that was found, described in prose.

#[path = "regress/array_before_a_number.rs"]
mod array_before_a_number;
#[path = "regress/carried_and_given.rs"]
mod carried_and_given;
#[path = "regress/contexts_without_end.rs"]
mod contexts_without_end;
#[path = "regress/elements_that_find_no_room.rs"]
mod elements_that_find_no_room;
#[path = "regress/float_digits.rs"]
mod float_digits;
#[path = "regress/groups_of_nothing.rs"]
mod groups_of_nothing;
#[path = "regress/models_and_their_elements.rs"]
mod models_and_their_elements;
#[path = "regress/offset_into_nothing.rs"]
mod offset_into_nothing;
#[path = "regress/reset_of_nothing.rs"]
mod reset_of_nothing;
#[path = "regress/salvage_gives_what_dump_gives.rs"]
mod salvage_gives_what_dump_gives;
#[path = "regress/shared_table_of_numbers.rs"]
mod shared_table_of_numbers;
#[path = "regress/shared_value_in_items.rs"]
mod shared_value_in_items;
#[path = "regress/stride_into_version_0.rs"]
mod stride_into_version_0;
#[path = "regress/table_after_the_last_group.rs"]
mod table_after_the_last_group;
#[path = "regress/table_of_a_later_group.rs"]
mod table_of_a_later_group;
#[path = "regress/table_of_many_bytes.rs"]
mod table_of_many_bytes;
#[path = "regress/tables_of_many_models.rs"]
mod tables_of_many_models;
#[path = "regress/tag_of_all_ones.rs"]
mod tag_of_all_ones;
#[path = "regress/two_errors_in_a_row.rs"]
mod two_errors_in_a_row;
#[path = "regress/values_around_a_base.rs"]
mod values_around_a_base;
#[path = "regress/version_0_given_up.rs"]
mod version_0_given_up;
#[path = "regress/version_0_has_no_resets.rs"]
mod version_0_has_no_resets;
#[path = "regress/wide_at_the_start.rs"]
mod wide_at_the_start;
#[path = "regress/width_of_no_leaf.rs"]
mod width_of_no_leaf;
