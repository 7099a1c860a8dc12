#include "device/findings.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool is_equal_stores(const fa_finding *one) { return strcmp(one->fault, FA_EQUAL_STORES) == 0; }

/* The order of the two accesses is the schedule's. */
static bool same(const fa_finding *a, const fa_finding *b)
{
    const bool crossed = strcmp(a->at[0], b->at[1]) == 0 && strcmp(a->at[1], b->at[0]) == 0;
    const bool straight = strcmp(a->at[0], b->at[0]) == 0 && strcmp(a->at[1], b->at[1]) == 0;
    return strcmp(a->fault, b->fault) == 0 && strcmp(a->memory, b->memory) == 0 && (straight || crossed);
}

void fa_findings_add(fa_findings *all, const fa_finding *one)
{
    for (int32_t i = 0; i < all->listed; i++)
        if (same(&all->list[i], one))
            return;
    int32_t at = all->listed;
    while (!is_equal_stores(one) && at > 0 && is_equal_stores(&all->list[at - 1]))
        at--;
    all->count++;
    if (at == FA_FINDINGS_LISTED)
        return;
    all->listed += all->listed < FA_FINDINGS_LISTED;
    memmove(&all->list[at + 1], &all->list[at], (size_t)(all->listed - at - 1) * sizeof all->list[0]);
    all->list[at] = *one;
}

void fa_findings_text(const fa_findings *all, char *text, size_t size)
{
    fa_writer w = {.text = text, .size = size};
    fa_put(&w, "%s", all->listed > 0 ? all->list[0].text : "");
    for (int32_t i = 1; i < all->listed; i++) {
        const fa_finding *f = &all->list[i];
        if (f->at[0][0] == '\0')
            fa_put(&w, "\nand %s", f->text);
        else
            fa_put(&w, "\nand %s%s%s: %s and %s", f->fault, f->memory[0] != '\0' ? " in " : "", f->memory, f->at[0],
                   f->at[1]);
    }
    if (all->count > all->listed)
        fa_put(&w, "\nand %d more", (int)(all->count - all->listed));
    if (all->more)
        fa_put(&w, "\nthere may be others");
}

fa_status fa_findings_verdict(const fa_findings *all, fa_reason *why)
{
    if (all == NULL || all->count == 0)
        return FA_PASS;
    const int used = snprintf(why->text, sizeof why->text, "emulator: ");
    fa_findings_text(all, why->text + used, sizeof why->text - (size_t)used);
    return FA_WRONG;
}
