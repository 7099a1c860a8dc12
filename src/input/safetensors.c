#include "input/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/file.h"

/* Bytes of a number; 0: a type that is unknown. */
static size_t width_of(const char *dtype)
{
    static const struct {
        const char *name;
        size_t width;
    } types[] = {{"I32", 4}, {"I64", 8}, {"F16", 2}, {"BF16", 2}, {"F32", 4}, {"F64", 8}, {"F8_E4M3", 1}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(dtype, types[i].name) == 0)
            return types[i].width;
    return 0;
}

/* Where the tensor's bytes are in the file's data; false where header and data disagree. */
static bool find_tensor(const cJSON *header, const char *key, size_t data_size, size_t *begin, fa_safetensor *t)
{
    const cJSON *tensor = cJSON_GetObjectItemCaseSensitive(header, key);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "dtype"));
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets"), *each;
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(tensor, "shape");
    const double from = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 0));
    const double to = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 1));
    double bytes = type != NULL ? (double)width_of(type) : 0;
    if (bytes == 0 || !(from >= 0 && from <= to) || !(to <= (double)data_size) || !cJSON_IsArray(shape) ||
        cJSON_GetArraySize(shape) > 8)
        return false;
    strncpy(t->dtype, type, sizeof t->dtype - 1);
    cJSON_ArrayForEach(each, shape)
    {
        const double size = cJSON_GetNumberValue(each);
        if (!(size >= 0 && size < 9e15 && floor(size) == size))
            return false;
        bytes *= size;
        t->shape[t->rank++] = (int64_t)size;
    }
    *begin = (size_t)from;
    t->bytes = (size_t)(to - from);
    return bytes == to - from;
}

fa_status fa_safetensors_read(const char *path, const char *key, fa_safetensor *tensor, fa_reason *why)
{
    uint64_t header_size = 0;
    size_t size = 0, begin = 0;
    *tensor = (fa_safetensor){.rank = 0};
    FA_TRY(fa_read_file(path, &tensor->file, &size, why));
    if (size >= sizeof header_size)
        memcpy(&header_size, tensor->file, sizeof header_size);
    if (size < sizeof header_size || header_size > size - sizeof header_size) {
        free(tensor->file);
        return fa_refuse(why, FA_USAGE, "%s is no safetensors file: its header is cut off", path);
    }
    const size_t start = sizeof header_size + (size_t)header_size;
    cJSON *header = cJSON_ParseWithLength(tensor->file + sizeof header_size, (size_t)header_size);
    const bool found = find_tensor(header, key, size - start, &begin, tensor);
    cJSON_Delete(header);
    tensor->data = tensor->file + start + begin;
    if (found)
        return FA_PASS;
    free(tensor->file);
    return fa_refuse(why, FA_USAGE, "%s has no whole tensor '%s' of a type that is known", path, key);
}

static fa_status copy_whole(const char *path, const char *key, const fa_safetensor *t, int64_t most, int64_t *values,
                            int64_t *count, fa_reason *why)
{
    const bool wide = strcmp(t->dtype, "I64") == 0;
    if (!wide && strcmp(t->dtype, "I32") != 0)
        return fa_refuse(why, FA_USAGE, "%s has no whole tensor '%s' of int32 or int64", path, key);
    *count = (int64_t)(t->bytes / (wide ? sizeof(int64_t) : sizeof(int32_t)));
    if (*count > most)
        return fa_refuse(why, FA_USAGE, "%s: '%s' has more than %lld numbers", path, key, (long long)most);
    for (int64_t i = 0; i < *count; i++) {
        int32_t narrow;
        if (wide) {
            memcpy(&values[i], t->data + (size_t)i * sizeof values[i], sizeof values[i]);
            continue;
        }
        memcpy(&narrow, t->data + (size_t)i * sizeof narrow, sizeof narrow);
        values[i] = narrow;
    }
    return FA_PASS;
}

fa_status fa_safetensors_whole(const char *path, const char *key, int64_t most, int64_t *values, int64_t *count,
                               fa_reason *why)
{
    fa_safetensor tensor;
    FA_TRY(fa_safetensors_read(path, key, &tensor, why));
    const fa_status status = copy_whole(path, key, &tensor, most, values, count, why);
    free(tensor.file);
    return status;
}
