// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

// The driver's buffers: samples, field values, process utilization, events and GPM.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "library.h"

static uint64_t timestamp(const struct cell *cell, uint64_t now) {
    return cell->whole == NOW ? now : (uint64_t)cell->whole;
}

static nvmlValue_t value_of(int64_t type, const struct cell *cell) {
    nvmlValue_t value = {.ullVal = 0};
    if (type == NVML_VALUE_TYPE_DOUBLE) value.dVal = cell->real;
    else value.sllVal = cell->whole;
    return value;
}

struct samples {
    uint64_t last_seen;
    unsigned int space, count, type;
    nvmlSample_t *items;
};

static void add_sample(struct samples *samples, uint64_t time, int64_t type,
                       const struct cell *cell) {
    if (time <= samples->last_seen) return;
    if (samples->items != NULL && samples->count < samples->space) {
        samples->items[samples->count] = (nvmlSample_t){time, value_of(type, cell)};
    }
    samples->type = (unsigned int)type;
    samples->count++;
}

// A series has rows at the multiples of its period, so the buffer moves on by itself.
static void add_series(struct samples *samples, const struct row *row, uint64_t now) {
    uint64_t period = (uint64_t)row->cells[2].whole, rows = (uint64_t)row->cells[3].whole;
    unsigned int values = (unsigned int)row->columns - 4;
    if (period == 0) return;
    uint64_t newest = now / period;
    for (uint64_t tick = newest >= rows ? newest - rows + 1 : 0; tick <= newest; tick++) {
        add_sample(samples, tick * period, row->cells[1].whole, &row->cells[4 + tick % values]);
    }
}

EXPORT nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, unsigned int type,
                                         unsigned long long last_seen, unsigned int *value_type,
                                         unsigned int *count, nvmlSample_t *items) {
    BEGIN_DEVICE(nvmlDeviceGetSamples, value_type != NULL && count != NULL && type < 10);
    struct samples samples = {.last_seen = last_seen, .space = *count, .items = items};
    if (VALUE(ignore_last_seen) == 1) samples.last_seen = 0;
    uint64_t now = wall_microseconds();
    bool supported = false;
    for (int i = 0; i < ROWS(sample)->count; i++) {
        const struct row *row = &ROWS(sample)->items[i];
        if (row->cells[0].whole != type) continue;
        supported = true;
        add_sample(&samples, timestamp(&row->cells[2], now), row->cells[1].whole, &row->cells[3]);
    }
    for (int i = 0; i < ROWS(samples)->count; i++) {
        const struct row *row = &ROWS(samples)->items[i];
        if (row->cells[0].whole != type) continue;
        supported = true;
        add_series(&samples, row, now);
    }
    if (!supported) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    if (samples.count == 0) return finish(&call, NVML_ERROR_NOT_FOUND);
    *value_type = samples.type;
    *count = samples.count;
    bool fits = items == NULL || samples.count <= samples.space;
    return finish(&call, fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE);
}

static const struct row *find_field(const struct gpu *gpu, const nvmlFieldValue_t *field) {
    if (field->fieldId >= FIELD_IDS || gpu->first_field[field->fieldId] < 0) return NULL;
    const struct rows *rows = &gpu->lists[LIST_field];
    const struct row *for_any_scope = NULL;
    for (int i = gpu->first_field[field->fieldId]; i < rows->count; i++) {
        const struct cell *cells = rows->items[i].cells;
        if (cells[0].whole != (int64_t)field->fieldId) break;
        if (cells[1].whole == (int64_t)field->scopeId) return &rows->items[i];
        if (cells[1].whole == ANY) for_any_scope = &rows->items[i];
    }
    return for_any_scope;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                             nvmlFieldValue_t *fields) {
    BEGIN_DEVICE(nvmlDeviceGetFieldValues, fields != NULL && count > 0);
    long long now = (long long)wall_microseconds();
    for (int i = 0; i < count; i++) {
        const struct row *row = find_field(call.gpu, &fields[i]);
        fields[i].timestamp = now;
        fields[i].latencyUsec = 0;
        fields[i].value = (nvmlValue_t){.ullVal = 0};
        fields[i].nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        if (row == NULL) continue;
        fields[i].valueType = (unsigned int)row->cells[2].whole;
        fields[i].nvmlReturn = row->columns > 4 ? (nvmlReturn_t)row->cells[4].whole : NVML_SUCCESS;
        fields[i].value = value_of(row->cells[2].whole, &row->cells[3]);
    }
    return finish(&call, NVML_SUCCESS);
}

