// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

// Functions that read a GPU's values.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "library.h"

// A value that the scenario leaves out is one that the board does not support.
static nvmlReturn_t read_value(const struct call *call, int value, int64_t *number) {
    *number = call->gpu->values[value];
    return *number == UNSUPPORTED ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

#define NUMBER(function, type, value)                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out) {                        \
        BEGIN_DEVICE(function, out != NULL);                                              \
        int64_t number;                                                                   \
        if ((code = read_value(&call, VALUE_##value, &number)) == NVML_SUCCESS) {         \
            *out = (type)number;                                                          \
        }                                                                                 \
        return finish(&call, code);                                                       \
    }
#define PAIR(function, type, first, second)                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out, type *out_second) {      \
        BEGIN_DEVICE(function, out != NULL && out_second != NULL);                        \
        int64_t number, number_second = UNSUPPORTED;                                      \
        code = read_value(&call, VALUE_##first, &number);                                 \
        if (code == NVML_SUCCESS) code = read_value(&call, VALUE_##second, &number_second); \
        if (code == NVML_SUCCESS) {                                                       \
            *out = (type)number;                                                          \
            *out_second = (type)number_second;                                            \
        }                                                                                 \
        return finish(&call, code);                                                       \
    }
#define TEXT(function, text)                                                              \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *buffer, unsigned int length) { \
        BEGIN_DEVICE(function, buffer != NULL);                                           \
        return finish(&call, copy_text(call.gpu->texts[TEXT_##text], buffer, length));    \
    }
#define TYPED(function, type, first, count)                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int selector, type *out) { \
        BEGIN_DEVICE(function, out != NULL && selector < (count));                        \
        int64_t number;                                                                   \
        code = read_value(&call, VALUE_##first + (int)selector, &number);                 \
        if (code == NVML_SUCCESS) *out = (type)number;                                    \
        return finish(&call, code);                                                       \
    }
#define OTHER(function)
#include "functions.inc"

static const struct row *find_row(const struct rows *rows, int64_t key) {
    for (int i = 0; i < rows->count; i++) {
        if (rows->items[i].cells[0].whole == key) return &rows->items[i];
    }
    return NULL;
}

static int64_t cell(const struct row *row, int column, int64_t missing) {
    return column < row->columns ? row->cells[column].whole : missing;
}

static const struct row *mig_row(const struct call *call) {
    return call->mig == NO_MIG ? NULL : &call->gpu->lists[LIST_mig].items[call->mig];
}

// The GPU's name and the profile of the MIG device: slices of both kinds if they differ, and memory.
static nvmlReturn_t mig_name(const struct call *call, const struct row *mig, char *name,
                             unsigned int length) {
    char full[160], compute[32] = "";
    int64_t gibibytes = (mig->cells[4].whole + (INT64_C(1) << 30) - 1) >> 30;
    int64_t gpu_slices = mig->cells[6].whole, compute_slices = mig->cells[7].whole;
    if (compute_slices != gpu_slices) {
        snprintf(compute, sizeof compute, "%" PRId64 "c.", compute_slices);
    }
    snprintf(full, sizeof full, "%.96s MIG %s%" PRId64 "g.%" PRId64 "gb",
             call->gpu->texts[TEXT_name], compute, gpu_slices, gibibytes);
    return copy_text(full, name, length);
}

EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length) {
    BEGIN_DEVICE(nvmlDeviceGetName, name != NULL);
    const struct row *mig = mig_row(&call);
    if (mig != NULL) return finish(&call, mig_name(&call, mig, name, length));
    return finish(&call, copy_text(call.gpu->texts[TEXT_name], name, length));
}

EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length) {
    BEGIN_DEVICE(nvmlDeviceGetUUID, uuid != NULL);
    const struct row *mig = mig_row(&call);
    const char *own = mig ? mig->cells[1].text : call.gpu->texts[TEXT_uuid];
    return finish(&call, copy_text(own, uuid, length));
}

EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *version) {
    BEGIN_DEVICE(nvmlDeviceGetGspFirmwareVersion, version != NULL);
    return finish(&call, copy_text(call.gpu->texts[TEXT_gsp_firmware_version], version, 64));
}

EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates) {
    BEGIN_DEVICE(nvmlDeviceGetUtilizationRates, rates != NULL);
    if (!HAS(utilization_gpu_percent) || !HAS(utilization_memory_percent)) {
        return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    }
    rates->gpu = (unsigned int)VALUE(utilization_gpu_percent);
    rates->memory = (unsigned int)VALUE(utilization_memory_percent);
    return finish(&call, NVML_SUCCESS);
}

struct memory {
    uint64_t total, reserved, used;
};

static nvmlReturn_t read_memory(const struct call *call, struct memory *memory) {
    const struct row *mig = mig_row(call);
    int64_t total = mig ? mig->cells[4].whole : call->gpu->values[VALUE_memory_total_bytes];
    int64_t used = mig ? mig->cells[5].whole : call->gpu->values[VALUE_memory_used_bytes];
    int64_t reserved = mig ? 0 : call->gpu->values[VALUE_memory_reserved_bytes];
    if (total == UNSUPPORTED || used == UNSUPPORTED) return NVML_ERROR_NOT_SUPPORTED;
    if (reserved == UNSUPPORTED) reserved = 0;
    *memory = (struct memory){(uint64_t)total, (uint64_t)reserved, (uint64_t)used};
    return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetMemoryInfo, info != NULL);
    struct memory memory;
    if ((code = read_memory(&call, &memory)) == NVML_SUCCESS) {
        // The first version of the structure counts the reserve as used.
        info->total = memory.total;
        info->used = memory.used + memory.reserved;
        info->free = info->total - info->used;
    }
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetMemoryInfo_v2, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 2)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    struct memory memory;
    if ((code = read_memory(&call, &memory)) == NVML_SUCCESS) {
        info->total = memory.total;
        info->reserved = memory.reserved;
        info->used = memory.used;
        info->free = memory.total - memory.reserved - memory.used;
    }
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetBAR1MemoryInfo, info != NULL);
    if (!HAS(bar1_total_bytes) || !HAS(bar1_used_bytes)) {
        return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    }
    info->bar1Total = (unsigned long long)VALUE(bar1_total_bytes);
    info->bar1Used = (unsigned long long)VALUE(bar1_used_bytes);
    info->bar1Free = info->bar1Total - info->bar1Used;
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device,
                                                        nvmlConfComputeMemSizeInfo_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetConfComputeMemSizeInfo, info != NULL);
    if (!HAS(protected_memory_kib) || !HAS(unprotected_memory_kib)) {
        return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    }
    info->protectedMemSizeKib = (unsigned long long)VALUE(protected_memory_kib);
    info->unprotectedMemSizeKib = (unsigned long long)VALUE(unprotected_memory_kib);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_v1_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetTemperatureV, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    if (info->sensorType != 0) return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    int64_t number;
    code = read_value(&call, VALUE_temperature_celsius, &number);
    if (code == NVML_SUCCESS) info->temperature = (int)number;
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device,
                                                   nvmlMarginTemperature_v1_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetMarginTemperature, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    int64_t number;
    code = read_value(&call, VALUE_temperature_margin_celsius, &number);
    if (code == NVML_SUCCESS) info->marginTemperature = (int)number;
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned int fan,
                                             unsigned int *speed) {
    BEGIN_DEVICE(nvmlDeviceGetFanSpeed_v2, speed != NULL);
    if (!HAS(fan_speed_percent)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    if ((int64_t)fan >= VALUE(fan_count)) return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    *speed = (unsigned int)VALUE(fan_speed_percent);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, unsigned int type, unsigned int id,
                                       unsigned int *clock) {
    static const int first[] = {VALUE_clock_graphics_mhz, VALUE_clock_graphics_application_mhz,
                                VALUE_clock_graphics_application_mhz,
                                VALUE_clock_graphics_max_mhz};
    BEGIN_DEVICE(nvmlDeviceGetClock, clock != NULL && type < 4 && id < 4);
    int64_t number;
    code = read_value(&call, first[id] + (int)type, &number);
    if (code == NVML_SUCCESS) *clock = (unsigned int)number;
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned int policy,
                                                 nvmlViolationTime_t *time) {
    BEGIN_DEVICE(nvmlDeviceGetViolationStatus, time != NULL);
    const struct row *row = find_row(ROWS(violation), policy);
    if (row == NULL) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    time->referenceTime = wall_microseconds();
    time->violationTime = (unsigned long long)row->cells[1].whole;
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned int index,
                                                        nvmlDevice_t *mig_device) {
    BEGIN_DEVICE(nvmlDeviceGetMigDeviceHandleByIndex, mig_device != NULL);
    if (!HAS(mig_mode)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    if ((int64_t)index >= VALUE(mig_device_count_max)) {
        return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    }
    const struct row *row = VALUE(mig_mode) == 1 ? find_row(ROWS(mig), index) : NULL;
    int position = row ? (int)(row - ROWS(mig)->items) : MAX_MIG_DEVICES;
    if (position >= MAX_MIG_DEVICES) return finish(&call, NVML_ERROR_NOT_FOUND);
    *mig_device = device_handle(&call, call.number, position);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_mig) {
    BEGIN_DEVICE(nvmlDeviceIsMigDeviceHandle, is_mig != NULL);
    *is_mig = call.mig != NO_MIG;
    return finish(&call, NVML_SUCCESS);
}

#define MIG_ID(function, column)                                              \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *id) {     \
        BEGIN_DEVICE(function, id != NULL);                                   \
        const struct row *mig = mig_row(&call);                               \
        if (mig == NULL) return finish(&call, NVML_ERROR_NOT_SUPPORTED);      \
        *id = (unsigned int)mig->cells[column].whole;                         \
        return finish(&call, NVML_SUCCESS);                                   \
    }
MIG_ID(nvmlDeviceGetGpuInstanceId, 2)
MIG_ID(nvmlDeviceGetComputeInstanceId, 3)

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device,
                                                                 nvmlDevice_t *parent) {
    BEGIN_DEVICE(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, parent != NULL);
    if (call.mig == NO_MIG) return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    *parent = device_handle(&call, call.number, NO_MIG);
    return finish(&call, NVML_SUCCESS);
}

