/* Counts the places in C code that a run reaches, for libFuzzer. Compilers without libFuzzer's own counters support `trace-pc`. */
#include <stdint.h>

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[1 << 17];

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t place = (uintptr_t)__builtin_return_address(0);
    counters[(place ^ place >> 17) % sizeof counters]++;
}
