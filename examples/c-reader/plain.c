/* Reads Meta-TF traces of level "plain" and prints their records as JSON lines. Written only from docs/specification.md, whose
   section numbers appear in parentheses. MIT OR Apache-2.0.

   cc -std=c11 -O2 -o plain plain.c && ./plain [--all] TRACE [DTD] */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t u64;
typedef unsigned char u8;

/* ---- Errors, memory, text ---- */

typedef struct { u8 *at; size_t len, room; } Text;
static Text out; /* complete lines */
static const char *file;
static jmp_buf *inside; /* set while an array is read tentatively */

static void flush(void) {
    if (out.len) fwrite(out.at, 1, out.len, stdout);
    out.len = 0, fflush(stdout);
}
static _Noreturn void fail(u64 at, const char *what, ...) {
    if (inside) longjmp(*inside, 1);
    flush();
    va_list rest;
    va_start(rest, what);
    fprintf(stderr, "%s: offset %llu: ", file, (unsigned long long)at), vfprintf(stderr, what, rest), fputc('\n', stderr);
    exit(1);
}
static void *zeros(size_t n, size_t size) {
    void *p = calloc(n ? n : 1, size);
    if (!p) fputs("no memory\n", stderr), exit(1);
    return p;
}
static void *get(size_t n, size_t size) { /* for the meaning of a DTD, which is never freed */
    static u64 taken;
    if ((taken += n * size + 16) > 256 << 20) fputs("a DTD that takes over 256 MiB\n", stderr), exit(1);
    return zeros(n, size);
}
static void put(Text *t, const void *bytes, size_t n) {
    if (t->room - t->len < n) {
        t->room = 2 * t->room + n + 64;
        if (!(t->at = realloc(t->at, t->room))) fputs("no memory\n", stderr), exit(1);
    }
    if (n) memcpy(t->at + t->len, bytes, n), t->len += n;
}
static void say(Text *t, const char *text) { put(t, text, strlen(text)); }
static char *join(const char *a, const char *b, const char *c) {
    char *s = get(strlen(a) + strlen(b) + strlen(c) + 1, 1);
    return strcat(strcat(strcpy(s, a), b), c);
}

/* ---- The language (2): tokens and tree ---- */

typedef struct { char op; u64 number; char *path; int leaf; } Op; /* n number, v value, w width, b bit, + - * / %, = ! < > l g: == != < > <= >= */
typedef struct { int n; Op *op; } Expr;
enum { NONE = 1, BASE, DELTA, DEFAULT, OFFSET, STRIDE, SECTION_STRIDE, BASE_OF, STORES = 1 << NONE | 1 << BASE | 1 << DELTA | 1 << OFFSET | 1 << BASE_OF };
typedef struct Prop { char *path, *name, *text, kind; int interp; u64 a, b; Expr expr; struct Prop *next; int mark, leaf; } Prop;
typedef struct Field { char kind, *name; bool computed; Expr count; struct Field *body, *next; } Field; /* n name, r repeated, g group */
typedef struct Item { char kind, *key; int leaf; bool alone, optional; struct Item *body, *next; } Item;    /* l leaf, o object, r repeated */
typedef struct Rec { char *name; Field *fields; Prop *props; struct Scope *scope; bool predefined, tagged, other, nested; u64 tag; int first, n; Item *items; struct Rec *next; } Rec;
typedef struct { u64 last, previous, a, b; int cell, interp; u8 width, remembered; } State;
typedef struct Scope { char *name; int number; Rec *recs, *stream; Prop *props; State *state; bool single, strides, seen, shared, local; u64 *elements, n, room, length, cursors[256]; Text shown; struct Scope *next; } Scope;
typedef struct { char *name, *path; bool numeric, tag, constant, computed, shared; u64 value, interp_a, interp_b, width; int interp, base, section, until; char *base_path; Expr length; const char *format; Prop *from; Rec *top; } Leaf;

static const char *src, *p, *end; /* the DTD's text */
static Scope *scopes; /* the first is the global scope */
static Leaf *leaves;
static int n_leaves, tag_width = 1, depth;
static u64 section_tag = 2, metadata_tag = 3;

