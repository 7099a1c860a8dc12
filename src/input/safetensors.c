#include "input/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/file.h"

/* The bytes of a tensor in the file's data, and how long a number is; false where header and file disagree. */
static bool find_tensor(const cJSON *header, const char *key, size_t data_size, size_t *begin, size_t *end,
                        size_t *width)
{
    const cJSON *tensor = cJSON_GetObjectItemCaseSensitive(header, key);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tensor, "dtype"));
    const cJSON *offsets = cJSON_GetObjectItemCaseSensitive(tensor, "data_offsets");
    const double from = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 0));
    const double to = cJSON_GetNumberValue(cJSON_GetArrayItem(offsets, 1));
    if (type == NULL || (strcmp(type, "I32") != 0 && strcmp(type, "I64") != 0) || !(from >= 0 && from <= to) ||
        !(to <= (double)data_size))
        return false;
    *begin = (size_t)from;
    *end = (size_t)to;
    *width = strcmp(type, "I32") == 0 ? sizeof(int32_t) : sizeof(int64_t);
    return (*end - *begin) % *width == 0;
}

static fa_status read_tensor(const char *path, const char *data, size_t size, const char *key, int64_t most,
                             int64_t *values, int64_t *count, fa_reason *why)
{
    uint64_t header_size = 0;
    size_t begin = 0, end = 0, width = 0;
    if (size >= sizeof header_size)
        memcpy(&header_size, data, sizeof header_size);
    if (size < sizeof header_size || header_size > size - sizeof header_size)
        return fa_refuse(why, FA_USAGE, "%s is no safetensors file: its header is cut off", path);
    const size_t start = sizeof header_size + (size_t)header_size;
    cJSON *header = cJSON_ParseWithLength(data + sizeof header_size, (size_t)header_size);
    const bool found = find_tensor(header, key, size - start, &begin, &end, &width);
    cJSON_Delete(header);
    if (!found)
        return fa_refuse(why, FA_USAGE, "%s has no whole tensor '%s' of int32 or int64", path, key);
    *count = (int64_t)((end - begin) / width);
    if (*count > most)
        return fa_refuse(why, FA_USAGE, "%s: '%s' has more than %lld numbers", path, key, (long long)most);
    for (int64_t i = 0; i < *count; i++) {
        int32_t narrow;
        memcpy(&narrow, data + start + begin + (size_t)i * width, sizeof narrow);
        values[i] = narrow;
        if (width == sizeof(int64_t))
            memcpy(&values[i], data + start + begin + (size_t)i * width, sizeof values[i]);
    }
    return FA_PASS;
}

fa_status fa_safetensors_whole(const char *path, const char *key, int64_t most, int64_t *values, int64_t *count,
                               fa_reason *why)
{
    char *data;
    size_t size;
    FA_TRY(fa_read_file(path, &data, &size, why));
    const fa_status status = read_tensor(path, data, size, key, most, values, count, why);
    free(data);
    return status;
}
