#include "compile/host_code.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

/* Words and prefixes of words that only host code has. */
static const char host_words[] =
    "main cout cerr clog endl ifstream ofstream fopen fclose fread fwrite stderr stdout getenv system rand srand argv "
    "argc atoi atof strtol random_device mt19937 chrono throw try exit ostream stringstream dlopen abort perror errno "
    "strerror fflush setenv getpid gettid syscall thread_local localtime strftime gettimeofday clock_gettime usleep "
    "FILE strcmp strncmp strncpy strdup strtok sprintf snprintf sscanf fscanf fgets qsort bsearch calloc realloc mmap "
    "munmap lseek opendir readdir isprint isspace isalpha";
static const char host_std[] =
    "vector string map unordered_map set list deque queue thread mutex fstream unique_ptr shared_ptr make_unique "
    "make_shared runtime_error exception function sort to_string string_view invalid_argument logic_error "
    "out_of_range ostringstream istringstream setprecision fixed setw iota accumulate cin getline";
static const char host_spaces[] = "torch at c10 pybind11 py thrust cv fmt nlohmann";
static const char *const host_prefixes[] = {"cublas", "cudnn", "PYBIND11_", "TORCH_",   "nvtx",
                                            "MPI_",   "nccl",  "nvml",      "cusparse", "cusolver"};
static const char device_words[] = "__device__ __global__ __constant__ __shared__ __managed__";

/* One of the words of a list, with blanks between them. */
static bool is_one_of(const fa_cxx_token *token, const char *list)
{
    for (; *list != '\0'; list += strcspn(list, " "), list += *list == ' ')
        if (strncmp(list, token->at, token->length) == 0 && strchr(" ", list[token->length]) != NULL)
            return true;
    return false;
}

/* Names known to belong to the host or to the device. */
typedef struct names {
    char (*at)[64];
    size_t count;
} names;

static bool holds(const names *list, const fa_cxx_token *token)
{
    for (size_t i = 0; i < list->count; i++)
        if (fa_cxx_is(token, list->at[i]))
            return true;
    return false;
}

static void add_name(names *list, const char *name, size_t length)
{
    if (length == 0 || length >= sizeof list->at[0])
        return;
    list->at = fa_resize(list->at, (list->count + 1) * sizeof *list->at);
    snprintf(list->at[list->count++], sizeof list->at[0], "%.*s", (int)length, name);
}

static bool mark_is(const fa_cxx_tokens *t, size_t i, char mark)
{
    return i < t->count && t->at[i].kind == FA_CXX_MARK && *t->at[i].at == mark;
}

/* The word at i says "host": cudaMalloc, std::vector, torch::Tensor, k<<<...>>>. */
static bool is_host_token(const fa_cxx_tokens *t, size_t i)
{
    const fa_cxx_token *token = &t->at[i];
    if (mark_is(t, i, '<')) /* << < too, as formatters write it; not operator<< <> */
        return mark_is(t, i + 1, '<') && mark_is(t, i + 2, '<') && token[1].at == token->at + 1 &&
               !(i > 0 && fa_cxx_is(&token[-1], "operator"));
    if (token->kind != FA_CXX_WORD)
        return false;
    if (token->length > 4 && strncmp(token->at, "cuda", 4) == 0 && isupper((unsigned char)token->at[4]))
        return true;
    for (size_t p = 0; p < sizeof host_prefixes / sizeof host_prefixes[0]; p++)
        if (strncmp(token->at, host_prefixes[p], strlen(host_prefixes[p])) == 0)
            return true;
    const bool qualifies = mark_is(t, i + 1, ':') && mark_is(t, i + 2, ':');
    if (is_one_of(token, host_spaces))
        return qualifies;
    if (fa_cxx_is(token, "std") && qualifies && i + 3 < t->count)
        return is_one_of(&t->at[i + 3], host_std);
    return is_one_of(token, host_words);
}

