#include "emu/race/memory.h"

#include <stdlib.h>
#include <string.h>

#include "emu/core/fibre.h"
#include "emu/core/pending.h"
#include "emu/core/report.h"
#include "emu/core/window.h"
#include "emu/race/cluster.h"
#include "emu/race/found.h"
#include "emu/race/map.h"

/* SPINS: atomic or volatile loads in a row until other threads of the block run; BLOCK_TURNS: such switches until other
 * blocks do. TOUCHES_MOST: accesses after a race until the launch ends: what follows may have no end. */
enum { SPINS = 32, BLOCK_TURNS = 256, TOUCHES_MOST = 1 << 22, STRONG = FA_RACE_ATOMIC | FA_RACE_VOLATILE };

/* The worker whose thread runs, or NULL: not in a kernel under the race detector. */
static fa_emu_worker *running(void)
{
    fa_emu_worker *worker = fa_emu_self;
    return worker != NULL && worker->current != NULL && worker->race != NULL && !worker->stopped ? worker : NULL;
}

static fa_race_place *place_slot(const fa_race *race, uint64_t address)
{
    size_t slot = (address * 0x9e3779b97f4a7c15u >> 24) & (race->place_capacity - 1);
    while (race->places[slot].address != 0 && race->places[slot].address != address)
        slot = (slot + 1) & (race->place_capacity - 1);
    return &race->places[slot];
}

static fa_race_place *place_of(fa_race *race, uint64_t address)
{
    if (2 * race->place_count >= race->place_capacity) {
        fa_race old = *race;
        race->place_capacity = old.place_capacity > 0 ? 2 * old.place_capacity : 64;
        race->places = fa_alloc(race->place_capacity * sizeof *race->places);
        for (size_t i = 0; i < old.place_capacity; i++)
            if (old.places[i].address != 0)
                *place_slot(race, old.places[i].address) = old.places[i];
        free(old.places);
    }
    fa_race_place *place = place_slot(race, address);
    race->place_count += place->address == 0;
    place->address = address;
    return place;
}

typedef struct context {
    fa_emu_worker *worker;
    uint64_t address;
    size_t size;
    int kind;
    uint32_t knower; /* the thread that acts, or that issued the actor */
    fa_race_access now;
} context;

static bool knows(const context *now, uint32_t block, uint32_t thread, uint32_t epoch)
{
    const fa_race_thread *self = &now->worker->race->thread[now->knower];
    if (block == now->worker->block_number)
        return epoch <= self->clock[thread];
    return epoch <= fa_race_known_epoch(self->others, block, thread) ||
           ((now->kind & STRONG) && epoch <= fa_race_known_epoch(self->observed[FA_RACE_MET], block, thread));
}

/* A plain access also follows an atomic one when it follows a thread that read the atomic's value. */
static bool was_read(const context *now, const fa_race_access *access)
{
    const fa_race *race = fa_race_of(now->worker);
    if (!(access->kind & STRONG) || (now->kind & STRONG) || race->place_capacity == 0)
        return false;
    const fa_race_place *place = place_slot(race, now->address);
    const uint32_t count = place->reading_count < FA_RACE_READINGS ? place->reading_count : FA_RACE_READINGS;
    for (uint32_t i = 0; i < count; i++) {
        const fa_race_reading *reading = &place->readings[i];
        if (reading->time >= access->time && knows(now, reading->block, reading->thread, reading->epoch))
            return true;
    }
    return false;
}

static fa_race_order is_ordered(const void *argument, const fa_race_access *access)
{
    const context *now = argument;
    if (!knows(now, access->block, access->thread, access->epoch) && !was_read(now, access))
        return FA_RACE_UNORDERED;
    if (now->kind & FA_RACE_MAP)
        return (access->kind & FA_RACE_ASYNC) ||
                       fa_race_map_missing(now->worker, access, now->knower, now->address) == NULL
                   ? FA_RACE_ORDERED
                   : FA_RACE_FENCE_MISSING;
    const bool crosses = (now->kind & FA_RACE_ASYNC) && !(now->kind & FA_RACE_GENERIC) &&
                         !(access->kind & FA_RACE_ASYNC) && (access->kind & FA_RACE_WRITE) &&
                         fa_race_peer(now->worker, access->block) != NULL;
    return crosses && !fa_race_fence_between(now->worker, access, now->knower, now->address) ? FA_RACE_FENCE_MISSING
                                                                                             : FA_RACE_ORDERED;
}