// Calls `fill` for each row newer than last_seen while there is space; gives how many there are.
static unsigned int process_rows(const struct call *call, uint64_t last_seen, unsigned int space,
                                 nvmlProcessUtilizationInfo_v1_t *out) {
    const struct rows *rows = &call->gpu->lists[LIST_process_utilization];
    uint64_t now = wall_microseconds();
    unsigned int count = 0;
    if (call->gpu->values[VALUE_ignore_last_seen] == 1) last_seen = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        uint64_t time = timestamp(&row->cells[1], now);
        if (time <= last_seen && call->gpu->values[VALUE_ignore_last_seen] != 1) continue;
        if (out != NULL && count < space) {
            unsigned int percents[6] = {0};
            for (int j = 2; j < row->columns; j++) {
                percents[j - 2] = (unsigned int)row->cells[j].whole;
            }
            out[count] = (nvmlProcessUtilizationInfo_v1_t){
                time, (unsigned int)row->cells[0].whole, percents[0], percents[1],
                percents[2], percents[3], percents[4], percents[5],
            };
        }
        count++;
    }
    return count;
}

static nvmlReturn_t size_code(unsigned int found, unsigned int space, const void *items) {
    if (found == 0) return NVML_ERROR_NOT_FOUND;
    return items == NULL || space < found ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                    nvmlProcessUtilizationSample_t *samples,
                                                    unsigned int *count,
                                                    unsigned long long last_seen) {
    BEGIN_DEVICE(nvmlDeviceGetProcessUtilization, count != NULL);
    unsigned int space = *count, found = process_rows(&call, last_seen, 0, NULL);
    code = size_code(found, space, samples);
    *count = found;
    if (code != NVML_SUCCESS) return finish(&call, code);
    nvmlProcessUtilizationInfo_v1_t *rows = calloc(found, sizeof *rows);
    if (rows == NULL) return finish(&call, NVML_ERROR_MEMORY);
    *count = process_rows(&call, last_seen, found, rows);
    for (unsigned int i = 0; i < *count; i++) {
        samples[i] = (nvmlProcessUtilizationSample_t){
            .pid = rows[i].pid, .timeStamp = rows[i].timeStamp, .smUtil = rows[i].smUtil,
            .memUtil = rows[i].memUtil, .encUtil = rows[i].encUtil, .decUtil = rows[i].decUtil,
        };
    }
    free(rows);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device,
                                                          nvmlProcessesUtilizationInfo_v1_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetProcessesUtilizationInfo, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    unsigned int space = info->processSamplesCount;
    unsigned int found =
        process_rows(&call, info->lastSeenTimeStamp, space, info->procUtilArray);
    info->processSamplesCount = found;
    return finish(&call, size_code(found, space, info->procUtilArray));
}

// Events: a set hears those that the scenario gets after the registration.
#define EVENT_SETS 32
// A driver wakes whoever waits; this fake looks, and must not cost what a driver does not.
#define EVENT_STEP_NANOSECONDS 400000000u

struct fake_event_set {
    bool used;
    struct {
        bool registered;
        unsigned int generation;
        unsigned long long types;
        int64_t heard;
    } gpus[MAX_GPUS];
};

