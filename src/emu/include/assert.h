/* assert stops the block like a trap does. No guard: NDEBUG counts as it is where the file is read, as in C. */
#undef assert
#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition) \
    ((condition) ? (void)0 : fa_emu_now()->api->fail("trap", "assert: " #condition, __FILE__, __LINE__))
#endif