/* Memory that is private or never written: the thread's stack, what the emulator passes to it, and the parameters. */
static bool is_private(const fa_emu_worker *worker, uint64_t address)
{
    const fa_emu_fibre *fibre = worker->current;
    return address - (uint64_t)(uintptr_t)fibre->stack < fibre->stack_size ||
           address - (uint64_t)(uintptr_t)worker->fibres < worker->fibre_count * sizeof *worker->fibres ||
           address - (uint64_t)(uintptr_t)fibre->thread.api < sizeof *fibre->thread.api ||
           address - (uint64_t)(uintptr_t)worker->launch->params < sizeof *worker->launch->params ||
           address == (uint64_t)(uintptr_t)worker->slot.now;
}

static void report(const void *argument, const fa_race_access *before, fa_race_order order)
{
    const context *c = argument;
    const bool fence = order == FA_RACE_FENCE_MISSING;
    fa_race_known *const *observed = c->worker->race->thread[c->knower].observed;
    const bool read = fa_race_known_epoch(observed[FA_RACE_DEVICE], before->block, before->thread) >= before->epoch ||
                      fa_race_known_epoch(observed[FA_RACE_MET], before->block, before->thread) >= before->epoch;
    const char *unordered =
        read ? "its flag or ticket was read without an acquire or __threadfence(); not ordered after:" : NULL;
    const bool stores =
        !fence && c->kind == FA_RACE_WRITE && before->kind == FA_RACE_WRITE && fa_race_of(c->worker)->storing != NULL;
    const fa_race_finding what = {.class = fence ? "missing proxy fence" : NULL,
                                  .between = !fence ? unordered
                                             : c->kind & FA_RACE_MAP
                                                 ? fa_race_map_missing(c->worker, before, c->knower, c->address)
                                                 : "no fence.proxy.async of that thread after its",
                                  .now = c->now,
                                  .before = *before,
                                  .size = (uint32_t)c->size,
                                  .differs = !stores};
    fa_race_found_at(c->worker, &what, c->address);
}

static void settle_guess(fa_emu_worker *worker);

void fa_race_touch_by(fa_emu_worker *worker, const fa_race_actor *by, uint64_t begin, size_t size, int kind,
                      const void *pc)
{
    fa_race *race = fa_race_of(worker);
    settle_guess(worker);
    const uint64_t end = begin + size;
    context here = {worker, begin, size, kind, by->issuer, {.epoch = 0}};
    race->time += (kind & (FA_RACE_ATOMIC | FA_RACE_VOLATILE)) != 0;
    for (uint64_t at = begin & ~7ull; at < end; at += 8) {
        const unsigned from = at < begin ? (unsigned)(begin - at) : 0, to = end - at < 8 ? (unsigned)(end - at) : 8;
        here.now = (fa_race_access){.epoch = by->epoch,
                                    .block = by->block,
                                    .place = fa_race_place_of(race, pc),
                                    .stack = worker->race->thread[by->issuer].stack,
                                    .time = race->time,
                                    .thread = (uint16_t)by->index,
                                    .bytes = (uint8_t)((0xffu >> (8 - to)) & (0xffu << from)),
                                    .kind = (uint8_t)kind};
        fa_race_shadow_touch(&race->shadow, at, &here.now, is_ordered, report, &here);
    }
}

static void settle_guess(fa_emu_worker *worker)
{
    fa_race_thread *thread = worker->current != NULL ? fa_race_current(worker) : NULL;
    if (thread == NULL || thread->guess.size == 0)
        return;
    const fa_race_guess guess = thread->guess;
    const uint32_t index = fa_race_index(worker), stack = thread->stack;
    const fa_race_actor self = {index, index, guess.epoch, worker->block_number};
    thread->guess.size = 0;
    thread->stack = guess.stack;
    fa_race_touch_by(worker, &self, fa_race_shadow_address(worker, guess.address), guess.size, 0, guess.pc);
    thread->stack = stack;
}

void fa_race_settle(fa_emu_worker *worker)
{
    fa_race_store_settle(fa_race_of(worker));
    settle_guess(worker);
}

void fa_race_checks_guess(const volatile void *address, const void *expected, size_t size)
{
    fa_emu_worker *worker = running();
    fa_race_guess *guess = worker != NULL ? &fa_race_current(worker)->guess : NULL;
    if (guess != NULL && guess->size == size && guess->address == (uint64_t)(uintptr_t)address &&
        memcmp((const void *)guess->address, expected, size) == 0)
        guess->size = 0;
}

