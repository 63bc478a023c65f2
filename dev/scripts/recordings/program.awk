# Generates a C program: functions on structs, with loops, switches and floating point.
function one_of(n) { return int(rand() * n) }
BEGIN {
    srand(11)
    print "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <math.h>"
    for (f = 0; f < 40; f++) {
        printf "struct s%d { int a[%d]; double d; struct s%d *next; char name[%d]; };\n", f, 2 + one_of(6), f, 8 + one_of(60)
        printf "static int f%d(struct s%d *p, int n) {\n  int t = 0;\n  for (int i = 0; i < n; i++) {\n", f, f
        printf "    if (p->a[i & 1] > %d) t += p->a[i %% 2] * %d; else t ^= (int)(p->d * i);\n    switch (i & 7) {\n", one_of(100), one_of(50)
        for (c = 0; c < 7; c++) printf "    case %d: t %s= %s; break;\n", c, substr("+-*^|", 1 + one_of(5), 1), one_of(2) ? "i + " one_of(99) : "n - p->a[0]"
        printf "    default: p->d = sqrt(p->d + t) * %d.5; snprintf(p->name, sizeof p->name, \"%%d\", t);\n    }\n", one_of(20)
        printf "    if (p->next && t %% %d == 0) p = p->next;\n  }\n", 2 + one_of(9)
        printf "  return t + %s;\n}\n", f ? "f" f - 1 "((struct s" f - 1 " *)p, n / 2)" : "(int)strlen(p->name)"
    }
    print "int main(int n, char **v) { struct s39 *p = calloc(n, sizeof *p); return f39(p, atoi(v[n - 1])); }"
}