static _Noreturn void wrong(const char *what) {
    int line = 1, column = 1;
    for (const char *q = src; q < p && q < end; q++) column = *q == '\n' ? line++, 1 : column + ((*q & 0xC0) != 0x80);
    fprintf(stderr, "format.dtd:%d:%d: %s\n", line, column, what), exit(1);
}
static bool word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }
static void space(void) {
    for (;;) {
        while (p < end && (*p == ' ' || (*p >= '\t' && *p <= '\r'))) p++;
        if (end - p < 2 || *p != '/' || (p[1] != '/' && p[1] != '*')) return;
        const char *close = p[1] == '/' ? "\n" : "*/", *q = p + 2;
        size_t n = strlen(close);
        while (q < end && ((size_t)(end - q) < n || memcmp(q, close, n))) q++;
        if (q == end && n == 2) wrong("a comment that does not end");
        p = q == end ? q : q + n;
    }
}
static bool take(char c) { return space(), p < end && *p == c ? p++, true : false; }
static void need(char c) { if (!take(c)) wrong("another mark is expected here"); }
static bool at_name(void) { return space(), p < end && word_char(*p) && !(*p >= '0' && *p <= '9'); }
static char *name(void) {
    if (!at_name()) wrong("a name is expected here");
    const char *start = p;
    while (p < end && word_char(*p)) p++;
    char *s = get((size_t)(p - start) + 1, 1);
    return memcpy(s, start, (size_t)(p - start));
}
static u64 integer(void) { /* two's complement */
    if (take('\'')) { /* characters */
        const char *start = p;
        u64 n = 0;
        for (; p < end && p - start < 8 && *p >= ' ' && *p <= '~' && *p != '\'' && *p != '\\'; p++) n = n << 8 | (u8)*p;
        if (p == start || p == end || *p != '\'') wrong("1 to 8 characters and a ' are expected here");
        return p++, n;
    }
    bool minus = take('-'), hex;
    space();
    if (p == end || *p < '0' || *p > '9') wrong("a number is expected here");
    if ((hex = end - p > 1 && *p == '0' && p[1] == 'x')) p += 2;
    u64 n = 0, base = hex ? 16 : 10;
    for (; p < end && word_char(*p); p++) {
        if (*p == '_') continue;
        u64 digit = *p <= '9' ? (u64)(*p - '0') : (u64)((*p | 32) - 'a') + 10;
        if (digit >= base || n > (UINT64_MAX - digit) / base) wrong("a number that is none, or over 64 bits");
        n = n * base + digit;
    }
    return minus ? 0 - n : n;
}
static char *path(void) { /* names separated by dots */
    char *s = name();
    while (take('.')) s = join(s, ".", name());
    return s;
}
static void op(Expr *e, char kind, u64 number, char *of) {
    if (!(e->op = realloc(e->op, (size_t)(e->n + 1) * sizeof *e->op))) wrong("no memory");
    e->op[e->n++] = (Op){kind, number, of, 0};
}
static void expr(Expr *e);
static void atom(Expr *e) {
    if (take('(')) {
        if (++depth > 32) wrong("nesting over 32 deep");
        expr(e), need(')'), depth--;
    } else if (at_name()) {
        char *s = path(), *last = strrchr(s, '.');
        if (!last) wrong("a field needs .value, .width or .bit");
        *last++ = 0;
        op(e, !strcmp(last, "width") ? 'w' : 'v', 0, s);
        if (!strcmp(last, "bit")) {
            u64 bit = integer();
            if (bit > 63) wrong("a bit over 63");
            op(e, 'b', bit, NULL);
        } else if (strcmp(last, "width") && strcmp(last, "value")) wrong("a field needs .value, .width or .bit");
    } else op(e, 'n', integer(), NULL);
}
static void mul(Expr *e) {
    atom(e);
    for (char c; space(), p < end && (*p == '*' || *p == '/' || *p == '%'); op(e, c, 0, NULL)) c = *p++, atom(e);
}
static void sum(Expr *e) {
    mul(e);
    for (char c; space(), p < end && (*p == '+' || *p == '-'); op(e, c, 0, NULL)) c = *p++, mul(e);
}
static void expr(Expr *e) {
    sum(e), space();
    if (p == end || !memchr("=!<>", *p, 4)) return;
    char c = *p++;
    bool equal = p < end && *p == '=';
    if (!equal && (c == '=' || c == '!')) wrong("a second = is expected here");
    if (equal) p++, c = c == '<' ? 'l' : c == '>' ? 'g' : c;
    sum(e), op(e, c, 0, NULL);
}
static void property(Prop ***to, char *first) {
    static const char *words[] = {"", "none", "baseOffset", "delta", "default", "sectionOffset", "stride", "sectionStride"};
    Prop *q = get(1, sizeof *q);
    **to = q, *to = &q->next;
    q->path = first;
    for (need('.');; need('.')) {
        if (take('"')) {
            const char *start = p;
            while (p < end && *p != '"' && *p != '\n') p += *p == '\\' && end - p > 1 ? 2 : 1;
            q->name = join("\"", memcpy(get((size_t)(p - start) + 1, 1), start, (size_t)(p - start)), "");
            need('"');
            break;
        }
        char *s = name();
        space();
        if (p < end && *p != '.') { q->name = s; break; }
        q->path = join(q->path, ".", s);
    }
    need('='), space();
    const char *start = p;
    if (take('"')) { /* escapes do not affect the output of this program */
        while (p < end && *p != '"' && *p != '\n') p += *p == '\\' && end - p > 1 ? 2 : 1;
        if (p >= end || *p != '"') wrong("a string that does not end");
        q->kind = 's', q->text = memcpy(get((size_t)(p - start), 1), start + 1, (size_t)(p - start) - 1), p++;
    } else if (at_name()) {
        char *s = name();
        if (!strcmp(s, "predicted")) wrong("`predicted` needs a reader of level predicted");
        for (int i = 1; i < 8; i++) if (!strcmp(s, words[i])) q->interp = i;
        space(), q->kind = q->interp ? 'i' : p < end && *p == '.' ? 'e' : 'w', q->text = s;
        if (q->kind == 'e') p = start, expr(&q->expr);
        if (q->kind == 'w' && !strcmp(q->name, "width") && (!strcmp(s, "bytes") || !strcmp(s, "until"))) {
            u64 n = integer();
            q->kind = *s, op(&q->expr, 'n', n, NULL);
            if (*s == 'b' ? !n || n > UINT32_MAX : n > 255) wrong("1 to 2^32-1 bytes, or a byte of 0 to 255");
        }
        if (q->interp == BASE && at_name()) {
            char *s2 = path(), *last = strrchr(s2, '.');
            if (!last || strcmp(last, ".value")) wrong("a base is a number or the .value of a field");
            *last = 0, q->interp = BASE_OF, q->text = s2;
        } else if (q->interp > NONE) q->a = integer();
        if (q->interp == STRIDE || q->interp == SECTION_STRIDE) q->b = integer();
    } else q->kind = 'e', expr(&q->expr);
    need(';');
}
static Field *field(void) {
    Field *f = get(1, sizeof *f);
    if (++depth > 32) wrong("nesting over 32 deep");
    const char *start = p;
    if (take('(')) { /* a count begins with a number, or with a path */
        while (take('(')) continue;
        space();
        bool count = p < end && ((*p >= '0' && *p <= '9') || *p == '\'');
        if (at_name()) free(name()), count = take('.');
        p = start, need('('), f->kind = count ? 'r' : 'g';
        if (count) f->computed = true, f->name = "items", expr(&f->count), need(')'), need('*');
        else for (Field **to = &f->body; !take(')'); to = &(*to)->next) if (*to = field(), !take(',')) { need(')'); break; }
        if (f->kind == 'g' && !f->body) wrong("a group without fields");
    } else f->name = name(), f->kind = take('*') ? 'r' : 'n';
    if (f->kind == 'r') {
        f->body = field();
        if (f->body->kind == 'r') wrong("a repetition repeats a name or a group");
    }
    return depth--, f;
}
static void definitions(Scope *s, bool top) {
    Prop **to = &s->props;
    Rec **rec = &s->recs;
    while (*to) to = &(*to)->next;
    while (*rec) rec = &(*rec)->next;
    while (space(), p < end && *p != '}') {
        char *first = name();
        if (top && !strcmp(first, "section") && at_name()) {
            Scope **last = &scopes, *new = get(1, sizeof *new);
            while (*last) last = &(*last)->next;
            *last = new, new->name = name();
            u64 number = integer();
            if (number < 1 || number > 255) wrong("section numbers are 1 to 255");
            for (Scope *o = scopes; o; o = o->next) if (o != new && (u64)o->number == number) wrong("a section number that is taken");
            new->number = (int)number, need('{'), definitions(new, false), need('}');
        } else if (take(':')) {
            Rec *r = *rec = get(1, sizeof *r);
            rec = &r->next, r->name = first, r->scope = s, r->fields = field();
            Prop **block = &r->props;
            if (take('{')) while (!take('}')) property(&block, name());
            take(';');
        } else property(&to, first);
    }
    if (top && p < end) wrong("a brace that closes nothing");
}

/* ---- Semantics (3): leaves and layouts ---- */

typedef struct Frame { Rec *rec; struct Frame *up; char *prefix, *name; } Frame; /* a record, and the record that contains it */
typedef struct Names { char *name; struct Names *next; } Names;

