#include "ptx/table.h"

#include <string.h>

const fa_ptx_type_info fa_ptx_types[FA_PTX_TYPES] = {
#define FA_PTX_TYPE(id, text, bits, kind, elements) [FA_PTX_##id] = {text, bits, FA_PTX_##kind, elements},
#include "ptx/words.def"
};

static const char *const words[FA_PTX_WORDS] = {
#define FA_PTX_WORD(id, text) [FA_PTX_W_##id] = text,
#include "ptx/words.def"
};

const fa_ptx_row fa_ptx_rows[FA_PTX_OPS] = {
#define FA_PTX(id, name, family, types, least, most, list, args_least, args_most, meaning) \
    [FA_PTX_OP_##id] = {name, FA_PTX_##family, types, least, most, list, args_least, args_most, meaning},
#include "ptx/instructions.def"
};

static const char *const specials[FA_PTX_SREGS] = {
#define FA_PTX_SPECIAL(id, text) [FA_PTX_SREG_##id] = text,
#include "ptx/special.def"
};

static bool same(const char *name, const char *text, size_t length)
{
    return strncmp(name, text, length) == 0 && name[length] == '\0';
}

#define FIND(COUNT, name_of_i)             \
    for (int i = 0; i < COUNT; i++)        \
        if (same(name_of_i, text, length)) \
            return i;                      \
    return -1
int fa_ptx_find_op(const char *text, size_t length) { FIND(FA_PTX_OPS, fa_ptx_rows[i].name); }
int fa_ptx_find_type(const char *text, size_t length) { FIND(FA_PTX_TYPES, fa_ptx_types[i].text); }
int fa_ptx_find_word(const char *text, size_t length) { FIND(FA_PTX_WORDS, words[i]); }
int fa_ptx_find_special(const char *text, size_t length) { FIND(FA_PTX_SREGS, specials[i]); }

const char *fa_ptx_special_name(fa_ptx_special special) { return specials[special]; }

bool fa_ptx_listed(const char *list, const char *text, size_t length)
{
    for (const char *at = list; *at != '\0';) {
        const size_t word = strcspn(at, " ");
        if (word == length && strncmp(at, text, length) == 0)
            return true;
        at += word + strspn(at + word, " ");
    }
    return false;
}
