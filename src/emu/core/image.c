#include "emu/core/image.h"

#include <dlfcn.h>
#include <stdio.h>

#include "fa_launch.h"

bool fa_emu_open(const char *path, fa_emu_image *image, char *error, size_t error_size)
{
    *image = (fa_emu_image){.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)};
    if (!image->handle) {
        snprintf(error, error_size, "%s", dlerror());
        return false;
    }
    const bool entry = dlsym(image->handle, "fa_kernel") != NULL;
    *(void **)&image->call = dlsym(image->handle, "fa_emu_call");
    *(void **)&image->slot = dlsym(image->handle, "fa_emu_slot");
    image->hopper = dlsym(image->handle, "fa_emu_hopper") != NULL;
    image->cluster_dims = dlsym(image->handle, "fa_emu_cluster_dims");
    image->bounds = dlsym(image->handle, "fa_emu_launch_bounds");
    image->build = dlsym(image->handle, "fa_emu_build");
    const bool shim = image->call && image->slot && image->build && image->build->abi == FA_EMU_ABI;
    const char *missing = !entry  ? "fa_kernel (extern \"C\" __global__ void)"
                          : !shim ? "the emulator's shim of this version"
                                  : NULL;
    if (missing) {
        snprintf(error, error_size, "the module has no %s", missing);
        fa_emu_close(image);
        return false;
    }
    return true;
}

fa_emu_image fa_emu_entry(const fa_emu_image *image, int32_t entry)
{
    fa_emu_image other = *image;
    char name[32];
    if (entry == 0)
        return other;
    if (entry == FA_STEP_BEFORE || entry == FA_STEP_AFTER)
        snprintf(name, sizeof name, "fa_emu_%s", entry == FA_STEP_BEFORE ? "before" : "after");
    else
        snprintf(name, sizeof name, "fa_emu_call_%d", entry);
    *(void **)&other.call = dlsym(image->handle, name);
    FA_ASSERT(other.call != NULL, "no %s", name);
    other.entry = entry;
    other.cluster_dims = other.bounds = NULL; /* fa_kernel's */
    return other;
}

void fa_emu_close(fa_emu_image *image)
{
    if (image->handle)
        dlclose(image->handle);
    *image = (fa_emu_image){0};
}
