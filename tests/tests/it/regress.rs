//! One file per fixed defect, with a description.

mod array_before_a_number;
mod carried_and_given;
mod contexts_without_end;
mod counts_of_a_dropped_field;
mod elements_that_find_no_room;
mod float_digits;
mod groups_of_nothing;
mod models_and_their_elements;
mod offset_into_nothing;
mod reset_of_nothing;
mod salvage_gives_what_dump_gives;
mod shared_table_of_numbers;
mod shared_value_in_items;
mod stride_into_version_0;
mod table_after_the_last_group;
mod table_of_a_later_group;
mod table_of_many_bytes;
mod tables_of_many_models;
mod tag_of_all_ones;
mod tags_of_a_catch_all_record;
mod two_errors_in_a_row;
mod values_around_a_base;
mod version_0_given_up;
mod version_0_has_no_resets;
mod wide_at_the_start;
mod width_of_no_leaf;
