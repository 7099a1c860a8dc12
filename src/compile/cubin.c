#include "compile/cubin.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct elf_view {
    const char *data;
    size_t size;
    const Elf64_Shdr *sections;
    size_t count;
} elf_view;

static bool inside(const elf_view *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->size && size <= elf->size - offset;
}

static bool open_elf(const char *data, size_t size, elf_view *elf)
{
    *elf = (elf_view){.data = data, .size = size};
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)data;
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    elf->count = header->e_shnum;
    if (header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % _Alignof(Elf64_Shdr) != 0 ||
        !inside(elf, header->e_shoff, elf->count * sizeof(Elf64_Shdr)))
        return false;
    elf->sections = (const Elf64_Shdr *)(data + header->e_shoff);
    return true;
}

/* The symbol of that name and type, NULL when there is none. */
static const Elf64_Sym *find_symbol(const elf_view *elf, const char *name, unsigned char type)
{
    for (size_t s = 0; s < elf->count; s++) {
        const Elf64_Shdr *table = &elf->sections[s];
        if (table->sh_type != SHT_SYMTAB || table->sh_link >= elf->count ||
            table->sh_offset % _Alignof(Elf64_Sym) != 0 || !inside(elf, table->sh_offset, table->sh_size))
            continue;
        const Elf64_Shdr *names = &elf->sections[table->sh_link];
        if (!inside(elf, names->sh_offset, names->sh_size))
            continue;
        const Elf64_Sym *symbols = (const Elf64_Sym *)(elf->data + table->sh_offset);
        for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
            const size_t room = symbols[i].st_name < names->sh_size ? names->sh_size - symbols[i].st_name : 0;
            if (ELF64_ST_TYPE(symbols[i].st_info) == type && strlen(name) < room &&
                strncmp(elf->data + names->sh_offset + symbols[i].st_name, name, room) == 0)
                return &symbols[i];
        }
    }
    return NULL;
}

bool fa_cubin_object(const char *cubin, size_t cubin_size, const char *symbol, void *out, size_t size)
{
    elf_view elf;
    if (!open_elf(cubin, cubin_size, &elf))
        return false;
    const Elf64_Sym *found = find_symbol(&elf, symbol, STT_OBJECT);
    if (found == NULL || found->st_size != size || found->st_shndx >= elf.count)
        return false;
    const Elf64_Shdr *section = &elf.sections[found->st_shndx];
    if (section->sh_type == SHT_NOBITS || found->st_value > section->sh_size ||
        size > section->sh_size - found->st_value || !inside(&elf, section->sh_offset, section->sh_size))
        return false;
    memcpy(out, cubin + section->sh_offset + found->st_value, size);
    return true;
}

bool fa_cubin_function(const char *cubin, size_t cubin_size, const char *symbol)
{
    elf_view elf;
    return open_elf(cubin, cubin_size, &elf) && find_symbol(&elf, symbol, STT_FUNC) != NULL;
}

fa_digest fa_cubin_code_digest(const char *cubin, size_t cubin_size)
{
    elf_view elf;
    char *text = NULL;
    size_t size = 0;
    FILE *out = fa_open_text(&text, &size);
    const bool good = open_elf(cubin, cubin_size, &elf);
    for (size_t s = 0; good && s < elf.count; s++)
        if (elf.sections[s].sh_type == SHT_PROGBITS && (elf.sections[s].sh_flags & SHF_EXECINSTR) != 0 &&
            inside(&elf, elf.sections[s].sh_offset, elf.sections[s].sh_size))
            fwrite(cubin + elf.sections[s].sh_offset, 1, elf.sections[s].sh_size, out);
    fclose(out);
    const fa_digest digest = fa_sha256(text, size);
    free(text);
    return digest;
}