static Prop *named(Prop *q, const char *of, const char *property) {
    while (q && (strcmp(q->name, property) || strcmp(q->path, of))) q = q->next;
    return q;
}
/* 3.1. Sets `at` to the frame of the block; NULL for a section or the global scope. */
static Prop *find(Frame *f, char *leaf, const char *property, Frame **at) {
    Prop *found = NULL, *q;
    char *of = leaf;
    *at = NULL;
    for (Frame *g = f; g; g = g->up) {
        if ((q = named(g->rec->props, of, property))) found = q, *at = g;
        if (g->up) of = join(g->name, ".", of);
    }
    if (found || f->rec->predefined) return found;
    while (f->up) f = f->up;
    found = named(f->rec->scope->props, leaf, property);
    return found || f->rec->scope == scopes ? found : named(scopes->props, leaf, property);
}
static int earlier(Rec *top, const char *prefix, const char *path) { /* the last leaf of a path */
    char *full = join(prefix, path, "");
    int i = n_leaves - 1;
    while (i >= top->first && strcmp(leaves[i].path, full)) i--;
    return free(full), i >= top->first ? i : -1;
}
/* Applies an operator to the top of a stack; returns false if the result is out of range (3.2). */
static bool apply(char c, u64 *a, u64 b) {
    u64 x = *a;
    if (c == 'b') return *a = x >> b & 1, true;
    if (c == '+') return *a = x + b, x + b >= x;
    if (c == '-') return *a = x - b, x >= b;
    if (c == '*') return *a = x * b, !x || x * b / x == b;
    if (c == '=' || c == '!') return *a = (x == b) == (c == '='), true;
    if (c == '<' || c == 'g') return *a = (x < b) == (c == '<'), true;
    if (c == '>' || c == 'l') return *a = (x > b) == (c == '>'), true;
    return b ? *a = c == '/' ? x / b : x % b, true : false;
}
static bool compute(const Expr *e, State *state, u64 *result) {
    u64 stack[128]; /* at most 3 pending operands in each of 33 levels of parentheses */
    int n = 0;
    for (int i = 0; i < e->n; i++) {
        const Op *o = &e->op[i];
        if (o->op == 'n') stack[n++] = o->number;
        else if (o->op == 'v') stack[n++] = state ? state[o->leaf].last : 0;
        else if (o->op == 'b') apply('b', &stack[n - 1], o->number);
        else if (n--, !apply(o->op, &stack[n - 1], stack[n])) return false;
    }
    return *result = stack[0], true;
}
static u64 fixed(const Prop *q) {
    u64 n;
    for (int i = 0; i < q->expr.n; i++) if (q->expr.op[i].path) wrong("a number without fields is expected here");
    if (!compute(&q->expr, NULL, &n)) wrong("a number out of range");
    return n;
}
static u64 most(const Expr *e) { /* 3.3: upper bound of a count */
    u64 stack[128];
    int n = 0;
    for (int i = 0; i < e->n; i++) {
        char c = e->op[i].op;
        if (c == 'n' || c == 'v') stack[n++] = c == 'n' ? e->op[i].number : UINT64_MAX;
        else if (c == 'b') stack[n - 1] = 1;
        else {
            u64 b = stack[--n], *a = &stack[n - 1], x = *a;
            if ((c == '+' || c == '*') && !apply(c, a, b)) *a = UINT64_MAX;
            if (c == '%') *a = b && b - 1 < x ? b - 1 : x;
            if (strchr("=!<>lg", c)) *a = 1;
        }
    }
    return stack[0];
}
/* Paths start at the block's record, or at the leaf's record and the records that contain it. True for a number. */
static bool resolve(Expr *e, Rec *top, Frame *f, bool outwards) {
    Op *copy = get((size_t)e->n, sizeof *copy);
    bool constant = true;
    e->op = memcpy(copy, e->op, (size_t)e->n * sizeof *copy);
    for (Op *o = copy; o < copy + e->n; o++) {
        if (!o->path) continue;
        int i = -1;
        for (Frame *g = f; i < 0 && g; g = outwards ? g->up : NULL) i = earlier(top, g->prefix, o->path);
        if (i < 0 || (o->op == 'w' ? leaves[i].width == UINT64_MAX : !leaves[i].numeric)) wrong("an expression needs an earlier number");
        if (o->op == 'w') o->op = 'n', o->number = leaves[i].width;
        else o->leaf = i, constant = false;
    }
    return constant;
}
static int add_leaf(Frame *f, char *name, Expr *computed) {
    Rec *top = f->rec;
    for (Frame *g = f; g; g = g->up) top = g->rec;
    if (n_leaves - top->first >= 255) wrong("over 255 leaves in a record");
    if (n_leaves >= 1 << 16) wrong("over 65,536 leaves are too many for this reader");
    if (!(n_leaves & (n_leaves - 1)) && !(leaves = realloc(leaves, (size_t)(n_leaves ? 2 * n_leaves : 1) * sizeof *leaves))) wrong("no memory");
    Leaf l = {.name = name, .path = join(f->prefix, name, ""), .numeric = true, .top = top, .format = "", .interp = DEFAULT, .base = -1, .until = -1};
    Frame *at;
    Prop *q;
    if (computed) {
        l.computed = true, l.length = *computed, resolve(&l.length, top, f, true), l.path = "";
    } else if (!f->up && !strcmp(name, "tag") && top->tagged) {
        l.width = (u64)tag_width, l.interp = NONE, l.tag = !top->other;
    } else {
        if (!(q = find(f, name, "interpretation", &at)) || q->kind != 'i') wrong("a field without an interpretation");
        l.interp = q->interp, l.interp_a = q->a, l.interp_b = q->b, l.base_path = q->text;
        if (!at && (l.interp == DELTA || l.interp == STRIDE)) l.from = q;
        Prop *previous, *width = find(f, name, "width", &at);
        if (width && width->kind == 'u') {
            l.numeric = false, l.width = UINT64_MAX, l.until = (int)fixed(width);
        } else if (width && (width->kind == 'e' || width->kind == 'b')) {
            u64 n = 0;
            l.length = width->expr;
            bool constant = resolve(&l.length, top, at ? at : f, !at);
            if (constant && (!compute(&l.length, NULL, &n) || n > UINT32_MAX)) wrong("a width over 2^32-1");
            l.numeric = constant && n <= 8 && width->kind == 'e', l.width = constant ? n : UINT64_MAX;
        } else if (1 << l.interp & STORES) wrong("a field without a width");
        if (!l.numeric) l.from = NULL;
        if ((previous = find(f, name, "previous", &at)) && previous->kind == 'w') l.shared = !strcmp(previous->text, "shared"), l.from = l.shared ? l.from : NULL;
        if ((q = find(f, name, "value", &at)) && q->kind == 'e') {
            Expr e = q->expr;
            if (!resolve(&e, top, f, true) || !compute(&e, NULL, &l.value)) wrong("a constant is a number");
            l.constant = true;
        }
        if ((q = find(f, name, "section", &at)) && q->kind == 'e' && !l.numeric) l.section = fixed(q) < 256 ? (int)fixed(q) : 0;
    }
    if ((q = find(f, name, "format", &at)) && q->kind == 's') l.format = q->text;
    return leaves[n_leaves] = l, n_leaves++;
}
static char *unique(Names **names, char *name) { /* address, address_2 */
    char number[24] = "";
    int n = 1;
    for (Names *o = *names; o; o = o->next) n += !strcmp(o->name, name);
    Names *new = get(1, sizeof *new);
    *new = (Names){name, *names}, *names = new;
    if (n > 1) snprintf(number, sizeof number, "_%d", n);
    return join(name, number, "");
}
static Rec *untagged(Scope *s, const char *name) {
    for (Scope *at = s;; at = scopes) {
        for (Rec *r = at->recs; r; r = r->next) if (!strcmp(r->name, name) && !r->tagged) return r;
        if (at == scopes) return NULL;
    }
}
static Item *layout(Frame *f, Field *field, Names **names) {
    Item *first = NULL, **to = &first;
    Rec *top = f->rec;
    for (Frame *g = f; g; g = g->up) top = g->rec;
    for (; field; field = field->next) {
        Item *item = get(1, sizeof *item);
        Rec *r = field->kind == 'n' ? untagged(top->scope, field->name) : NULL;
        if (field->kind == 'g') {
            if (++depth > 64) wrong("nesting over 32 deep");
            *item = (Item){0}, *to = layout(f, field->body, names), depth--;
        } else if (r) {
            if (++depth > 64) wrong("a record that nests itself, or nesting over 32 deep");
            Frame g = {r, f, join(join(f->prefix, field->name, "."), "", ""), field->name};
            Names *own = NULL;
            item->kind = 'o', item->alone = r->predefined && !strcmp(r->name, "vfield");
            item->key = unique(names, top->predefined ? "text" : field->name), item->body = layout(&g, r->fields, &own), *to = item, depth--;
        } else if (field->kind == 'n') {
            item->kind = 'l', item->key = unique(names, field->name), item->leaf = add_leaf(f, field->name, NULL), *to = item;
        } else {
            int count = field->computed ? -1 : earlier(top, f->prefix, field->name);
            char *of = field->name;
            if (count < 0) {
                Item *leaf = get(1, sizeof *leaf);
                *leaf = (Item){.kind = 'l', .key = field->computed ? NULL : unique(names, of)};
                count = leaf->leaf = add_leaf(f, of, field->computed ? &field->count : NULL), *to = leaf, to = &leaf->next;
            }
            if (!leaves[count].numeric) wrong("a count that is a byte array");
            Names *own = NULL;
            char *body = field->body->kind == 'n' ? field->body->name : "items";
            bool leaf = field->body->kind == 'n' && !untagged(top->scope, body);
            item->kind = 'r', item->leaf = count, item->key = field->computed || leaf ? unique(names, body) : join(of, "_items", "");
            item->optional = field->computed && most(&leaves[count].length) <= 1;
            Field only = *field->body;
            only.next = NULL;
            item->body = layout(f, &only, &own), *to = item;
            item->alone = leaf || (item->body && item->body->kind == 'o' && !item->body->next && field->body->kind == 'n');
        }
        while (*to) to = &(*to)->next;
    }
    return first;
}
static bool nests(Field *f, const char *name) {
    for (; f; f = f->next) if ((f->kind == 'n' && !strcmp(f->name, name)) || nests(f->body, name)) return true;
    return false;
}
static Scope *section(u64 number) {
    Scope *s = scopes;
    while (s && (u64)s->number != number) s = s->next;
    return s;
}
static bool lists_tag(Field *f) { return f && (f->kind == 'g' ? lists_tag(f->body) : f->kind == 'n' && !strcmp(f->name, "tag")); }
static void flatten(Rec *r) {
    Frame f = {r, NULL, "", ""};
    Names *names = NULL;
    Field *tag = get(1, sizeof *tag);
    *tag = (Field){.kind = 'n', .name = "tag", .next = r->fields};
    r->first = n_leaves, r->items = layout(&f, r->tagged && !lists_tag(r->fields) ? tag : r->fields, &names), r->n = n_leaves - r->first;
}
static void parse(const char *text, size_t len) {
    static const char predefined[] = "vfield: (length, data) { length.width = 1; length.interpretation = none; data.width = length.value; data.interpretation = none; }"
                                     "comment: vfield { tag.value = 1; vfield.data.format = \"utf8\"; }";
    scopes = get(1, sizeof *scopes);
    src = p = predefined, end = p + sizeof predefined - 1, definitions(scopes, true);
    for (Rec *r = scopes->recs; r; r = r->next) r->predefined = true;
    src = p = text, end = p + len, p += len > 2 && !memcmp(p, "\xEF\xBB\xBF", 3) ? 3 : 0;
    definitions(scopes, true);
    Prop *q;
    if ((q = named(scopes->props, "tag", "width")) && q->kind == 'e') tag_width = (int)fixed(q);
    if (tag_width != 1 && tag_width != 2 && tag_width != 4) wrong("a tag has 1, 2 or 4 bytes");
    if ((q = named(scopes->props, "section.tag", "value")) && q->kind == 'e') section_tag = fixed(q);
    if ((q = named(scopes->props, "metadata.tag", "value")) && q->kind == 'e') metadata_tag = fixed(q);
    for (Scope *s = scopes; s; s = s->next)
        for (Rec *r = s->recs; r; r = r->next) {
            if (!(q = named(r->props, "tag", "value"))) continue;
            r->tagged = true, r->other = q->kind == 'w', r->tag = q->kind == 'e' ? fixed(q) : 0;
            if (!strcmp(r->name, "comment") && r->predefined && (q = named(scopes->props, "comment.tag", "value")) && q->kind == 'e') r->tag = fixed(q);
        }
    for (Scope *s = scopes; s; s = s->next) {
        bool tagged = s == scopes;
        int candidates = 0;
        for (Rec *r = s->recs, *o; r; r = r->next) {
            for (o = s->recs, r->nested = false; o; o = o->next) r->nested |= o != r && nests(o->fields, r->name);
            tagged |= r->tagged, candidates += !r->nested;
        }
        for (Rec *r = s->recs; r; r = r->next) {
            bool element = !tagged && candidates == 1 && !r->nested;
            if (element) s->stream = r;
            if (element || r->tagged) flatten(r);
        }
        Item *only = s->stream ? s->stream->items : NULL;
        s->single = only && only->kind == 'l' && !only->next && leaves[only->leaf].numeric;
    }
    for (int i = 0; i < n_leaves; i++) {
        Leaf *l = &leaves[i];
        Scope *target = l->interp == OFFSET || l->interp == SECTION_STRIDE ? section(l->interp_a) : NULL;
        if (l->interp == SECTION_STRIDE) l->top->scope->strides = true;
        if ((l->interp == OFFSET || l->interp == SECTION_STRIDE) && !(target && target->stream && (target->single || l->interp == OFFSET)))
            p = end, wrong("a section that is no stream section");
        if (l->interp != BASE_OF) continue;
        char *dot = strchr(l->base_path, '.'), *of = join(l->base_path, "", "");
        if (dot) of[dot - l->base_path] = 0;
        for (int j = n_leaves - 1; j >= 0; j--) {
            Rec *r = leaves[j].top;
            if (dot && !strcmp(r->name, of) && (r->scope == scopes || r->scope == l->top->scope) && (!strcmp(leaves[j].path, dot + 1) || !strcmp(leaves[j].name, dot + 1))) l->base = j;
        }
        if (l->base < 0) p = end, wrong("a base that is no field");
    }
}