/* After template <...>: the first word of the declaration proper. */
static size_t skip_template(const fa_cxx_tokens *t, size_t i, size_t end)
{
    while (i < end && fa_cxx_is(&t->at[i], "template") && mark_is(t, i + 1, '<')) {
        int depth = 0;
        for (i++; i < end; i++) {
            if (mark_is(t, i, '('))
                i = fa_cxx_close(t, i);
            depth += mark_is(t, i, '<') ? 1 : mark_is(t, i, '>') ? -1 : 0;
            if (depth == 0)
                break;
        }
        i++;
    }
    return i;
}

static bool opens_scope(const fa_cxx_tokens *t, size_t first, size_t brace)
{
    if (fa_cxx_has(t, first, brace, "namespace"))
        return true;
    return brace == first + 2 && fa_cxx_is(&t->at[first], "extern") && t->at[first + 1].kind == FA_CXX_LITERAL;
}

static bool begins_type(const fa_cxx_tokens *t, size_t first, size_t end)
{
    static const char words[] = "struct class union enum typedef";
    const size_t i = skip_template(t, first, end);
    return i < end && (is_one_of(&t->at[i], words) || (mark_is(t, i + 2, '=') && fa_cxx_is(&t->at[i], "using")));
}

/* A parameter list and no initialiser before the brace. */
static bool begins_function(const fa_cxx_tokens *t, size_t first, size_t brace)
{
    bool parameters = false;
    if (begins_type(t, first, brace) && !mark_is(t, brace - 1, ')'))
        return false;
    for (size_t i = skip_template(t, first, brace); i < brace; i++) {
        if (mark_is(t, i, '=') && !mark_is(t, i - 1, '=') && !mark_is(t, i + 1, '=') &&
            !fa_cxx_is(&t->at[i - 1], "operator"))
            return false;
        if (mark_is(t, i, '(')) {
            parameters = true;
            i = fa_cxx_close(t, i);
        }
    }
    return parameters;
}

/* Keywords: not names of the file's own. */
static bool is_name(const fa_cxx_token *token)
{
    static const char words[] =
        "operator decltype const volatile void bool char short int long float double struct class union enum signed "
        "unsigned sizeof noexcept auto typename";
    return token->kind == FA_CXX_WORD && !is_one_of(token, words);
}

/* What is declared: the word before the parameters; of a type, the word after its keyword; else the last word. */
static void find_name(const fa_cxx_tokens *t, fa_declaration *d)
{
    static const char qualifiers[] = "__launch_bounds__ __cluster_dims__ __maxnreg__ __attribute__ __align__ alignas";
    const fa_cxx_token *name = NULL;
    const size_t from = skip_template(t, d->first, d->last);
    d->type = begins_type(t, d->first, d->last) && d->body == 0;
    for (size_t i = from; i < d->last; i++) {
        if (mark_is(t, i, '(') && i > from && t->at[i - 1].kind == FA_CXX_WORD &&
            !is_one_of(&t->at[i - 1], qualifiers)) {
            name = &t->at[i - 1];
            break;
        }
        if (mark_is(t, i, '=') || mark_is(t, i, '{') || (d->type && name != NULL && mark_is(t, i, ':')))
            break;
        if (d->type && name != NULL && mark_is(t, i, '<'))
            return; /* a specialisation: the name is the template's */
        if (mark_is(t, i, '('))
            i = fa_cxx_close(t, i);
        else if (t->at[i].kind == FA_CXX_WORD)
            name = &t->at[i];
    }
    if (d->type && fa_cxx_is(&t->at[from], "typedef"))
        name = t->at[d->last - 1].kind == FA_CXX_WORD ? &t->at[d->last - 1] : NULL; /* behind the members */
    if (name != NULL && is_name(name))
        snprintf(d->name, sizeof d->name, "%.*s", (int)(name->length < sizeof d->name ? name->length : 0), name->at);
}

static void add_declaration(fa_cuda_file *file, size_t first, size_t last, size_t body)
{
    file->declarations = fa_resize(file->declarations, (file->count + 1) * sizeof *file->declarations);
    fa_declaration *d = &file->declarations[file->count++];
    *d = (fa_declaration){.first = first, .last = last, .body = body};
    find_name(&file->tokens, d);
}