#define ATTRIBUTES(function)                                                            \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, nvmlDeviceAttributes_t *out) {    \
        BEGIN_DEVICE(function, out != NULL);                                            \
        const struct row *mig = mig_row(&call);                                         \
        if (mig == NULL) return finish(&call, NVML_ERROR_NOT_SUPPORTED);                \
        *out = (nvmlDeviceAttributes_t){                                                \
            .gpuInstanceSliceCount = (unsigned int)mig->cells[6].whole,                 \
            .computeInstanceSliceCount = (unsigned int)mig->cells[7].whole,             \
            .multiprocessorCount = (unsigned int)mig->cells[8].whole,                   \
            .memorySizeMB = (unsigned long long)mig->cells[4].whole >> 20,              \
        };                                                                              \
        return finish(&call, NVML_SUCCESS);                                             \
    }
ATTRIBUTES(nvmlDeviceGetAttributes)
ATTRIBUTES(nvmlDeviceGetAttributes_v2)

// `location` ANY sums the locations. No matching row: the board does not count there.
static nvmlReturn_t count_ecc(const struct call *call, unsigned int error, unsigned int counter,
                              int64_t location, unsigned long long *count) {
    const struct rows *rows = &call->gpu->lists[LIST_ecc];
    bool found = false;
    *count = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct cell *cells = rows->items[i].cells;
        if (cells[0].whole != error || cells[1].whole != counter) continue;
        if (location != ANY && cells[2].whole != location) continue;
        *count += (unsigned long long)cells[3].whole;
        found = true;
    }
    return found ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned int error,
                                                unsigned int counter, unsigned long long *count) {
    BEGIN_DEVICE(nvmlDeviceGetTotalEccErrors, count != NULL && error < 2 && counter < 2);
    return finish(&call, count_ecc(&call, error, counter, ANY, count));
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned int error,
                                                    unsigned int counter, unsigned int location,
                                                    unsigned long long *count) {
    BEGIN_DEVICE(nvmlDeviceGetMemoryErrorCounter,
                 count != NULL && error < 2 && counter < 2 && location < 8);
    return finish(&call, count_ecc(&call, error, counter, location, count));
}