/* ---- State and values (4) ---- */

static int byteorder, int_size, version;
static bool all;
static u64 used_state;
typedef struct { const u8 *at; size_t len, start; u64 origin, counted, items; Scope *in; State *state; int deep; } Content; /* file offsets for errors, and of nrecords */

static State *fresh(Scope *s) { /* the DTD's initial state */
    static int mark;
    State *state = zeros((size_t)n_leaves, sizeof *state);
    mark++;
    for (Scope *of = scopes; of; of = of == scopes && s != scopes ? s : NULL)
        for (Rec *r = of->recs; r; r = r->next)
            for (int i = r->first; i < r->first + r->n; i++) {
                Leaf *l = &leaves[i];
                State *x = &state[i];
                *x = (State){.a = l->interp_a, .b = l->interp_b, .cell = i, .interp = l->interp, .width = (u8)l->width, .remembered = (u8)l->width};
                if (l->from && l->from->mark == mark) x->cell = state[l->from->leaf].cell;
                else if (l->from) l->from->mark = mark, l->from->leaf = i;
                if (l->shared) /* with the other leaves of its name, and the leaves they share with */
                    for (Scope *o = scopes; o; o = o == scopes && s != scopes ? s : NULL)
                        for (Rec *q = o->recs; q; q = q->next)
                            for (int j = q->first; j < q->first + q->n && j < i; j++)
                                if (leaves[j].shared && !strcmp(leaves[j].name, l->name) && state[j].cell != x->cell) {
                                    int from = x->cell, cell = state[j].cell;
                                    for (int k = 0; k <= i; k++) if (state[k].cell == from && (k == i || state[k].interp)) state[k].cell = cell;
                                }
            }
    for (int i = 0; i < n_leaves; i++) if (state[i].interp == DELTA || state[i].interp == STRIDE) state[state[i].cell].previous = state[i].a;
    return state;
}
static void reset(Scope *s) {
    if (!s->state && (used_state += (u64)n_leaves) > 1 << 20) fail(0, "the sections have over 1,048,576 fields together");
    free(s->state), s->state = fresh(s);
}
static u64 number(const u8 *at, int n) {
    u64 v = 0;
    for (int i = 0; i < n; i++) v = v << 8 | at[byteorder == 2 ? i : n - 1 - i];
    return v;
}
static const u8 *bytes(Content *c, u64 n) {
    if (n > c->len - c->start) fail(c->origin + c->start, "the content ends in a record");
    return c->at + (c->start += (size_t)n) - n;
}
static u64 raw(Content *c, int n) { const u8 *at = bytes(c, (u64)n); return number(at, n); }
static u64 extend(u64 v, int n) { return n > 0 && n < 8 && v >> (8 * n - 1) ? v | UINT64_MAX << 8 * n : v; }
static u64 value(Content *c, int i) {
    State *x = &c->state[i], *cell = &c->state[x->cell];
    Leaf *l = &leaves[i];
    u64 v = x->a, start = c->start;
    if (l->computed) {
        if (!compute(&l->length, c->state, &v)) fail(c->origin + c->start, "a count out of range");
        return x->last = v;
    }
    switch (x->interp) {
    case NONE: case OFFSET: v = raw(c, x->width); break;
    case BASE: v = x->a + extend(raw(c, x->width), x->width); break;
    case BASE_OF: v = extend(raw(c, x->width), x->width) + c->state[l->base].last; break;
    case DELTA: v = cell->previous + extend(raw(c, x->width), x->width); break;
    case STRIDE: v = cell->previous + x->b; break;
    case SECTION_STRIDE: {
        Scope *s = section(x->a);
        u64 *cursor = &c->in->cursors[x->a];
        if (*cursor >= s->n || c->deep) fail(c->origin + c->start, "an element that does not exist");
        v = s->elements[*cursor], *cursor = x->b > UINT64_MAX - *cursor ? UINT64_MAX : *cursor + x->b;
    }
    }
    if (l->constant && v != l->value) fail(c->origin + start, "a constant with another value");
    return cell->previous = x->last = v;
}