bool fa_host_code_split(fa_cuda_file *file)
{
    const fa_cxx_tokens *t = &file->tokens;
    file->tokens = fa_cxx_read(file->text);
    size_t first = t->count; /* no declaration started */
    for (size_t i = 0; i < t->count; i++) {
        if (t->at[i].kind == FA_CXX_DIRECTIVE || (first == t->count && (mark_is(t, i, '}') || mark_is(t, i, ';'))))
            continue;
        if (first == t->count)
            first = i;
        const bool brace = mark_is(t, i, '{');
        if (brace && opens_scope(t, first, i)) {
            first = t->count;
            continue;
        }
        size_t body = 0;
        if (brace || mark_is(t, i, '(') || mark_is(t, i, '[')) {
            body = brace && begins_function(t, first, i) ? i : 0;
            i = fa_cxx_close(t, i);
            if (i == t->count)
                return false;
        }
        if (body == 0 && !mark_is(t, i, ';'))
            continue;
        add_declaration(file, first, i, body);
        first = t->count;
    }
    return true; /* a rest without a semicolon is a macro */
}

static bool any_device_word(const fa_cxx_tokens *t, size_t first, size_t end, const names *device)
{
    for (size_t i = first; i < end; i++)
        if (t->at[i].kind == FA_CXX_WORD && (is_one_of(&t->at[i], device_words) || holds(device, &t->at[i])))
            return true;
    return false;
}

/* A struct of arguments belongs to the device even if it has a stream member. */
static bool is_handle(const fa_cxx_token *token)
{
    static const char handles[] = "cudaStream_t cudaEvent_t cudaError_t";
    return is_one_of(token, handles);
}

/* type: the words declare a type. */
static bool any_host_word(const fa_cxx_tokens *t, size_t first, size_t end, const names *host, bool type)
{
    for (size_t i = first; i < end; i++)
        if ((is_host_token(t, i) && !(type && is_handle(&t->at[i]))) ||
            (t->at[i].kind == FA_CXX_WORD && holds(host, &t->at[i])))
            return true;
    return false;
}

/* Macros whose text is for the device (__device__ inside) or for the host (cudaMalloc inside). */
static void sort_macros(const fa_cuda_file *file, names *host, names *device)
{
    for (size_t i = 0; i < file->tokens.count; i++) {
        const fa_cxx_token *line = &file->tokens.at[i];
        int at = 0, end = 0;
        char name[64];
        if (line->kind != FA_CXX_DIRECTIVE || sscanf(line->at, "# define %n%63[A-Za-z0-9_]%n", &at, name, &end) != 1)
            continue;
        char *text = fa_format("%.*s", (int)(line->length - (size_t)end), line->at + end);
        fa_cxx_tokens words = fa_cxx_read(text);
        if (any_device_word(&words, 0, words.count, device))
            add_name(device, name, strlen(name));
        else if (any_host_word(&words, 0, words.count, host, false))
            add_name(host, name, strlen(name));
        free(words.at);
        free(text);
    }
}

/* One pass over a file: finds host declarations that earlier passes missed. */
static bool mark(fa_cuda_file *file, names *host)
{
    bool more = false;
    for (size_t i = 0; i < file->count; i++) {
        fa_declaration *d = &file->declarations[i];
        const fa_cxx_tokens *t = &file->tokens;
        const bool asked = fa_cxx_has(t, d->first, d->body, "__host__"); /* before the body of a function */
        if (d->host || d->device || !(asked || any_host_word(t, d->first, d->last, host, d->type)))
            continue;
        d->host = more = true;
        if (d->body > 0 || d->type)
            add_name(host, d->name, strlen(d->name));
    }
    return more;
}

