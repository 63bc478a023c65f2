//! A heap kept a context of about a kilobyte for every value of its `by` leaf and never evicted one, so a few bytes of
//! a hostile trace used much memory. Now the heap starts over at 4096 contexts.

use metatf::container::WriteOptions;
use metatf_tests::random::Action;
use metatf_tests::{Value, runtime};

#[test]
fn a_heap_of_too_many_contexts_begins_anew() {
    let schema = runtime::schema(
        "section m 1 { e: (x) { x.width = 8; x.interpretation = none; } }
         section s 2 {
            a: (tag, by, size, p) {
                tag.value = 4; by.width = 2; by.interpretation = none; size.interpretation = default 24;
                p.interpretation = predicted 1 heap allocated size by by 1;
            }
            f: (tag, by, p) {
                tag.value = 5; by.width = 2; by.interpretation = none;
                p.interpretation = predicted 1 heap freed by by 1;
            }
         }",
    );
    let values = |numbers: &[u64]| numbers.iter().copied().map(Value::Number).collect();
    let mut actions: Vec<Action> =
        (0..4200_u64).map(|by| Action::Record(2, 4, values(&[by, 24, 0x1000 * by + 16]))).collect();
    actions.extend((0..40_u64).map(|n| Action::Record(2, 4, values(&[n + 4190, 24, 0x10 + 32 * n]))));
    actions.extend((0..40_u64).map(|n| Action::Record(2, 5, values(&[n + 4170, 0x1000 * (n + 4150) + 16]))));
    runtime::comes_back(&schema, &actions, &WriteOptions::default());
}
