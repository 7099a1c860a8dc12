/* The size of the cache on disk. */
#ifndef FA_CACHE_LIMIT_H
#define FA_CACHE_LIMIT_H

/* Where the entries of `root` take more than FA_CACHE_MB mebibytes (default 2048; 0: no limit), those that were unused
 * for longest go until three quarters are left; none that was used within an hour. Folders of builds that a kill has
 * left go after a day. */
void fa_cache_limit(const char *root);

#endif