/* An access to a barrier object of a block, other than by its own instructions. */
static void check_barrier(fa_emu_worker *worker, const fa_emu_pending *pending, uint64_t address, size_t size, int kind,
                          const void *pc)
{
    const fa_emu_mbarrier *barrier = fa_emu_pending_barrier(pending, address, size);
    if (barrier == NULL)
        return;
    const fa_race_access now = fa_race_access_now(worker, kind, pc);
    fa_race_found(worker, "ordinary access to a barrier", "live since its initialisation:", &now, &barrier->race->init);
}

/* Shared memory of other blocks of the cluster: it is there from their beginning to their end. */
static void check_peer(fa_emu_worker *worker, uint64_t address, size_t size, int kind, const void *pc)
{
    unsigned char *place;
    const fa_emu_worker *peer = fa_emu_window_owner(worker, (const void *)(uintptr_t)address, &place);
    if (peer == NULL || peer == worker)
        return;
    if (peer->over || !fa_race_has_begun(worker, peer)) {
        const fa_race_access now = fa_race_access_now(worker, kind, pc);
        fa_race_note(worker, &now,
                     peer->over ? "block (%u,%u,%u), which owns that shared memory, has ended"
                                : "block (%u,%u,%u), which owns that shared memory, may not have started: a cluster "
                                  "barrier comes before the first access",
                     peer->block.x, peer->block.y, peer->block.z);
        fa_emu_fail(FA_EMU_ABSENT_BLOCK, "", NULL, 0);
    }
    if (peer->pending != NULL)
        check_barrier(worker, peer->pending, (uint64_t)(uintptr_t)place, size, kind, pc);
}

void fa_race_touch(const volatile void *memory, size_t size, int kind, const void *pc)
{
    fa_emu_worker *worker = running();
    const uint64_t address = (uint64_t)(uintptr_t)memory;
    if (worker == NULL)
        return;
    if (is_private(worker, address)) {
        if (worker->pending != NULL)
            worker->launch->registers_touched(worker, address, size, (kind & FA_RACE_WRITE) != 0, pc);
        return;
    }
    fa_race *race = fa_race_of(worker);
    fa_race_thread *thread = fa_race_current(worker);
    const uint32_t index = fa_race_index(worker);
    const fa_race_actor self = {index, index, thread->clock[index], worker->block_number};
    thread->pc = pc;
    if (kind != 0) /* g++ announces a store before what it reads */
        fa_race_store_settle(race);
    if (race->differs && ++race->touches > TOUCHES_MOST) {
        race->found_more = true;
        fa_emu_fail(FA_EMU_RACE, "", NULL, 0);
    }
    if (worker->pending != NULL)
        check_barrier(worker, worker->pending, address, size, kind, pc);
    if (worker->cluster->count > 1)
        check_peer(worker, address, size, kind, pc);
    settle_guess(worker);
    if (kind == 0 && size <= sizeof(uint64_t)) {
        thread->guess = (fa_race_guess){address, pc, (uint32_t)size, thread->stack, self.epoch};
        return;
    }
    race->storing = kind == FA_RACE_WRITE && size <= FA_RACE_STORE_BYTES ? (const void *)address : NULL;
    race->storing_size = size;
    fa_race_touch_by(worker, &self, fa_race_shadow_address(worker, address), size, kind, pc);
    race->storing = NULL;
}

void fa_race_take_turns(void)
{
    fa_emu_worker *worker = running();
    if (worker != NULL)
        fa_race_settle(worker);
    if (worker == NULL || ++fa_race_current(worker)->spins < SPINS)
        return;
    fa_race_current(worker)->spins = 0;
    fa_emu_op op = {.kind = FA_EMU_YIELD, .name = "a load in a loop", .file = "", .mask = ~0u};
    worker->current->thread.api->wait(&op);
    if (++worker->turns % BLOCK_TURNS == 0)
        fa_emu_pause_block(worker);
}

static bool acquires(int order) { return order != __ATOMIC_RELAXED && order != __ATOMIC_RELEASE; }

static bool releases(int order)
{
    return order == __ATOMIC_RELEASE || order == __ATOMIC_ACQ_REL || order == __ATOMIC_SEQ_CST;
}

static void note_reading(const fa_emu_worker *worker, fa_race_place *place)
{
    const uint32_t index = fa_race_index(worker);
    const fa_race_reading reading = {worker->block_number, fa_race_current(worker)->clock[index],
                                     fa_race_of(worker)->time, (uint16_t)index};
    if (place->readings == NULL)
        place->readings = fa_alloc(FA_RACE_READINGS * sizeof *place->readings);
    const uint32_t count = place->reading_count < FA_RACE_READINGS ? place->reading_count : FA_RACE_READINGS;
    for (uint32_t i = 0; i < count; i++)
        if (place->readings[i].block == reading.block && place->readings[i].thread == reading.thread) {
            place->readings[i] = reading;
            return;
        }
    place->readings[place->reading_count++ % FA_RACE_READINGS] = reading;
}

