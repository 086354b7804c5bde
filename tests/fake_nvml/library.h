// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

#ifndef VEO_FAKE_NVML_LIBRARY_H
#define VEO_FAKE_NVML_LIBRARY_H

#include "scenario.h"
#include "types.h"

#define EXPORT __attribute__((visibility("default")))
#define STEP_NANOSECONDS 5000000u
#define NO_MIG (-1)

struct fake_device {
    uint64_t magic;
    unsigned int generation;
    int gpu, mig;
};

// One call of NVML's that got past the scenario's rules; holds the scenario until finish().
struct call {
    const struct scenario *scenario;
    const struct gpu *gpu;
    int number, mig;
};

nvmlReturn_t begin_library(struct call *call, enum function function, bool valid);
// Calls that look a GPU up obey that GPU's rules, and the library's when there is no such GPU.
nvmlReturn_t begin_lookup(struct call *call, enum function function, int gpu, bool valid);
nvmlReturn_t begin_device(struct call *call, enum function function, nvmlDevice_t device, bool valid);
nvmlReturn_t finish(struct call *call, nvmlReturn_t code);

nvmlDevice_t device_handle(const struct call *call, int gpu, int mig);
void count_call(enum function function);
void uncount_call(enum function function);
nvmlReturn_t copy_text(const char *text, char *buffer, size_t length);
uint64_t wall_microseconds(void);

#define BEGIN_LIBRARY(function, valid)                                        \
    struct call call;                                                         \
    nvmlReturn_t code = begin_library(&call, FN_##function, valid);           \
    if (code != NVML_SUCCESS) return code
#define BEGIN_DEVICE(function, valid)                                         \
    struct call call;                                                         \
    nvmlReturn_t code = begin_device(&call, FN_##function, device, valid);    \
    if (code != NVML_SUCCESS) return code

#define VALUE(name) (call.gpu->values[VALUE_##name])
#define ROWS(name) (&call.gpu->lists[LIST_##name])
#define HAS(name) (VALUE(name) != UNSUPPORTED)

#endif