bool fa_host_code_find(fa_cuda_file *files, size_t count)
{
    names host = {.at = NULL}, device = {.at = NULL};
    bool good = true;
    for (size_t i = 0; i < count && good; i++)
        good = fa_host_code_split(&files[i]);
    for (int round = 0; round < 2; round++) /* a macro may use one that comes later */
        for (size_t i = 0; i < count && good; i++)
            sort_macros(&files[i], &host, &device);
    for (size_t i = 0; i < count && good; i++)
        for (size_t k = 0; k < files[i].count; k++) {
            fa_declaration *d = &files[i].declarations[k];
            d->device = any_device_word(&files[i].tokens, d->first, d->body > 0 ? d->body : d->last, &device);
        }
    for (bool more = good; more;) {
        more = false;
        for (size_t i = 0; i < count; i++)
            more = mark(&files[i], &host) || more;
    }
    free(host.at);
    free(device.at);
    return good;
}

/* [](auto x): NVRTC takes the call operator of a generic lambda for a host function. */
static bool has_generic_lambda(const fa_cxx_tokens *t)
{
    for (size_t i = 0; i + 1 < t->count; i++) {
        if (!mark_is(t, i, ']') || !mark_is(t, i + 1, '('))
            continue;
        if (fa_cxx_has(t, i + 2, fa_cxx_close(t, i + 1), "auto"))
            return true;
    }
    return false;
}

bool fa_host_code_plain_functions(const fa_cuda_file *file)
{
    const fa_cxx_tokens *t = &file->tokens;
    if (has_generic_lambda(t))
        return true;
    for (size_t i = 0; i < file->count; i++) {
        const fa_declaration *d = &file->declarations[i];
        if (d->device || d->host)
            continue;
        if (d->body > 0)
            return true;
        for (size_t k = d->first; d->type && k + 1 < d->last; k++)
            if (mark_is(t, k, ')') && (mark_is(t, k + 1, '{') || mark_is(t, k + 1, ':') ||
                                       fa_cxx_is(&t->at[k + 1], "const") || fa_cxx_is(&t->at[k + 1], "noexcept")))
                return true;
    }
    return false;
}

bool fa_host_code_header(const char *name)
{
    static const char headers[] = /* a blank before and behind each */
        " iostream fstream sstream iomanip ostream istream vector string chrono random thread mutex map "
        "unordered_map set memory stdexcept exception list deque queue numeric ctime time.h sys/time.h "
        "unistd.h getopt.h filesystem bits/stdc++.h regex future omp.h string_view cublas_v2.h cublasLt.h "
        "cublas.h curand.h cudnn.h Python.h dlfcn.h nvToolsExt.h cuda_profiler_api.h helper_cuda.h "
        "helper_functions.h atomic any charconv cctype cerrno cfenv cinttypes clocale compare "
        "condition_variable csignal cstdarg cwchar execution format ios iosfwd locale memory_resource ranges "
        "ratio shared_mutex source_location stack stop_token streambuf system_error typeindex typeinfo "
        "unordered_set valarray version ctype.h errno.h fcntl.h inttypes.h locale.h pthread.h signal.h "
        "stdarg.h strings.h dirent.h glob.h libgen.h netdb.h termios.h poll.h sched.h semaphore.h execinfo.h "
        "cxxabi.h malloc.h alloca.h wchar.h mpi.h nccl.h nvml.h cusparse.h cusolverDn.h cublasXt.h windows.h ";
    static const char *const folders[] = {"torch/", "ATen/",    "c10/",     "pybind11/", "thrust/",   "nvtx3/", "sys/",
                                          "arpa/",  "netinet/", "opencv2/", "fmt/",      "nlohmann/", "gtest/"};
    char *word = fa_format(" %s ", name);
    const bool is_header = strstr(headers, word) != NULL;
    free(word);
    if (is_header)
        return true;
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (strncmp(name, folders[i], strlen(folders[i])) == 0)
            return true;
    return false;
}

void fa_host_code_free(fa_cuda_file *file)
{
    free(file->tokens.at);
    free(file->declarations);
    *file = (fa_cuda_file){.text = NULL};
}
