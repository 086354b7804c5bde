// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "scenario.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "types.h"

#define CHECK_NANOSECONDS 1000000u
#define LENGTH(array) ((int)(sizeof(array) / sizeof(array)[0]))

static const char *const function_names[] = {
#define NUMBER(function, type, value) #function,
#define PAIR(function, type, first, second) #function,
#define TEXT(function, text) #function,
#define TYPED(function, type, first, count) #function,
#define OTHER(function) #function,
#include "functions.inc"
#undef NUMBER
#undef PAIR
#undef TEXT
#undef TYPED
#undef OTHER
};

struct key {
    const char *name;
    enum { KEY_TEXT, KEY_NUMBER, KEY_LIST } kind;
    int index, least, most, text_column;
};

static const struct key keys[] = {
#define TEXT(name) {#name, KEY_TEXT, TEXT_##name, 0, 0, 0},
#define NUMBER(name) {#name, KEY_NUMBER, VALUE_##name, 0, 0, 0},
#define LIST(name, least, most, text_column) {#name, KEY_LIST, LIST_##name, least, most, text_column},
#include "values.inc"
#undef TEXT
#undef NUMBER
#undef LIST
};

static const struct {
    const char *name;
    int64_t value;
} words[] = {
    {"unsupported", UNSUPPORTED},
    {"now", NOW},
    {"any", ANY},
    {"unavailable", -1},
    {"compute", 0},
    {"graphics", 1},
    {"mps", 2},
    {"double", NVML_VALUE_TYPE_DOUBLE},
    {"uint", NVML_VALUE_TYPE_UNSIGNED_INT},
    {"ulong", NVML_VALUE_TYPE_UNSIGNED_LONG},
    {"ulonglong", NVML_VALUE_TYPE_UNSIGNED_LONG_LONG},
    {"longlong", NVML_VALUE_TYPE_SIGNED_LONG_LONG},
    {"int", NVML_VALUE_TYPE_SIGNED_INT},
    {"ushort", NVML_VALUE_TYPE_UNSIGNED_SHORT},
};

struct parser {
    struct scenario *scenario;
    const char *path;
    int line;
    bool failed;
    // Writers list a GPU's keys in one order, so the search starts behind the last one found.
    int next_key;
};

static void fail(struct parser *parser, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "fake NVML: %s:%d: ", parser->path, parser->line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    parser->failed = true;
}

static char *next_token(char **rest) {
    char *token = *rest;
    while (*token == ' ' || *token == '\t') token++;
    if (*token == '\0') return NULL;
    char *end = token;
    while (*end != '\0' && *end != ' ' && *end != '\t') end++;
    if (*end != '\0') *end++ = '\0';
    *rest = end;
    return token;
}

static bool parse_cell(const char *text, struct cell *cell) {
    cell->text = text;
    if (isalpha((unsigned char)*text)) {
        for (int i = 0; i < LENGTH(words); i++) {
            if (strcmp(words[i].name, text) == 0) {
                cell->whole = words[i].value;
                cell->real = (double)cell->whole;
                return true;
            }
        }
    }
    char *end;
    cell->whole = strtoll(text, &end, 0);
    if (*end == '\0' && end != text) {
        cell->real = (double)cell->whole;
        return true;
    }
    cell->real = strtod(text, &end);
    cell->whole = 0;
    return *end == '\0' && end != text;
}

static int64_t parse_number(struct parser *parser, const char *text) {
    struct cell cell = {0};
    if (text == NULL || !parse_cell(text, &cell)) {
        fail(parser, "a number is missing or not one: %s", text ? text : "");
    }
    return cell.whole;
}

static struct row *append_row(struct rows *rows) {
    if (rows->count == rows->capacity) {
        int capacity = rows->capacity ? rows->capacity * 2 : 8;
        struct row *items = realloc(rows->items, (size_t)capacity * sizeof *items);
        if (items == NULL) abort();
        rows->items = items;
        rows->capacity = capacity;
    }
    struct row *row = &rows->items[rows->count++];
    memset(row, 0, sizeof *row);
    return row;
}

