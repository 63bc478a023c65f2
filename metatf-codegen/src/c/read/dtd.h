/* ---- The DTD of a trace: docs/specification.md, section 5.3 ---- */

/* A text of which the next token is `token`, with `length` bytes; 0 at the end. */
typedef struct pfx_tokens_ {
    const char *at;
    const char *end;
    const char *token;
    size_t length;
} pfx_tokens_;

static bool pfx_is_word_(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* Skips whitespace and comments. */
static void pfx_skip_space_(pfx_tokens_ *text)
{
    while (text->at < text->end) {
        if (*text->at == ' ' || (*text->at >= '\t' && *text->at <= '\r')) {
            text->at++;
        } else if (text->end - text->at > 1 && text->at[0] == '/' && text->at[1] == '/') {
            while (text->at < text->end && *text->at != '\n') {
                text->at++;
            }
        } else if (text->end - text->at > 1 && text->at[0] == '/' && text->at[1] == '*') {
            text->at += 2;
            while (text->end - text->at > 1 && (text->at[0] != '*' || text->at[1] != '/')) {
                text->at++;
            }
            text->at = text->end - text->at > 1 ? text->at + 2 : text->end;
        } else {
            return;
        }
    }
}

/* Advances to the next token, which is a word, a string or a mark. */
static void pfx_next_token_(pfx_tokens_ *text)
{
    char first;
    pfx_skip_space_(text);
    text->token = text->at;
    if (text->at < text->end) {
        first = *text->at++;
        if (pfx_is_word_(first)) {
            while (text->at < text->end && pfx_is_word_(*text->at)) {
                text->at++;
            }
        } else if (first == '"' || first == '\'') {
            while (text->at < text->end && *text->at != first && *text->at != '\n') {
                text->at += *text->at == '\\' && text->end - text->at > 1 ? 2 : 1;
            }
            text->at += text->at < text->end ? 1 : 0;
        }
    }
    text->length = (size_t)(text->at - text->token);
}

static bool pfx_token_is_(const pfx_tokens_ *text, const char *token)
{
    return text->length == strlen(token) && memcmp(text->token, token, text->length) == 0;
}

/* Skips annotations, which do not change the meaning of the DTD. The text is at the start of a statement. */
static void pfx_skip_annotations_(pfx_tokens_ *text)
{
    static const char *const properties[] = {"width", "interpretation", "value", "previous", "section"};
    for (;;) {
        pfx_tokens_ look = *text;
        bool dot = false;
        size_t i = 0;
        while (look.length > 0 && (pfx_is_word_(*look.token) || *look.token == '"')) {
            for (i = 0; i < sizeof properties / sizeof *properties && !pfx_token_is_(&look, properties[i]); i++) {
            }
            pfx_next_token_(&look);
            if (!pfx_token_is_(&look, ".")) {
                break;
            }
            dot = true;
            pfx_next_token_(&look);
        }
        if (!dot || !pfx_token_is_(&look, "=") || i < sizeof properties / sizeof *properties) {
            return;
        }
        while (look.length > 0 && !pfx_token_is_(&look, ";")) {
            pfx_next_token_(&look);
        }
        pfx_next_token_(&look);
        *text = look;
    }
}

/* Starts at the first token of a text. */
static pfx_tokens_ pfx_tokens_of_(const char *text, size_t length)
{
    pfx_tokens_ tokens;
    bool mark = length >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
    tokens.at = mark ? text + 3 : text;
    tokens.end = text + length;
    pfx_next_token_(&tokens);
    pfx_skip_annotations_(&tokens);
    return tokens;
}

static void pfx_advance_token_(pfx_tokens_ *text)
{
    bool ends = pfx_token_is_(text, "{") || pfx_token_is_(text, "}") || pfx_token_is_(text, ";");
    pfx_next_token_(text);
    if (ends) {
        pfx_skip_annotations_(text);
    }
}

/* Checks that the DTD of a trace has the same tokens as the DTD of this reader. */
static void pfx_check_dtd_(pfx_reader *reader, const uint8_t *text, size_t length, uint64_t offset)
{
    size_t own_length = 0;
    size_t i;
    char *own;
    pfx_tokens_ a;
    pfx_tokens_ b;
    for (i = 0; i < sizeof pfx_dtd_ / sizeof *pfx_dtd_; i++) {
        own_length += pfx_dtd_[i].length;
    }
    own = (char *)malloc(own_length + 1);
    if (own == NULL) {
        pfx_fail_(reader, PFX_ERROR_LIMIT, offset, "not enough memory for the DTD");
        return;
    }
    own_length = 0;
    for (i = 0; i < sizeof pfx_dtd_ / sizeof *pfx_dtd_; i++) {
        memcpy(own + own_length, pfx_dtd_[i].text, pfx_dtd_[i].length);
        own_length += pfx_dtd_[i].length;
    }
    a = pfx_tokens_of_(own, own_length);
    b = pfx_tokens_of_((const char *)text, length);
    while (a.length > 0 && a.length == b.length && memcmp(a.token, b.token, a.length) == 0) {
        pfx_advance_token_(&a);
        pfx_advance_token_(&b);
    }
    if (a.length > 0 || b.length > 0) {
        pfx_fail_(reader, PFX_ERROR_MISMATCH, offset + (uint64_t)(b.token - (const char *)text),
            "the DTD of the trace differs from the DTD of this reader at `%.*s`: generate the reader from the DTD of the trace",
            b.length > 40 ? 40 : (int)b.length, b.length > 0 ? b.token : "");
    }
    free(own);
}

