/* A library with many variables, for pointers.c. */
static void *variables[100000] = {variables};

void *hides(void *block) {
    variables[50000] = block;
    return variables + 50000;
}