EXPORT nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, unsigned int error,
                                                   unsigned int counter,
                                                   nvmlEccErrorCounts_t *counts) {
    BEGIN_DEVICE(nvmlDeviceGetDetailedEccErrors, counts != NULL && error < 2 && counter < 2);
    unsigned long long total;
    code = count_ecc(&call, error, counter, ANY, &total);
    if (code != NVML_SUCCESS) return finish(&call, code);
    (void)count_ecc(&call, error, counter, 0, &counts->l1Cache);
    (void)count_ecc(&call, error, counter, 1, &counts->l2Cache);
    (void)count_ecc(&call, error, counter, 2, &counts->deviceMemory);
    (void)count_ecc(&call, error, counter, 3, &counts->registerFile);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                    nvmlEccSramErrorStatus_v1_t *status) {
    BEGIN_DEVICE(nvmlDeviceGetSramEccErrorStatus, status != NULL);
    if (status->version != STRUCT_VERSION(*status, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    if (ROWS(sram_ecc)->count == 0) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    const struct row *row = &ROWS(sram_ecc)->items[0];
    for (int i = 0; i < 11; i++) status->counts[i] = (unsigned long long)row->cells[i].whole;
    status->bThresholdExceeded = (unsigned int)row->cells[11].whole;
    return finish(&call, NVML_SUCCESS);
}

static nvmlReturn_t retired_pages(struct call *call, unsigned int cause, unsigned int *count,
                                  unsigned long long *addresses, unsigned long long *times) {
    if (call->gpu->values[VALUE_retired_pages_pending] == UNSUPPORTED) {
        return finish(call, NVML_ERROR_NOT_SUPPORTED);
    }
    const struct rows *rows = &call->gpu->lists[LIST_retired_page];
    unsigned int found = 0;
    for (int i = 0; i < rows->count; i++) {
        const struct cell *cells = rows->items[i].cells;
        if (cells[0].whole != cause) continue;
        if (found < *count) {
            if (addresses != NULL) addresses[found] = (unsigned long long)cells[1].whole;
            if (times != NULL) times[found] = (unsigned long long)cells[2].whole;
        }
        found++;
    }
    bool fits = found <= *count;
    *count = found;
    return finish(call, fits ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned int cause,
                                              unsigned int *count, unsigned long long *addresses) {
    BEGIN_DEVICE(nvmlDeviceGetRetiredPages, count != NULL);
    return retired_pages(&call, cause, count, addresses, NULL);
}

EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, unsigned int cause,
                                                 unsigned int *count,
                                                 unsigned long long *addresses,
                                                 unsigned long long *times) {
    BEGIN_DEVICE(nvmlDeviceGetRetiredPages_v2, count != NULL);
    return retired_pages(&call, cause, count, addresses, times);
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned int *correctable,
                                              unsigned int *uncorrectable, unsigned int *pending,
                                              unsigned int *failure) {
    BEGIN_DEVICE(nvmlDeviceGetRemappedRows, correctable && uncorrectable && pending && failure);
    if (!HAS(remapped_rows_correctable)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    *correctable = (unsigned int)VALUE(remapped_rows_correctable);
    *uncorrectable = (unsigned int)VALUE(remapped_rows_uncorrectable);
    *pending = (unsigned int)VALUE(remapped_rows_pending);
    *failure = (unsigned int)VALUE(remapped_rows_failure);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device,
                                                 nvmlRemappedRowsInfo_v2_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetRemappedRows_v2, info != NULL);
    if (!HAS(remapped_rows_correctable)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    *info = (nvmlRemappedRowsInfo_v2_t){
        .corrActiveRemaps = (unsigned int)VALUE(remapped_rows_correctable),
        .corrInactiveRemaps = (unsigned int)VALUE(remapped_rows_correctable_inactive),
        .uncActiveRemaps = (unsigned int)VALUE(remapped_rows_uncorrectable),
        .uncInactiveRemaps = (unsigned int)VALUE(remapped_rows_uncorrectable_inactive),
        .bPending = (unsigned int)VALUE(remapped_rows_pending),
        .bfailureOccurred = (unsigned int)VALUE(remapped_rows_failure),
    };
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                                      nvmlRowRemapperHistogramValues_t *out) {
    BEGIN_DEVICE(nvmlDeviceGetRowRemapperHistogram, out != NULL);
    if (!HAS(remapper_banks_max)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    *out = (nvmlRowRemapperHistogramValues_t){
        .max = (unsigned int)VALUE(remapper_banks_max),
        .high = (unsigned int)VALUE(remapper_banks_high),
        .partial = (unsigned int)VALUE(remapper_banks_partial),
        .low = (unsigned int)VALUE(remapper_banks_low),
        .none = (unsigned int)VALUE(remapper_banks_none),
    };
    return finish(&call, NVML_SUCCESS);
}

static nvmlReturn_t check_link(const struct call *call, unsigned int link) {
    int64_t links = call->gpu->values[VALUE_nvlink_count];
    if (links == UNSUPPORTED || links == 0) return NVML_ERROR_NOT_SUPPORTED;
    return (int64_t)link < links ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

#define LINK_VALUE(function, expression)                                                   \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int link, unsigned int *out) { \
        BEGIN_DEVICE(function, out != NULL);                                               \
        if ((code = check_link(&call, link)) == NVML_SUCCESS) *out = (expression);         \
        return finish(&call, code);                                                        \
    }
LINK_VALUE(nvmlDeviceGetNvLinkState, (unsigned int)(VALUE(nvlink_active_mask) >> link & 1))
LINK_VALUE(nvmlDeviceGetNvLinkVersion, (unsigned int)VALUE(nvlink_version))
LINK_VALUE(nvmlDeviceGetNvLinkRemoteDeviceType, (unsigned int)VALUE(nvlink_remote_device_type))

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned int link,
                                                    unsigned int counter,
                                                    unsigned long long *count) {
    BEGIN_DEVICE(nvmlDeviceGetNvLinkErrorCounter, count != NULL && counter < 5);
    int64_t number;
    code = check_link(&call, link);
    if (code == NVML_SUCCESS) {
        code = read_value(&call, VALUE_nvlink_replay_errors + (int)counter, &number);
    }
    if (code == NVML_SUCCESS) *count = (unsigned long long)number;
    return finish(&call, code);
}

EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device,
                                                nvmlGpuFabricInfo_v3_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetGpuFabricInfoV, info != NULL);
    bool second = info->version == STRUCT_VERSION(nvmlGpuFabricInfo_v2_t, 2);
    if (!second && info->version != STRUCT_VERSION(nvmlGpuFabricInfo_v3_t, 3)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    if (ROWS(fabric)->count == 0) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    const struct row *row = &ROWS(fabric)->items[0];
    memset(info->clusterUuid, 0, sizeof info->clusterUuid);
    info->status = (nvmlReturn_t)row->cells[0].whole;
    info->cliqueId = (unsigned int)row->cells[1].whole;
    info->state = (unsigned int)row->cells[2].whole;
    info->healthMask = (unsigned int)row->cells[3].whole;
    if (!second) info->healthSummary = (unsigned char)row->cells[4].whole;
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, unsigned int *sessions,
                                              unsigned int *fps, unsigned int *latency) {
    BEGIN_DEVICE(nvmlDeviceGetEncoderStats, sessions && fps && latency);
    const struct rows *rows = ROWS(encoder_session);
    int64_t total_fps = 0, total_latency = 0;
    for (int i = 0; i < rows->count; i++) {
        total_fps += rows->items[i].cells[6].whole;
        total_latency += rows->items[i].cells[7].whole;
    }
    int64_t divisor = rows->count ? rows->count : 1;
    *sessions = (unsigned int)rows->count;
    *fps = (unsigned int)(total_fps / divisor);
    *latency = (unsigned int)(total_latency / divisor);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, unsigned int *count,
                                                 nvmlEncoderSessionInfo_t *sessions) {
    BEGIN_DEVICE(nvmlDeviceGetEncoderSessions, count != NULL);
    const struct rows *rows = ROWS(encoder_session);
    unsigned int space = *count;
    *count = (unsigned int)rows->count;
    if (sessions == NULL) return finish(&call, NVML_SUCCESS);
    if (space < *count) return finish(&call, NVML_ERROR_INSUFFICIENT_SIZE);
    for (int i = 0; i < rows->count; i++) {
        unsigned int columns[8];
        for (int j = 0; j < 8; j++) columns[j] = (unsigned int)rows->items[i].cells[j].whole;
        memcpy(&sessions[i], columns, sizeof columns);
    }
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, nvmlFBCStats_t *stats) {
    BEGIN_DEVICE(nvmlDeviceGetFBCStats, stats != NULL);
    if (!HAS(frame_capture_sessions)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);
    stats->sessionsCount = (unsigned int)VALUE(frame_capture_sessions);
    stats->averageFPS = (unsigned int)VALUE(frame_capture_fps);
    stats->averageLatency = (unsigned int)VALUE(frame_capture_latency_microseconds);
    return finish(&call, NVML_SUCCESS);
}

#define LICENSABLE_FEATURES(function, type)                                                \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, type *out) {                         \
        BEGIN_DEVICE(function, out != NULL);                                               \
        if (!HAS(vgpu_license_supported)) return finish(&call, NVML_ERROR_NOT_SUPPORTED);  \
        const struct rows *rows = ROWS(licensable_feature);                                \
        memset(out, 0, sizeof *out);                                                       \
        out->isGridLicenseSupported = (int)VALUE(vgpu_license_supported);                  \
        int space = NVML_GRID_LICENSE_FEATURE_MAX_COUNT;                                   \
        int count = rows->count < space ? rows->count : space;                             \
        out->licensableFeaturesCount = (unsigned int)count;                                \
        for (int i = 0; i < count; i++) {                                                  \
            const struct cell *cells = rows->items[i].cells;                               \
            out->gridLicensableFeatures[i].featureCode = (unsigned int)cells[0].whole;     \
            out->gridLicensableFeatures[i].featureState = (unsigned int)cells[1].whole;    \
        }                                                                                  \
        return finish(&call, NVML_SUCCESS);                                                \
    }
LICENSABLE_FEATURES(nvmlDeviceGetGridLicensableFeatures, nvmlGridLicensableFeatures_t)
LICENSABLE_FEATURES(nvmlDeviceGetGridLicensableFeatures_v3, nvmlGridLicensableFeatures_v3_t)
LICENSABLE_FEATURES(nvmlDeviceGetGridLicensableFeatures_v4, nvmlGridLicensableFeatures_v4_t)

// Whether a call about `mode` (3: all modes) on this GPU or MIG device lists the process.
static bool lists_process(const struct call *call, const struct row *row, int64_t mode) {
    const struct row *mig = mig_row(call);
    if (mode != 3 && row->cells[0].whole != mode) return false;
    return mig == NULL || (cell(row, 3, -1) == mig->cells[2].whole &&
                           cell(row, 4, -1) == mig->cells[3].whole);
}

static nvmlProcessDetail_v1_t process_of(const struct row *row) {
    return (nvmlProcessDetail_v1_t){
        .pid = (unsigned int)row->cells[1].whole,
        .usedGpuMemory = (unsigned long long)row->cells[2].whole,
        .gpuInstanceId = (unsigned int)cell(row, 3, -1),
        .computeInstanceId = (unsigned int)cell(row, 4, -1),
    };
}

static unsigned int count_processes(const struct call *call, int64_t mode) {
    const struct rows *rows = &call->gpu->lists[LIST_process];
    unsigned int count = 0;
    for (int i = 0; i < rows->count; i++) count += lists_process(call, &rows->items[i], mode);
    return count;
}

static nvmlReturn_t running_processes(struct call *call, int64_t mode, unsigned int *count,
                                      nvmlProcessInfo_t *processes) {
    const struct rows *rows = &call->gpu->lists[LIST_process];
    unsigned int space = *count, filled = 0;
    *count = count_processes(call, mode);
    if (*count == 0) return finish(call, NVML_SUCCESS);
    if (space < *count || processes == NULL) return finish(call, NVML_ERROR_INSUFFICIENT_SIZE);
    for (int i = 0; i < rows->count; i++) {
        if (!lists_process(call, &rows->items[i], mode)) continue;
        nvmlProcessDetail_v1_t detail = process_of(&rows->items[i]);
        processes[filled++] = (nvmlProcessInfo_t){
            .pid = detail.pid, .usedGpuMemory = detail.usedGpuMemory,
            .gpuInstanceId = detail.gpuInstanceId, .computeInstanceId = detail.computeInstanceId,
        };
    }
    return finish(call, NVML_SUCCESS);
}

#define RUNNING_PROCESSES(function, mode)                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned int *count,    \
                                 nvmlProcessInfo_t *processes) {              \
        BEGIN_DEVICE(function, count != NULL);                                \
        return running_processes(&call, mode, count, processes);              \
    }
RUNNING_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, 0)
RUNNING_PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, 0)
RUNNING_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, 1)
RUNNING_PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, 1)
RUNNING_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, 2)
RUNNING_PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, 2)

EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
                                                          nvmlProcessDetailList_v1_t *list) {
    BEGIN_DEVICE(nvmlDeviceGetRunningProcessDetailList, list != NULL);
    if (list->version != STRUCT_VERSION(*list, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    if (list->mode > 3) return finish(&call, NVML_ERROR_INVALID_ARGUMENT);
    const struct rows *rows = ROWS(process);
    unsigned int space = list->numProcArrayEntries, filled = 0;
    list->numProcArrayEntries = count_processes(&call, list->mode);
    if (list->numProcArrayEntries == 0) return finish(&call, NVML_SUCCESS);
    if (space < list->numProcArrayEntries || list->procArray == NULL) {
        return finish(&call, NVML_ERROR_INSUFFICIENT_SIZE);
    }
    for (int i = 0; i < rows->count; i++) {
        if (!lists_process(&call, &rows->items[i], list->mode)) continue;
        list->procArray[filled++] = process_of(&rows->items[i]);
    }
    return finish(&call, NVML_SUCCESS);
}
