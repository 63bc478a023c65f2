// A library that allocates.
#include <stdlib.h>
#include <string.h>

void *library_make(size_t size) { return malloc(size); }
char *library_copy(const char *text) { return strdup(text); }