static void parse_row(struct parser *parser, struct rows *rows, char *rest, const struct key *key) {
    struct row *row = append_row(rows);
    for (char *token; (token = next_token(&rest)) != NULL; row->columns++) {
        if (row->columns == key->most) {
            fail(parser, "%s has too many columns", key->name);
            return;
        }
        struct cell *cell = &row->cells[row->columns];
        if (!parse_cell(token, cell) && row->columns != key->text_column) {
            fail(parser, "%s is not a number", token);
            return;
        }
    }
    if (row->columns < key->least) fail(parser, "%s has too few columns", key->name);
}

static void parse_state(struct parser *parser, struct gpu *gpu, const char *token) {
    static const char *const names[] = {"ok", "lost", "reset_required", "hidden"};
    for (int i = 0; token != NULL && i < LENGTH(names); i++) {
        if (strcmp(names[i], token) == 0) {
            gpu->state = (enum state)i;
            return;
        }
    }
    fail(parser, "unknown state");
}

static const struct key *find_key(struct parser *parser, const char *name) {
    for (int i = 0; i < LENGTH(keys); i++) {
        int candidate = (parser->next_key + i) % LENGTH(keys);
        if (strcmp(keys[candidate].name, name) == 0) {
            parser->next_key = candidate + (keys[candidate].kind != KEY_LIST);
            return &keys[candidate];
        }
    }
    return NULL;
}

static void parse_gpu(struct parser *parser, char *rest) {
    int64_t number = parse_number(parser, next_token(&rest));
    char *name = next_token(&rest);
    if (parser->failed) return;
    if (number < 0 || number >= parser->scenario->gpu_count || name == NULL) {
        fail(parser, "no such GPU, or no value named");
        return;
    }
    struct gpu *gpu = &parser->scenario->gpus[number];
    if (strcmp(name, "state") == 0) {
        parse_state(parser, gpu, next_token(&rest));
        return;
    }
    const struct key *key = find_key(parser, name);
    if (key == NULL) {
        fail(parser, "unknown value %s", name);
    } else if (key->kind == KEY_TEXT) {
        gpu->texts[key->index] = strcmp(rest, "unsupported") == 0 ? NULL : rest;
    } else if (key->kind == KEY_NUMBER) {
        gpu->values[key->index] = parse_number(parser, next_token(&rest));
    } else {
        parse_row(parser, &gpu->lists[key->index], rest, key);
    }
}

static void apply_rule(struct rule *rule, const char *verb, const struct cell *argument) {
    if (strcmp(verb, "return") == 0) rule->code = (int)argument->whole;
    if (strcmp(verb, "delay") == 0) rule->delay_nanoseconds = (uint64_t)(argument->real * 1e9);
    if (strcmp(verb, "hang") == 0) rule->hang = true;
    if (strcmp(verb, "normal") == 0) *rule = (struct rule){0};
}

static void parse_rule(struct parser *parser, char *rest) {
    const char *scope = next_token(&rest), *name = next_token(&rest), *verb = next_token(&rest);
    const char *argument_text = next_token(&rest);
    struct cell argument = {0};
    if (verb == NULL) {
        fail(parser, "a rule is: SCOPE FUNCTION VERB [ARGUMENT]");
        return;
    }
    bool needs_argument = strcmp(verb, "return") == 0 || strcmp(verb, "delay") == 0;
    bool known = needs_argument || strcmp(verb, "hang") == 0 || strcmp(verb, "normal") == 0;
    if (!known || needs_argument != (argument_text != NULL) ||
        (needs_argument && !parse_cell(argument_text, &argument))) {
        fail(parser, "%s is no verb, or its argument is wrong", verb);
        return;
    }
    int first = 0, last = MAX_GPUS;
    if (strcmp(scope, "*") != 0) {
        int64_t number = parse_number(parser, scope);
        if (parser->failed || number < 0 || number >= MAX_GPUS) {
            fail(parser, "no such GPU: %s", scope);
            return;
        }
        first = last = (int)number;
    }
    bool found = false;
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        if (strcmp(name, "*") != 0 && !function_matches((enum function)function, name)) continue;
        found = true;
        for (int gpu = first; gpu <= last; gpu++) {
            apply_rule(&parser->scenario->rules[gpu][function], verb, &argument);
        }
    }
    if (!found) fail(parser, "unknown function %s", name);
}

