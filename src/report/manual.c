#include "report/manual.h"

#include <string.h>

#include "input/options_help.h"
#include "report/fields.h"

static void put_option(void *to, const fa_option_facts *facts)
{
    cJSON *option = cJSON_CreateObject();
    cJSON_AddStringToObject(option, "group", facts->group);
    cJSON_AddStringToObject(option, "name", facts->name);
    cJSON_AddStringToObject(option, "value", facts->value);
    cJSON_AddItemToObject(option, "min", facts->max > facts->min ? cJSON_CreateNumber(facts->min) : cJSON_CreateNull());
    cJSON_AddItemToObject(option, "max", facts->max > facts->min ? cJSON_CreateNumber(facts->max) : cJSON_CreateNull());
    const size_t length = strlen(facts->fallback);
    char *fallback = length > 3 ? fa_format("%.*s", (int)length - 3, facts->fallback + 2) : NULL;
    cJSON_AddItemToObject(option, "default", fallback != NULL ? cJSON_CreateString(fallback) : cJSON_CreateNull());
    cJSON_AddStringToObject(option, "help", facts->help);
    free(fallback);
    cJSON_AddItemToArray(to, option);
}

char *fa_report_manual(const fa_options *options)
{
    if (options->json == NULL)
        return fa_options_help();
    cJSON *all = cJSON_CreateArray();
    fa_options_each(put_option, all);
    return print_array(all);
}
