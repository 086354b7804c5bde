// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

#ifndef FAKE_NVML_SCENARIO_H
#define FAKE_NVML_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAX_GPUS 16
#define MAX_MIG_DEVICES 8
#define MAX_COLUMNS 16
#define FIELD_IDS 1024
#define UNSUPPORTED INT64_MIN
#define NOW (INT64_MIN + 1)
#define ANY (INT64_MIN + 2)

enum function {
#define NUMBER(function, type, value) FN_##function,
#define PAIR(function, type, first, second) FN_##function,
#define TEXT(function, text) FN_##function,
#define TYPED(function, type, first, count) FN_##function,
#define OTHER(function) FN_##function,
#include "functions.inc"
#undef NUMBER
#undef PAIR
#undef TEXT
#undef TYPED
#undef OTHER
    FUNCTION_COUNT
};

enum text {
#define TEXT(name) TEXT_##name,
#define NUMBER(name)
#define LIST(name, least, most, text_column)
#include "values.inc"
#undef TEXT
#undef NUMBER
    TEXT_COUNT
};

enum value {
#define TEXT(name)
#define NUMBER(name) VALUE_##name,
#include "values.inc"
#undef NUMBER
#undef LIST
    VALUE_COUNT
};

enum list {
#define NUMBER(name)
#define LIST(name, least, most, text_column) LIST_##name,
#include "values.inc"
#undef TEXT
#undef NUMBER
#undef LIST
    LIST_COUNT
};

enum state { STATE_OK, STATE_LOST, STATE_RESET_REQUIRED, STATE_HIDDEN };

struct cell {
    const char *text;
    int64_t whole;
    double real;
};

struct row {
    int columns;
    struct cell cells[MAX_COLUMNS];
};

struct rows {
    int count, capacity;
    struct row *items;
};

struct gpu {
    enum state state;
    const char *texts[TEXT_COUNT];
    int64_t values[VALUE_COUNT];
    struct rows lists[LIST_COUNT];
    int first_field[FIELD_IDS];
};

struct rule {
    int code;
    bool hang;
    uint64_t delay_nanoseconds;
};

// The row of rules for calls that concern no GPU.
#define NO_GPU MAX_GPUS

struct scenario {
    int references;
    bool broken, driver_present;
    unsigned int generation;
    int init_code, dead_code, cuda_version;
    const char *driver_version, *nvml_version, *driver_branch;
    int gpu_count, order_count;
    int order[MAX_GPUS];
    struct gpu gpus[MAX_GPUS];
    struct rule rules[MAX_GPUS + 1][FUNCTION_COUNT];
    struct rows events;
    char *source;
};

// The scenario as the file now has it; valid until released, even if the file changes meanwhile.
const struct scenario *scenario_acquire(void);
void scenario_release(const struct scenario *scenario);

// Overrides FAKE_NVML_SCENARIO in this process; NULL takes the override away.
void scenario_set_path(const char *path);

// Whether a name as people write it means this function: `nvmlInit` means all versions of it,
// `nvmlDeviceGetMemoryInfo_v1` the unversioned symbol alone.
bool function_matches(enum function function, const char *name);

uint64_t monotonic_nanoseconds(void);
void sleep_nanoseconds(uint64_t duration);

#endif
