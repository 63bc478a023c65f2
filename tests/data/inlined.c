// inlined.elf:      gcc -g -O1 -nostdlib -static -Wl,--build-id=sha1 -Wl,-z,noseparate-code -fno-asynchronous-unwind-tables
// inlined-zlib.elf: gcc -g -O1 -gz=zlib -nostdlib -static -Wl,--build-id=none -Wl,-z,noseparate-code
static inline __attribute__((always_inline)) int inner(int a) { return a * 3 + 1; }
int outer(int a) { return inner(a) + inner(a + 1); }
void _start(void) { outer(7); for (;;) {} }
