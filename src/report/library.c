#include "report/library.h"

#include "report/fields.h"

void fa_report_library(cJSON *record, const fa_candidate_record *candidate)
{
    const fa_library_facts *facts = &candidate->library;
    const bool file = facts->sha256.hex[0] != '\0'; /* else cuBLAS or cuDNN, which allocate their own workspace */
    cJSON *library = object_if(file || facts->name[0] != '\0', record, "library");
    if (library == NULL)
        return;
    put_text(library, "name", facts->name);
    put_text(library, "version", facts->version);
    put_text(library, "file", candidate->spec.source);
    put_text(library, "sha256", facts->sha256.hex);
    cJSON_AddItemToObject(library, "workspace_bytes",
                          file ? cJSON_CreateNumber((double)facts->workspace_bytes) : cJSON_CreateNull());
    cJSON_AddBoolToObject(library, "nondeterministic", facts->nondeterministic);
}