/* ---- JSON lines (8) ---- */

static void print(Text *t, const char *form, u64 n) { char s[32]; snprintf(s, sizeof s, form, (unsigned long long)n), say(t, s); }
static void hex(Text *t, const u8 *at, size_t n) {
    say(t, "\"");
    for (size_t i = 0; i < n; i++) print(t, "%02llx", at[i]);
    say(t, "\"");
}
static bool utf8(const u8 *at, size_t n) {
    for (size_t i = 0; i < n;) {
        u8 b = at[i];
        size_t more = b < 0x80 ? 0 : b >= 0xC2 && b < 0xE0 ? 1 : b >= 0xE0 && b < 0xF0 ? 2 : b >= 0xF0 && b < 0xF5 ? 3 : 9;
        if (more >= n - i) return false;
        for (size_t k = 1; k <= more; k++) if ((at[i + k] & 0xC0) != 0x80) return false;
        if ((b == 0xE0 && at[i + 1] < 0xA0) || (b == 0xED && at[i + 1] > 0x9F) || (b == 0xF0 && at[i + 1] < 0x90) || (b == 0xF4 && at[i + 1] > 0x8F)) return false;
        i += more + 1;
    }
    return true;
}
static void quoted(Text *t, const u8 *at, size_t n) {
    say(t, "\"");
    for (size_t i = 0; i < n; i++)
        if (at[i] < 32) print(t, "\\u%04llx", at[i]);
        else say(t, at[i] == '"' || at[i] == '\\' ? "\\" : ""), put(t, at + i, 1);
    say(t, "\"");
}
static void key(Text *t, const char *name) { say(t, t->len && t->at[t->len - 1] != '{' ? ",\"" : "\""), say(t, name), say(t, "\":"); }
static void shown(Text *t, const Leaf *l, u64 v) {
    double d;
    char s[40];
    if (!strcmp(l->format, "signed")) snprintf(s, sizeof s, "%lld", (long long)v), say(t, s);
    else if (strcmp(l->format, "f64")) print(t, "%llu", v);
    else if ((v >> 52 & 0x7FF) == 0x7FF) print(t, "{\"hex\":\"%016llx\"}", v);
    else {
        memcpy(&d, &v, sizeof d);
        for (int digits = 1; digits < 18; digits++) if (snprintf(s, sizeof s, "%.*g", digits, d), strtod(s, NULL) == d) break;
        say(t, s);
    }
}
static void items(Content *c, Item *item, Text *t);
static Rec *tagged(Content *c) { /* the record with the next tag, or NULL */
    u64 tag = raw(c, tag_width);
    Rec *other = NULL;
    for (Scope *s = scopes; s; s = s == scopes && c->in != scopes ? c->in : NULL)
        for (Rec *r = s->recs; r; r = r->next) {
            if (r->tagged && !r->other && r->tag == tag) return r;
            if (r->other) other = r;
        }
    return other;
}
static void record(Content *c, Rec *r, Text *t) { /* after its tag, unless it is a catch-all record */
    u64 start = c->start;
    c->items = 0;
    items(c, r->items, t);
    if (c->items > c->start - start + 65536 + (r->tagged && !r->other ? (u64)tag_width : 0)) fail(c->origin + start, "more than 65,536 items over its bytes");
}
static bool array(Content *c, const u8 *at, u64 n, int of, Text *t) { /* 3.7: bytes that consist of records */
    Content in = {.at = at, .len = (size_t)n, .in = section((u64)of), .deep = c->deep + 1};
    jmp_buf *volatile before = inside, here;
    size_t len = t->len;
    if (!in.in || in.deep > 8) return false;
    State *volatile state = in.state = fresh(in.in);
    inside = &here;
    bool whole = !setjmp(here);
    if (whole) {
        say(t, "[");
        while (in.start < in.len) {
            size_t start = in.start;
            Rec *r = in.in->stream ? in.in->stream : tagged(&in);
            if (!r || r->predefined) fail(0, "no record for an array");
            if (r->other) in.start = start;
            say(t, t->at[t->len - 1] == '[' ? "{" : ",{"), key(t, "@record"), quoted(t, (u8 *)r->name, strlen(r->name)), record(&in, r, t), say(t, "}");
            if (in.start == start) fail(0, "an element without a byte");
        }
        say(t, "]");
    } else t->len = len;
    return inside = before, free(state), whole;
}
static void leaf(Content *c, Item *item, Text *t, bool named) {
    Leaf *l = &leaves[item->leaf];
    if (l->tag) {
        if (all && named) key(t, item->key), print(t, "%llu", l->top->tag);
        return;
    }
    if (l->numeric) {
        u64 v = value(c, item->leaf);
        if (l->computed || (l->constant && named && !all)) return; /* a constant that is itself an item is shown */
        if (named) key(t, item->key);
        shown(t, l, v);
        return;
    }
    u64 n;
    if (l->until >= 0) {
        const u8 *start = c->at + c->start, *last = memchr(start, l->until, c->len - c->start < 65536 ? c->len - c->start : 65536);
        if (!last) fail(c->origin + c->start, "an array without its last byte %d in 65,536", l->until);
        n = (u64)(last - start);
    } else if (!compute(&l->length, c->state, &n)) fail(c->origin + c->start, "a width out of range");
    const u8 *at = bytes(c, n), *zero = memchr(at, 0, (size_t)n), *last = zero ? zero : at + n;
    c->start += l->until >= 0;
    if (named) key(t, item->key);
    bool cstring = !strcmp(l->format, "cstring"), valid = utf8(at, cstring ? (size_t)(last - at) : (size_t)n);
    if (l->section && array(c, at, n, l->section, t)) return;
    if (l->section || (strcmp(l->format, "utf8") && !cstring)) hex(t, at, (size_t)n);
    else if (!valid) say(t, "{\"hex\":"), hex(t, at, (size_t)n), say(t, "}");
    else if (cstring && (u64)(last - at) + 1 != n) say(t, "{\"text\":"), quoted(t, at, (size_t)(last - at)), say(t, ",\"tail\":"), hex(t, last, (size_t)(at + n - last)), say(t, "}");
    else quoted(t, at, cstring ? (size_t)(last - at) : (size_t)n);
}
static void items(Content *c, Item *item, Text *t) {
    for (; item; item = item->next) {
        if (item->kind == 'l') leaf(c, item, t, true);
        else if (item->kind == 'o') {
            key(t, item->key);
            if (item->alone) value(c, item->body->leaf), leaf(c, item->body->next, t, false);
            else say(t, "{"), items(c, item->body, t), say(t, "}");
        } else {
            u64 n = c->state[item->leaf].last;
            if (n > c->len + 65536 - (c->items < c->len + 65536 ? c->items : c->len + 65536)) fail(c->origin + c->start, "more items than the content has bytes");
            c->items += n;
            if (item->optional && !n) continue;
            key(t, item->key), say(t, item->optional ? "" : "[");
            for (u64 i = 0; i < n; i++) {
                Item *body = item->body;
                say(t, i ? "," : "");
                if (!item->alone) say(t, "{"), items(c, body, t), say(t, "}");
                else if (body->kind == 'l') leaf(c, body, t, false);
                else if (body->alone) value(c, body->body->leaf), leaf(c, body->body->next, t, false);
                else say(t, "{"), items(c, body->body, t), say(t, "}");
            }
            say(t, item->optional ? "" : "]");
        }
    }
}
static Text line; /* the current line */
static void begin(Scope *s, const char *record, u64 offset) {
    line.len = 0, say(&line, "{\"@section\":");
    if (s == scopes) say(&line, "null");
    else quoted(&line, (u8 *)s->name, strlen(s->name));
    key(&line, "@record"), quoted(&line, (u8 *)record, strlen(record));
    if (all) key(&line, "@offset"), print(&line, "%llu", offset);
}
static void finish(Text *to) {
    say(&line, "}\n"), put(to, line.at, line.len);
    if (to == &out && out.len > 1 << 16) flush();
}