static void parse_order(struct parser *parser, char *rest) {
    struct scenario *scenario = parser->scenario;
    scenario->order_count = 0;
    for (char *token; (token = next_token(&rest)) != NULL;) {
        int64_t number = parse_number(parser, token);
        if (number < 0 || number >= scenario->gpu_count || scenario->order_count == MAX_GPUS) {
            fail(parser, "the order names no GPU of this node");
            return;
        }
        scenario->order[scenario->order_count++] = (int)number;
    }
}

static void parse_gpu_count(struct parser *parser, int64_t count) {
    struct scenario *scenario = parser->scenario;
    if (count < 0 || count > MAX_GPUS) {
        fail(parser, "there can be 0 to %d GPUs", MAX_GPUS);
        return;
    }
    scenario->gpu_count = scenario->order_count = (int)count;
    for (int gpu = 0; gpu < count; gpu++) {
        scenario->order[gpu] = gpu;
        for (int value = 0; value < VALUE_COUNT; value++) {
            scenario->gpus[gpu].values[value] = UNSUPPORTED;
        }
    }
}

static void parse_line(struct parser *parser, char *rest) {
    static const struct key event = {"event", KEY_LIST, 0, 4, 6, -1};
    struct scenario *scenario = parser->scenario;
    const char *word = next_token(&rest);
    if (word == NULL || *word == '#') return;
#define IS(name) (strcmp(word, name) == 0)
    if (IS("gpu")) parse_gpu(parser, rest);
    else if (IS("rule")) parse_rule(parser, rest);
    else if (IS("event")) parse_row(parser, &scenario->events, rest, &event);
    else if (IS("order")) parse_order(parser, rest);
    else if (IS("driver_version")) scenario->driver_version = rest;
    else if (IS("nvml_version")) scenario->nvml_version = rest;
    else if (IS("driver_branch")) scenario->driver_branch = rest;
    else if (IS("driver") && strcmp(rest, "present") == 0) scenario->driver_present = true;
    else if (IS("driver") && strcmp(rest, "absent") == 0) scenario->driver_present = false;
    else if (IS("gpus")) parse_gpu_count(parser, parse_number(parser, next_token(&rest)));
    else if (IS("generation")) {
        scenario->generation = (unsigned int)parse_number(parser, next_token(&rest));
    } else if (IS("init_code")) {
        scenario->init_code = (int)parse_number(parser, next_token(&rest));
    } else if (IS("dead_code")) {
        scenario->dead_code = (int)parse_number(parser, next_token(&rest));
    } else if (IS("cuda_version")) {
        scenario->cuda_version = (int)parse_number(parser, next_token(&rest));
    } else {
        fail(parser, "unknown line: %s", word);
    }
#undef IS
}

static int compare_fields(const void *left, const void *right) {
    const struct row *a = left, *b = right;
    return (a->cells[0].whole > b->cells[0].whole) - (a->cells[0].whole < b->cells[0].whole);
}

static void index_fields(struct parser *parser, struct gpu *gpu) {
    struct rows *fields = &gpu->lists[LIST_field];
    for (int id = 0; id < FIELD_IDS; id++) gpu->first_field[id] = -1;
    if (fields->count == 0) return;
    qsort(fields->items, (size_t)fields->count, sizeof *fields->items, compare_fields);
    for (int i = fields->count - 1; i >= 0; i--) {
        int64_t id = fields->items[i].cells[0].whole;
        if (id < 0 || id >= FIELD_IDS) {
            fail(parser, "field %lld is out of range", (long long)id);
            return;
        }
        gpu->first_field[id] = i;
    }
}

static void destroy(struct scenario *scenario) {
    for (int gpu = 0; gpu < scenario->gpu_count; gpu++) {
        for (int list = 0; list < LIST_COUNT; list++) free(scenario->gpus[gpu].lists[list].items);
    }
    free(scenario->events.items);
    free(scenario->source);
    free(scenario);
}

static struct scenario *create(void) {
    struct scenario *scenario = calloc(1, sizeof *scenario);
    if (scenario == NULL) abort();
    scenario->references = 1;
    scenario->init_code = NVML_ERROR_DRIVER_NOT_LOADED;
    scenario->dead_code = NVML_ERROR_UNINITIALIZED;
    scenario->driver_version = scenario->nvml_version = scenario->driver_branch = "";
    return scenario;
}