void fa_race_observe(const volatile void *address, int order)
{
    fa_emu_worker *worker = running();
    if (worker == NULL)
        return;
    fa_race_settle(worker);
    fa_race *race = fa_race_of(worker);
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_place *place = place_of(race, fa_race_shadow_address(worker, (uint64_t)(uintptr_t)address));
    note_reading(worker, place);
    if (!thread->block_scope)
        fa_race_known_add(&thread->observed[FA_RACE_DEVICE], place->known[FA_RACE_DEVICE], race->width);
    if (place->block == worker->block_number)
        fa_race_known_add(&thread->observed[FA_RACE_BLOCK], place->known[FA_RACE_BLOCK], race->width);
    for (int scope = 0; acquires(order) && scope < FA_RACE_OBSERVED; scope++)
        fa_race_learn_observed(worker, thread, scope);
}

void fa_race_fence(bool block_scope)
{
    fa_emu_worker *worker = running();
    if (worker == NULL)
        return;
    fa_race_settle(worker);
    fa_race_thread *thread = fa_race_current(worker);
    for (int scope = block_scope ? FA_RACE_BLOCK : FA_RACE_DEVICE; scope < FA_RACE_OBSERVED - block_scope; scope++)
        fa_race_learn_observed(worker, thread, scope);
    fa_race_known *known = fa_race_snapshot(worker, thread);
    for (int scope = block_scope ? FA_RACE_BLOCK : FA_RACE_DEVICE; scope < FA_RACE_SCOPES; scope++) {
        fa_race_forget(&thread->released[scope]);
        thread->released[scope] = fa_race_known_hold(known);
    }
    fa_race_known_drop(known);
    thread->fenced = true;
}

void fa_race_publish(const volatile void *address, int order, bool exchange)
{
    fa_emu_worker *worker = running();
    if (worker == NULL)
        return;
    fa_race *race = fa_race_of(worker);
    fa_race_thread *thread = fa_race_current(worker);
    fa_race_place *place = place_of(race, fa_race_shadow_address(worker, (uint64_t)(uintptr_t)address));
    fa_race_known *known[FA_RACE_SCOPES];
    if (releases(order)) {
        known[FA_RACE_BLOCK] = fa_race_snapshot(worker, thread);
        known[FA_RACE_DEVICE] = fa_race_known_hold(known[FA_RACE_BLOCK]);
    } else {
        for (int scope = 0; scope < FA_RACE_SCOPES; scope++)
            known[scope] = fa_race_known_hold(thread->released[scope]);
    }
    if (thread->block_scope)
        fa_race_forget(&known[FA_RACE_DEVICE]);
    if (!exchange)
        fa_race_forget(&place->known[FA_RACE_DEVICE]);
    if (!exchange || place->block != worker->block_number)
        fa_race_forget(&place->known[FA_RACE_BLOCK]);
    place->block = worker->block_number;
    for (int scope = 0; scope < FA_RACE_SCOPES; scope++) {
        fa_race_known_add(&place->known[scope], known[scope], race->width);
        fa_race_known_drop(known[scope]);
    }
}

void fa_race_scope(bool block_scope)
{
    fa_emu_worker *worker = running();
    if (worker != NULL)
        fa_race_current(worker)->block_scope = block_scope;
}

bool fa_race_scope_is_block(void)
{
    const fa_emu_worker *worker = running();
    return worker != NULL && fa_race_current(worker)->block_scope;
}

bool fa_race_fenced(void)
{
    const fa_emu_worker *worker = running();
    return worker != NULL && fa_race_current(worker)->fenced;
}

void fa_race_enter(const void *pc)
{
    fa_emu_worker *worker = running();
    if (worker == NULL)
        return;
    fa_race *race = fa_race_of(worker);
    fa_race_thread *thread = fa_race_current(worker);
    thread->stack =
        fa_race_stack_push(&race->stacks, thread->stack, (uint32_t)((uint64_t)(uintptr_t)pc - 1 - race->module));
}

void fa_race_leave(void)
{
    fa_emu_worker *worker = running();
    if (worker != NULL)
        fa_race_current(worker)->stack = fa_race_stack_pop(&fa_race_of(worker)->stacks, fa_race_current(worker)->stack);
}

const void *fa_race_last_pc(void)
{
    const fa_emu_worker *worker = running();
    return worker != NULL ? fa_race_current(worker)->pc : NULL;
}