/* ---- Metadata (4.1) ---- */

static bool settable(const Leaf *l) { return l->numeric && !l->constant && !l->computed && !l->tag && !(l->top->other && l == &leaves[l->top->first]); }
static void change(State *x, State *state, int code, u64 a, u64 b, u64 at) {
    bool stores = 1 << x->interp & STORES, will = code < 8 && 1 << code & STORES;
    if (code == 0) {
        if (stores) x->width = (u8)a;
        if (a) x->remembered = (u8)a;
        return;
    }
    if (will && !x->remembered) fail(at, "metadata: there never was a width");
    x->interp = code, x->a = a, x->b = b;
    if (code == DELTA || code == STRIDE) state[x->cell].previous = a;
    if (will) x->width = x->remembered;
}
static void metadata(Content *c) {
    u64 at = c->origin + c->start - (u64)tag_width, tag = raw(c, tag_width), index = raw(c, 1), property = raw(c, 1), a = 0, b = 0;
    int code = (int)property & 7, width = property >> 4 ? (int)(property >> 4) : int_size;
    key(&line, "record"), print(&line, "%llu", tag), key(&line, "field"), print(&line, "%llu", index), key(&line, "property"), print(&line, "%llu", property);
    if (width > 8) fail(at, "metadata: values of over 8 bytes");
    if (code != NONE) a = raw(c, width), key(&line, "value"), print(&line, "%llu", a);
    if (code >= STRIDE) b = extend(raw(c, width), width), key(&line, "value_2"), print(&line, "%llu", b);
    Rec *of = NULL, *other = NULL;
    for (Scope *s = scopes; s; s = s == scopes && c->in != scopes ? c->in : NULL)
        for (Rec *r = s->recs; r; r = r->next) {
            if (r->tagged && !r->other && r->tag == tag) of = r;
            if (r->other) other = r;
        }
    if (!of && tag != section_tag && tag != metadata_tag) of = other;
    if (!of || index >= (u64)of->n || !settable(&leaves[of->first + (int)index])) fail(at, "metadata: no field that can be changed");
    if (code == 0 && a > 8) fail(at, "metadata: a width over 8");
    if (code == OFFSET || code == SECTION_STRIDE) {
        Scope *s = a < 256 ? section(a) : NULL;
        if (!s || !s->stream || (code == SECTION_STRIDE && (!s->single || (int64_t)b < 1))) fail(at, "metadata: no such stream section, or a stride under 1");
    }
    int first = of->first + (int)index;
    for (int pass = 0; pass < 2; pass++) /* change all of them or none */
        for (Scope *s = scopes; s; s = s == scopes && c->in != scopes ? c->in : NULL)
            for (Rec *r = s->recs; r; r = r->next)
                for (int i = r->first; i < r->first + r->n; i++)
                    if (i == first || (property & 8 && r->tagged && settable(&leaves[i]) && !strcmp(leaves[i].name, leaves[first].name))) {
                        State trial = c->state[i];
                        if (pass) change(&c->state[i], c->state, code, a, b, at);
                        else if (code && 1 << code & STORES && !trial.remembered) fail(at, "metadata: there never was a width");
                    }
}