static struct fake_event_set event_sets[EVENT_SETS];
static pthread_mutex_t event_lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_event_set(nvmlEventSet_t set) {
    uintptr_t address = (uintptr_t)set, base = (uintptr_t)event_sets;
    return address >= base && address < base + sizeof event_sets &&
           (address - base) % sizeof(struct fake_event_set) == 0 && set->used;
}

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    BEGIN_LIBRARY(nvmlEventSetCreate, set != NULL);
    code = NVML_ERROR_MEMORY;
    pthread_mutex_lock(&event_lock);
    for (int i = 0; i < EVENT_SETS && code != NVML_SUCCESS; i++) {
        if (event_sets[i].used) continue;
        memset(&event_sets[i], 0, sizeof event_sets[i]);
        event_sets[i].used = true;
        *set = &event_sets[i];
        code = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&event_lock);
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    BEGIN_LIBRARY(nvmlEventSetFree, is_event_set(set));
    pthread_mutex_lock(&event_lock);
    set->used = false;
    pthread_mutex_unlock(&event_lock);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                             nvmlEventSet_t set) {
    BEGIN_DEVICE(nvmlDeviceRegisterEvents, is_event_set(set));
    if (!HAS(event_types_supported) ||
        (types & ~(unsigned long long)VALUE(event_types_supported)) != 0) {
        return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    }
    int64_t newest = 0;
    const struct rows *events = &call.scenario->events;
    for (int i = 0; i < events->count; i++) {
        if (events->items[i].cells[0].whole > newest) newest = events->items[i].cells[0].whole;
    }
    pthread_mutex_lock(&event_lock);
    if (!set->gpus[call.number].registered) set->gpus[call.number].heard = newest;
    set->gpus[call.number].registered = true;
    set->gpus[call.number].generation = call.scenario->generation;
    set->gpus[call.number].types |= types;
    pthread_mutex_unlock(&event_lock);
    return finish(&call, NVML_SUCCESS);
}

static bool take_event(const struct call *call, nvmlEventSet_t set, nvmlEventData_t *data) {
    const struct rows *events = &call->scenario->events;
    bool taken = false;
    pthread_mutex_lock(&event_lock);
    for (int i = 0; i < events->count && !taken; i++) {
        const struct row *row = &events->items[i];
        int64_t number = row->cells[1].whole;
        if (number < 0 || number >= call->scenario->gpu_count) continue;
        if (!set->gpus[number].registered || set->gpus[number].heard >= row->cells[0].whole) {
            continue;
        }
        set->gpus[number].heard = row->cells[0].whole;
        taken = (set->gpus[number].types & (unsigned long long)row->cells[2].whole) != 0 &&
                set->gpus[number].generation == call->scenario->generation;
        *data = (nvmlEventData_t){
            .device = device_handle(call, (int)number, NO_MIG),
            .eventType = (unsigned long long)row->cells[2].whole,
            .eventData = (unsigned long long)row->cells[3].whole,
            .gpuInstanceId = row->columns > 4 ? (unsigned int)row->cells[4].whole : UINT32_MAX,
            .computeInstanceId = row->columns > 5 ? (unsigned int)row->cells[5].whole : UINT32_MAX,
        };
    }
    pthread_mutex_unlock(&event_lock);
    return taken;
}

static nvmlReturn_t wait_for_event(enum function function, nvmlEventSet_t set,
                                   nvmlEventData_t *data, unsigned int timeout_milliseconds) {
    uint64_t limit = (uint64_t)timeout_milliseconds * 1000000u, started = monotonic_nanoseconds();
    for (bool first = true;; first = false) {
        struct call call;
        nvmlReturn_t code = begin_library(&call, function, is_event_set(set) && data != NULL);
        // A wait is one call, however often it looks at the scenario.
        if (!first) uncount_call(function);
        if (code != NVML_SUCCESS) return code;
        bool taken = take_event(&call, set, data);
        finish(&call, NVML_SUCCESS);
        if (taken) return NVML_SUCCESS;
        uint64_t elapsed = monotonic_nanoseconds() - started;
        if (elapsed >= limit) return NVML_ERROR_TIMEOUT;
        uint64_t left = limit - elapsed;
        sleep_nanoseconds(left < EVENT_STEP_NANOSECONDS ? left : EVENT_STEP_NANOSECONDS);
    }
}

