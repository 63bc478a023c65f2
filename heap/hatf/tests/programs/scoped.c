/* The example in Figure 1 of the paper on scoped memory, as in heap/hatf-research/src/scoped/example.rs. */
#define SCOPED_IMPLEMENTATION
#include "scoped.h"

static uint8_t buffer[64 << 10];
static scoped_file file;
static scoped_emitter emitter;

static uint32_t name(const char *text) { return scoped_intern(&file.trace, text); }
static void enter(const char *method) { SCOPED_EMIT_ENTER(&emitter, name(method)); }
static void leave(void) { SCOPED_EMIT_EXIT(&emitter); }
static void object(const char *site, const char *of) { SCOPED_EMIT_NEW_INSTANCE(&emitter, name(site), name(of), 16); }
static void array(const char *site, const char *of, uint64_t elements)
{
    SCOPED_EMIT_NEW_A_INSTANCE(&emitter, name(site), name(of), elements, 16 + 8 * elements);
}
static void captures(const char *call_site, const char *const *sites)
{
    SCOPED_EMIT_REGISTER(&emitter, name(call_site));
    for (; *sites; sites++) {
        SCOPED_EMIT_CAPTURE(&emitter, name(*sites));
    }
}

static void m2(uint64_t n)
{
    uint64_t j;
    enter("m2");
    array("m2_3", "Object[]", n);
    for (j = 1; j <= n; j++) {
        if (j % 3 == 0) {
            array("m2_6", "Integer[]", j * 2 + 1);
        } else {
            object("m2_7", "Integer");
            array("m2_8", "Integer[]", 4);
        }
    }
    leave();
}

static void m1(uint64_t k)
{
    static const char *const captured[] = {"m2_8", 0};
    uint64_t i;
    enter("m1");
    object("m1_2", "Ref0");
    array("m1_3", "Object[]", k);
    for (i = 1; i <= k; i++) {
        captures("m1_5", captured);
        m2(i);
    }
    array("m1_6", "Integer[]", 9);
    leave();
}

int main(void)
{
    static const char *const of_m1[] = {"m1_3", "m2_3", "m2_6", "m2_7", 0};
    static const char *const of_m2[] = {"m2_3", "m2_6", "m2_7", "m2_8", 0};
    int failed;
    if (scoped_open(&file, NULL) != 0) {
        return 1;
    }
    scoped_emitter_begin(&emitter, &file.trace, buffer, sizeof buffer);
    enter("m0");
    object("m0_1", "Ref0");
    captures("m0_2", of_m1);
    m1(10);
    captures("m0_3", of_m2);
    m2(20);
    leave();
    failed = scoped_emitter_end(&emitter);
    failed |= scoped_close(&file);
    return failed == 0 ? 0 : 1;
}