/* ---- Sections of a trace (5) ---- */

static void elements(Scope *s, Content *c, u64 base, int width, int64_t count, bool shared) {
    int64_t found = 0;
    if (s->single && width) s->state[s->stream->first].width = (u8)width;
    for (; c->start < c->len; found++) {
        size_t start = c->start;
        begin(s, s->stream->name, base + start);
        if (shared) say(&line, ",\"@shared\":true");
        record(c, s->stream, &line);
        if (c->start == start) fail(c->origin + start, "an element without a byte");
        if (s->single) {
            if (s->n == s->room && !(s->elements = realloc(s->elements, (size_t)(s->room = 2 * s->room + 16) * sizeof *s->elements))) fail(0, "no memory");
            s->elements[s->n++] = s->state[s->stream->first].last;
        }
        if (all) finish(shared ? &out : &s->shown);
    }
    if (count >= 0 && count != found) fail(c->counted, "the chunk has another number of elements");
}
static void records(Content *c, u64 base, int64_t count, bool follow) {
    int64_t found = 0;
    while (c->start < c->len) {
        size_t start = c->start;
        u64 tag = raw(c, tag_width), at = c->origin + start;
        if (tag == section_tag) {
            u64 to = raw(c, 1);
            Scope *s = section(to);
            if (!follow || !to || !s || s->stream) fail(at, "a section record that does not belong here");
            begin(c->in, "section", base + start), key(&line, "number"), print(&line, "%llu", to);
            if (all) finish(&out);
            if (!s->state) reset(s);
            c->in = s, c->state = s->state;
            continue;
        }
        if (tag == metadata_tag) {
            begin(c->in, "metadata", base + start), metadata(c);
            if (all) finish(&out);
            continue;
        }
        c->start = start;
        Rec *r = tagged(c);
        if (!r) fail(at, "an unknown tag %llu in section %d", (unsigned long long)tag, c->in->number);
        if (r->other) c->start = start;
        begin(c->in, r->name, base + start);
        if (r->predefined && all) { /* comment: only its text */
            bool before = all;
            all = false, record(c, r, &line), all = before, finish(&out);
            continue;
        }
        record(c, r, &line);
        if (!r->predefined) found++, finish(&out);
    }
    if (count >= 0 && count != found) fail(c->counted, "the chunk has another number of records");
}
static void end_group(void) { /* elements are shown last */
    for (int i = 1; i < 256; i++) {
        Scope *s = section((u64)i);
        if (s) put(&out, s->shown.at, s->shown.len), s->shown.len = 0;
    }
}
static u64 header[3];
static const u8 *data;
static size_t size;