static struct scenario *parse(const char *path, char *source) {
    struct parser parser = {.scenario = create(), .path = path};
    parser.scenario->source = source;
    while (source != NULL && !parser.failed) {
        char *line = strsep(&source, "\n");
        parser.line++;
        parse_line(&parser, line);
    }
    for (int gpu = 0; gpu < parser.scenario->gpu_count && !parser.failed; gpu++) {
        index_fields(&parser, &parser.scenario->gpus[gpu]);
    }
    parser.scenario->broken = parser.failed;
    return parser.scenario;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct scenario *current;
static struct stat seen;
static char *seen_path, *path_override;
static uint64_t checked_at;

static char *read_file(const char *path, struct stat *status) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return NULL;
    char *source = NULL;
    if (fstat(file, status) == 0 && (source = malloc((size_t)status->st_size + 1)) != NULL) {
        size_t length = 0;
        ssize_t got;
        while (length < (size_t)status->st_size &&
               ((got = read(file, source + length, (size_t)status->st_size - length)) > 0 ||
                (got < 0 && errno == EINTR))) {
            if (got > 0) length += (size_t)got;
        }
        source[length] = '\0';
    }
    close(file);
    return source;
}

static bool is_seen(const char *path, const struct stat *status) {
    return current != NULL && seen_path != NULL && strcmp(path, seen_path) == 0 &&
           status->st_ino == seen.st_ino && status->st_size == seen.st_size &&
           status->st_mtim.tv_sec == seen.st_mtim.tv_sec &&
           status->st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
}

static void reload_if_changed(void) {
    const char *path = path_override ? path_override : getenv("FAKE_NVML_SCENARIO");
    if (path == NULL) path = "FAKE_NVML_SCENARIO is not set";
    struct stat status = {0};
    (void)stat(path, &status);
    if (is_seen(path, &status)) return;

    struct scenario *scenario;
    char *source = read_file(path, &status);
    if (source != NULL) {
        scenario = parse(path, source);
    } else {
        fprintf(stderr, "fake NVML: no scenario: %s: %s\n", path, strerror(errno));
        scenario = create();
        scenario->broken = true;
        status = (struct stat){0};
    }
    seen = status;
    free(seen_path);
    seen_path = strdup(path);
    if (current != NULL && --current->references == 0) destroy(current);
    current = scenario;
}

const struct scenario *scenario_acquire(void) {
    pthread_mutex_lock(&lock);
    uint64_t now = monotonic_nanoseconds();
    if (current == NULL || now - checked_at >= CHECK_NANOSECONDS) {
        checked_at = now;
        reload_if_changed();
    }
    current->references++;
    const struct scenario *scenario = current;
    pthread_mutex_unlock(&lock);
    return scenario;
}

void scenario_release(const struct scenario *scenario) {
    struct scenario *owned = (struct scenario *)scenario;
    pthread_mutex_lock(&lock);
    bool last = --owned->references == 0;
    pthread_mutex_unlock(&lock);
    if (last) destroy(owned);
}

void scenario_set_path(const char *path) {
    pthread_mutex_lock(&lock);
    free(path_override);
    path_override = path ? strdup(path) : NULL;
    checked_at = 0;
    pthread_mutex_unlock(&lock);
}

bool function_matches(enum function function, const char *name) {
    const char *own = function_names[function];
    if (strcmp(own, name) == 0) return true;
    if (strcmp(name, "nvmlInit") == 0 && strcmp(own, "nvmlInitWithFlags") == 0) return true;
    size_t length = strlen(name), own_length = strlen(own);
    if (length == own_length + 3 && strcmp(name + own_length, "_v1") == 0) {
        return strncmp(name, own, own_length) == 0;
    }
    return own_length == length + 3 && strncmp(own, name, length) == 0 && own[length] == '_' &&
           own[length + 1] == 'v' && isdigit((unsigned char)own[length + 2]);
}

uint64_t monotonic_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_nanoseconds(uint64_t duration) {
    struct timespec left = {(time_t)(duration / 1000000000u), (long)(duration % 1000000000u)};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}
