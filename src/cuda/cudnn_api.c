#include "cuda/cudnn_api.h"

#include "cuda/lib_open.h"

#include <stdio.h>
#include <string.h>

fa_status fa_cudnn_api_open(fa_cudnn_api *api, fa_reason *why)
{
    memset(api, 0, sizeof *api);
    static const char *const names[] = {"libcudnn.so.9", NULL};
    const fa_library_symbol symbols[] = {
        {"cudnnGetVersion", &api->get_version},
        {"cudnnGetErrorString", &api->error_string},
        {"cudnnGetLastErrorString", &api->last_error_string},
        {"cudnnCreate", &api->create},
        {"cudnnDestroy", &api->destroy},
        {"cudnnSetStream", &api->set_stream},
        {"cudnnBackendCreateDescriptor", &api->create_descriptor},
        {"cudnnBackendDestroyDescriptor", &api->destroy_descriptor},
        {"cudnnBackendFinalize", &api->finalize},
        {"cudnnBackendSetAttribute", &api->set_attribute},
        {"cudnnBackendGetAttribute", &api->get_attribute},
        {"cudnnBackendExecute", &api->execute},
    };
    FA_TRY(fa_library_open_all("cuDNN", names, symbols, sizeof symbols / sizeof *symbols, &api->library, why));
    api->version = api->get_version();
    snprintf(api->name, sizeof api->name, "cuDNN %zu.%zu.%zu", api->version / 10000, api->version / 100 % 100,
             api->version % 100);
    return FA_PASS;
}

fa_status fa_cudnn_check(const fa_cudnn_api *api, int code, fa_status status, const char *call, fa_reason *why)
{
    if (code == FA_CUDNN_SUCCESS)
        return FA_PASS;
    char words[1024] = ""; /* several lines, one per layer of the library */
    api->last_error_string(words, sizeof words);
    size_t size = strlen(words);
    while (size > 0 && words[size - 1] == '\n')
        words[--size] = '\0';
    for (char *end = words; (end = strchr(end, '\n')) != NULL;)
        *end = ' ';
    return fa_refuse(why, status, "%s: %s: %s: %s", api->name, call, api->error_string(code), words);
}