static void extents(size_t at) { /* version 0 */
    if (!header[0]) {
        Content c = {.at = data + header[1], .len = size - (size_t)header[1], .origin = header[1], .in = scopes};
        reset(scopes), c.state = scopes->state, records(&c, header[1], -1, true);
        return;
    }
    for (int pass = 0; pass < 2; pass++) { /* streams first */
        u64 here = header[1];
        int last = 0;
        for (u64 i = 0; i < header[0]; i++) {
            const u8 *entry = data + at + i * 3 * (u64)int_size;
            u64 no = number(entry, int_size), from = number(entry + int_size, int_size), n = number(entry + 2 * int_size, int_size), where = (u64)(entry - data);
            Scope *s = no < 256 ? section(no) : NULL;
            if (!s) fail(from, "an extent of an unknown section");
            if (from > size || n > size - from) fail(where, "an extent past the end of the file");
            if (!no && (i || from != here)) fail(where, "the global section is not first");
            u64 before = from - (u64)tag_width - 1;
            if (no && (from < (u64)tag_width + 1 || before < here || (i && before != here))) fail(where, "extents with a gap, or in another order");
            if (no && (number(data + before, tag_width) != section_tag || data[from - 1] != no)) fail(before, "no section record before the extent");
            Content c = {.at = data + from, .len = (size_t)n, .origin = from, .in = s};
            if (pass && no && !i) {
                Content g = {.at = data + here, .len = (size_t)(before - here), .origin = here, .in = scopes};
                if (!scopes->state) reset(scopes);
                g.state = scopes->state, records(&g, here, -1, false);
            }
            if (pass && no && all) begin(section((u64)last), "section", before), key(&line, "number"), print(&line, "%llu", no), finish(&out);
            if (!s->state) reset(s);
            c.state = s->state, last = (int)no, here = from + n;
            if (!pass && s->stream) elements(s, &c, from, 0, -1, false);
            if (pass && !s->stream) records(&c, from, -1, false);
        }
        if (here != size) fail(here, "bytes behind the last extent");
    }
    end_group();
}
static u64 little(const u8 *at, int n) { u64 v = 0; while (n--) v = v << 8 | at[n]; return v; }
static u64 crc(const u8 *a, size_t n, const u8 *b, size_t m) { /* CRC-32C */
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n + m; i++) {
        c ^= i < n ? a[i] : b[i - n];
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0x82F63B78 : 0);
    }
    return c ^ UINT32_MAX;
}
static void chunks(size_t at, const char *given) { /* version 1; `given` is the DTD if the trace has none */
    int64_t group = -1;
    Text index = {0};
    for (u64 sequence = 0; at < size; sequence++) {
        const u8 *h = data + at;
        if (size - at < 48 || memcmp(h, "MTFC", 4)) fail(at, "no chunk");
        u64 stored = little(h + 12, 4), n = little(h + 16, 4), base = little(h + 32, 8);
        int kind = h[5], flags = h[8], width = h[9];
        if (stored > size - at - 48) fail(at, "the file ends in a chunk");
        if (crc(h, 44, h + 48, (size_t)stored) != little(h + 44, 4)) fail(at, "a checksum that does not hold");
        if (little(h + 28, 4) != sequence) fail(at + 28, "chunk %llu is expected here", (unsigned long long)sequence);
        if (kind > 3 && kind < 128) fail(at + 5, "an unknown kind of chunk, %d", kind);
        if (h[10] != int_size / 4 || h[11] != byteorder) fail(at + 10, "class or byte order is not that of the header");
        if (kind < 128) {
            if (h[6] > 3) fail(at + 6, "unknown codec %d", h[6]);
            if (h[7] > 3) fail(at + 7, "unknown filter %d", h[7]);
            if (flags > 7) fail(at + 8, "unknown flags, %d", flags);
            if (h[6] || h[7] > 1) fail(at + 6, "codec %d and filter %d need a reader of level container", h[6], h[7]);
            if (n != stored || (n > 64 << 20 && kind != 2)) fail(at + 16, "raw_len is wrong");
            if (h[7] == 1 && (!width || n % (u64)width)) fail(at + 9, "elements of no size");
            if (little(h + 40, 4)) fail(at + 40, "filtered_len is not 0");
            if (kind && h[4]) fail(at + 4, "a chunk of this kind has no section");
            if (kind && little(h + 24, 4)) fail(at + 24, "a chunk of this kind has no group");
        }
        if (!sequence) {
            if (kind != 1 && !given) fail(at, "the trace has no DTD, and none is given");
            if (kind == 1) parse((const char *)h + 48, (size_t)stored);
            else parse(given, strlen(given));
        }
        if (kind == 2) {
            const u8 *f = h + 48 + stored;
            u64 left = size - at - 48 - stored;
            if (stored != index.len || memcmp(h + 48, index.at, index.len)) fail(at + 48, "the index is wrong");
            if (left && (left < 16 || little(f, 8) != at || crc(f, 8, f, 0) != little(f + 8, 4) || memcmp(f + 12, "MTFE", 4))) fail((u64)(f - data), "the footer is wrong");
            if (left > 16) fail((u64)(f - data) + 16, "bytes behind the footer");
            at = size;
            break;
        }
        u8 entry[32];
        for (int i = 0; i < 8; i++) entry[i] = (u8)((u64)at >> 8 * i);
        memcpy(entry + 8, h + 32, 8), memcpy(entry + 16, h + 4, 3), entry[19] = h[8], memcpy(entry + 20, h + 12, 12), put(&index, entry, 32);
        if (!kind) {
            Scope *s = section(h[4]);
            bool shared = flags & 4, first = flags & 2;
            int64_t g = (int64_t)little(h + 24, 4);
            if (!s) fail(at + 4, "an unknown section");
            if (s->length != base) fail(at + 32, "the base is wrong");
            if (shared ? flags != 5 || g || s->local || !s->stream : s->shared) fail(at + 8, "a shared table with wrong flags, or in part");
            s->length += n, s->shared = shared, s->local = !shared;
            if (first) {
                end_group();
                for (Scope *o = scopes; o; o = o->next) o->seen = false, o->n = o->shared ? o->n : 0, memset(o->cursors, 0, sizeof o->cursors);
            }
            if (!shared && group < 0 && !first) fail(at + 8, "a chunk before the first group");
            if (!shared && g != group + first) fail(at + 24, "group %lld is not expected here", (long long)g);
            if (first && all && g) line.len = 0, say(&line, "{"), key(&line, "@group"), print(&line, "%llu", (u64)g), finish(&out);
            if (!shared) group = g;
            if (!shared && !s->seen && !(flags & 1)) fail(at + 8, "the first chunk of a section in a group is no reset");
            for (int i = 0; s->stream && !s->seen && !shared && i < n_leaves; i++) {
                Scope *o = leaves[i].top->scope;
                for (Scope *user = scopes; user; user = user->next)
                    if (leaves[i].interp == SECTION_STRIDE && leaves[i].interp_a == h[4] && user->seen && !user->stream && (o == user || o == scopes)) fail(at, "a stream section behind one that strides through it");
            }
            bool single = s->single && 1 << leaves[s->stream->first].interp & STORES;
            if (single ? width < 1 || width > 8 : width && !h[7]) fail(at + 9, "a width that does not belong here");
            s->seen = true;
            if (flags & 1 || !s->state) reset(s);
            u8 *plain = NULL;
            if (h[7]) {
                plain = zeros((size_t)n, 1);
                for (u64 i = 0, rows = n / (u64)width; i < n; i++) plain[i] = h[48 + i % (u64)width * rows + i / (u64)width];
            }
            Content c = {.at = plain ? plain : h + 48, .len = (size_t)n, .origin = plain ? at : at + 48, .counted = at + 20, .in = s, .state = s->state};
            if (s->stream) elements(s, &c, base, single ? width : 0, (int64_t)little(h + 20, 4), shared);
            else records(&c, base, (int64_t)little(h + 20, 4), false);
            free(plain);
        }
        at += 48 + stored;
    }
    end_group();
}
static u8 *load(const char *name, size_t *len) {
    Text t = {0};
    u8 buffer[1 << 14];
    FILE *f = fopen(name, "rb");
    if (!f) fprintf(stderr, "%s: cannot be read\n", name), exit(1);
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, f)) > 0;) put(&t, buffer, n);
    fclose(f), *len = t.len, put(&t, "", 1);
    return t.at;
}
int main(int argc, char **argv) {
    all = argc > 1 && !strcmp(argv[1], "--all");
    argv += all, argc -= all;
    if (argc < 2) return fputs("usage: plain [--all] TRACE [DTD]\n", stderr), 2;
    size_t given_len = 0;
    data = load(file = argv[1], &size);
    char *given = argc > 2 ? (char *)load(argv[2], &given_len) : NULL;
    if (size < 4 || memcmp(data, "\177MTF", 4)) fail(0, "no trace of Meta-TF");
    if (size < 16) fail(size, "the file ends in its header");
    if (data[4] != 1 && data[4] != 2) fail(4, "class %d", data[4]);
    if (data[5] != 1 && data[5] != 2) fail(5, "byte order %d", data[5]);
    int_size = 4 * data[4], byteorder = data[5], version = data[7];
    if (version > 1) fail(7, "version %d needs a later reader", version);
    for (int i = 8; i < 16; i++)
        for (int bit = 0; data[i] && bit < 8; bit++)
            if (data[i] >> bit & 1) fail((u64)i, version ? "the trace needs feature %d" : "a pad that is not 0", 8 * (i - 8) + bit);
    size_t at = 16 + 3 * (size_t)int_size + data[6];
    if (at > size) fail(size, "the file ends in its header");
    for (int i = 0; i < 3; i++) header[i] = number(data + 16 + i * int_size, int_size);
    if (version && header[0]) fail(16, "a table in version 1");
    if (header[0] > (size - at) / (3 * (u64)int_size)) fail(16, "the file ends in its header");
    u64 behind = at + header[0] * 3 * (u64)int_size;
    if (header[1] < behind || header[1] > size || (version && header[1] != behind)) fail(16 + (u64)int_size, "the data begin at a wrong place");
    if (!version && !given) fail(16 + 3 * (u64)int_size, "a DTD has to be given");
    if (version) chunks(at, given);
    else parse(given, given_len), extents(at);
    return flush(), 0;
}