#define EVENT_SET_WAIT(function)                                                      \
    EXPORT nvmlReturn_t function(nvmlEventSet_t set, nvmlEventData_t *data,           \
                                 unsigned int timeout_milliseconds) {                 \
        return wait_for_event(FN_##function, set, data, timeout_milliseconds);        \
    }
EVENT_SET_WAIT(nvmlEventSetWait)
EVENT_SET_WAIT(nvmlEventSetWait_v2)

#define GPM_MAGIC 0x76656f2d67706d21u

#define WHOLE_GPU (-1)

struct fake_gpm_sample {
    uint64_t magic, time;
    int gpu;
    int64_t gpu_instance;
};

EXPORT nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    BEGIN_DEVICE(nvmlGpmQueryDeviceSupport, support != NULL);
    // GPM's structures carry a bare number for their version, unlike the others.
    if (support->version != 1) return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    support->isSupportedDevice = HAS(gpm_supported) && VALUE(gpm_supported) == 1;
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    BEGIN_LIBRARY(nvmlGpmSampleAlloc, sample != NULL);
    *sample = calloc(1, sizeof **sample);
    if (*sample == NULL) return finish(&call, NVML_ERROR_MEMORY);
    (*sample)->magic = GPM_MAGIC;
    (*sample)->gpu = NO_GPU;
    return finish(&call, NVML_SUCCESS);
}

static bool is_gpm_sample(nvmlGpmSample_t sample) {
    return sample != NULL && sample->magic == GPM_MAGIC;
}

EXPORT nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    BEGIN_LIBRARY(nvmlGpmSampleFree, is_gpm_sample(sample));
    sample->magic = 0;
    free(sample);
    return finish(&call, NVML_SUCCESS);
}

static nvmlReturn_t take_gpm_sample(struct call *call, int64_t gpu_instance,
                                    nvmlGpmSample_t sample) {
    if (call->gpu->values[VALUE_gpm_supported] != 1) {
        return finish(call, NVML_ERROR_NOT_SUPPORTED);
    }
    sample->gpu = call->number;
    sample->gpu_instance = gpu_instance;
    sample->time = monotonic_nanoseconds();
    return finish(call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    BEGIN_DEVICE(nvmlGpmSampleGet, is_gpm_sample(sample));
    return take_gpm_sample(&call, WHOLE_GPU, sample);
}

static bool has_gpu_instance(const struct gpu *gpu, unsigned int gpu_instance) {
    const struct rows *rows = &gpu->lists[LIST_mig];
    for (int i = 0; i < rows->count; i++) {
        if (rows->items[i].cells[2].whole == gpu_instance) return gpu->values[VALUE_mig_mode] == 1;
    }
    return false;
}

EXPORT nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned int gpu_instance,
                                        nvmlGpmSample_t sample) {
    BEGIN_DEVICE(nvmlGpmMigSampleGet, is_gpm_sample(sample));
    if (!has_gpu_instance(call.gpu, gpu_instance)) {
        return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    }
    return take_gpm_sample(&call, gpu_instance, sample);
}

static const struct row *gpm_row(const struct rows *rows, const struct fake_gpm_sample *sample,
                                 unsigned int metric) {
    for (int i = 0; i < rows->count; i++) {
        const struct row *row = &rows->items[i];
        int64_t of = row->columns > 3 ? row->cells[3].whole : WHOLE_GPU;
        if (row->cells[0].whole == metric && of == sample->gpu_instance) return row;
    }
    return NULL;
}

EXPORT nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *request) {
    BEGIN_LIBRARY(nvmlGpmMetricsGet, request != NULL && is_gpm_sample(request->sample1) &&
                                         is_gpm_sample(request->sample2));
    if (request->version != 1) return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    int number = request->sample2->gpu;
    if (number != request->sample1->gpu || number >= call.scenario->gpu_count ||
        request->sample2->gpu_instance != request->sample1->gpu_instance ||
        request->sample2->time <= request->sample1->time) {
        return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    }
    const struct rows *rows = &call.scenario->gpus[number].lists[LIST_gpm];
    for (unsigned int i = 0; i < request->numMetrics; i++) {
        nvmlGpmMetric_t *metric = &request->metrics[i];
        const struct row *row = gpm_row(rows, request->sample2, metric->metricId);
        metric->nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
        metric->value = 0;
        if (row == NULL) continue;
        metric->nvmlReturn = row->columns > 2 ? (nvmlReturn_t)row->cells[2].whole : NVML_SUCCESS;
        metric->value = row->cells[1].real;
    }
    return finish(&call, NVML_SUCCESS);
}
