// SPDX-FileCopyrightText: The veo-exporter authors
// SPDX-License-Identifier: Apache-2.0

// Sessions, handles, the library's own functions, and what every call goes through.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "library.h"

#define MAGIC 0x76656f2d67707521u
#define GENERATIONS 256

// A handle's generation is checked in the handle, so only one 256 reloads old could be mistaken.
static struct fake_device handles[GENERATIONS][MAX_GPUS][MAX_MIG_DEVICES + 1];
static atomic_ullong calls[FUNCTION_COUNT];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int references;
    unsigned int generation;
    int count, order[MAX_GPUS];
} session;

void count_call(enum function function) {
    atomic_fetch_add_explicit(&calls[function], 1, memory_order_relaxed);
}

void uncount_call(enum function function) {
    atomic_fetch_sub_explicit(&calls[function], 1, memory_order_relaxed);
}

nvmlReturn_t copy_text(const char *text, char *buffer, size_t length) {
    if (text == NULL) return NVML_ERROR_NOT_SUPPORTED;
    if (strlen(text) >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return NVML_SUCCESS;
}

uint64_t wall_microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

// Sleeps in steps that hold nothing, so that a hung call blocks no other and can be released.
static const struct scenario *obey_delays(enum function function, int scope) {
    uint64_t started = 0;
    for (;;) {
        const struct scenario *scenario = scenario_acquire();
        const struct rule *rule = &scenario->rules[scope][function];
        uint64_t step = STEP_NANOSECONDS;
        if (!rule->hang) {
            if (rule->delay_nanoseconds == 0) return scenario;
            uint64_t now = monotonic_nanoseconds();
            if (started == 0) started = now;
            if (now - started >= rule->delay_nanoseconds) return scenario;
            uint64_t left = rule->delay_nanoseconds - (now - started);
            if (left < step) step = left;
        } else if (started == 0) {
            started = monotonic_nanoseconds();
        }
        scenario_release(scenario);
        sleep_nanoseconds(step);
    }
}

static nvmlReturn_t session_code(const struct scenario *scenario) {
    pthread_mutex_lock(&lock);
    int references = session.references;
    unsigned int generation = session.generation;
    pthread_mutex_unlock(&lock);
    if (references == 0) return NVML_ERROR_UNINITIALIZED;
    bool alive = scenario->driver_present && generation == scenario->generation;
    return alive ? NVML_SUCCESS : scenario->dead_code;
}

static nvmlReturn_t begin(struct call *call, enum function function, int scope) {
    count_call(function);
    *call = (struct call){.scenario = obey_delays(function, scope), .number = scope, .mig = NO_MIG};
    return call->scenario->broken ? NVML_ERROR_UNKNOWN : NVML_SUCCESS;
}

nvmlReturn_t finish(struct call *call, nvmlReturn_t code) {
    scenario_release(call->scenario);
    return code;
}

static nvmlReturn_t admit(struct call *call, nvmlReturn_t code) {
    return code == NVML_SUCCESS ? code : finish(call, code);
}

static nvmlReturn_t first_error(nvmlReturn_t first, nvmlReturn_t second) {
    return first != NVML_SUCCESS ? first : second;
}

static nvmlReturn_t rule_code(const struct call *call, enum function function) {
    return call->scenario->rules[call->number][function].code;
}

nvmlReturn_t begin_library(struct call *call, enum function function, bool valid) {
    nvmlReturn_t code = begin(call, function, NO_GPU);
    code = first_error(code, session_code(call->scenario));
    code = first_error(code, rule_code(call, function));
    return admit(call, first_error(code, valid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT));
}

static nvmlReturn_t state_code(const struct gpu *gpu) {
    if (gpu->state == STATE_LOST || gpu->state == STATE_HIDDEN) return NVML_ERROR_GPU_IS_LOST;
    return gpu->state == STATE_RESET_REQUIRED ? NVML_ERROR_RESET_REQUIRED : NVML_SUCCESS;
}

nvmlReturn_t begin_lookup(struct call *call, enum function function, int gpu, bool valid) {
    nvmlReturn_t code = begin(call, function, gpu);
    code = first_error(code, session_code(call->scenario));
    if (code == NVML_SUCCESS && gpu != NO_GPU && gpu < call->scenario->gpu_count) {
        call->gpu = &call->scenario->gpus[gpu];
        if (call->gpu->state == STATE_LOST) code = NVML_ERROR_GPU_IS_LOST;
    }
    code = first_error(code, rule_code(call, function));
    return admit(call, first_error(code, valid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT));
}

// A range check before the magic number: a garbage handle must not be dereferenced.
static bool is_handle(nvmlDevice_t device) {
    uintptr_t address = (uintptr_t)device, base = (uintptr_t)handles;
    return address >= base && address < base + sizeof handles &&
           (address - base) % sizeof(struct fake_device) == 0 && device->magic == MAGIC;
}

static bool works_on_mig_device(enum function function) {
    switch (function) {
        case FN_nvmlDeviceGetName:
        case FN_nvmlDeviceGetUUID:
        case FN_nvmlDeviceGetMemoryInfo:
        case FN_nvmlDeviceGetMemoryInfo_v2:
        case FN_nvmlDeviceIsMigDeviceHandle:
        case FN_nvmlDeviceGetGpuInstanceId:
        case FN_nvmlDeviceGetComputeInstanceId:
        case FN_nvmlDeviceGetDeviceHandleFromMigDeviceHandle:
        case FN_nvmlDeviceGetAttributes:
        case FN_nvmlDeviceGetAttributes_v2:
        case FN_nvmlDeviceGetComputeRunningProcesses_v2:
        case FN_nvmlDeviceGetComputeRunningProcesses_v3:
            return true;
        default:
            return false;
    }
}

nvmlReturn_t begin_device(struct call *call, enum function function, nvmlDevice_t device,
                          bool valid) {
    bool known = is_handle(device);
    nvmlReturn_t code = begin(call, function, known ? device->gpu : NO_GPU);
    code = first_error(code, session_code(call->scenario));
    if (code != NVML_SUCCESS) return finish(call, code);
    if (!known || device->gpu >= call->scenario->gpu_count) {
        return finish(call, NVML_ERROR_INVALID_ARGUMENT);
    }
    if (device->generation != call->scenario->generation) {
        return finish(call, call->scenario->dead_code);
    }
    call->gpu = &call->scenario->gpus[device->gpu];
    call->mig = device->mig;
    if (call->mig != NO_MIG && call->mig >= call->gpu->lists[LIST_mig].count) {
        return finish(call, NVML_ERROR_INVALID_ARGUMENT);
    }
    code = first_error(state_code(call->gpu), rule_code(call, function));
    if (call->mig != NO_MIG && !works_on_mig_device(function)) {
        code = first_error(code, NVML_ERROR_NOT_SUPPORTED);
    }
    return admit(call, first_error(code, valid ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT));
}

nvmlDevice_t device_handle(const struct call *call, int gpu, int mig) {
    return &handles[call->scenario->generation % GENERATIONS][gpu][mig + 1];
}

static void make_handles(unsigned int generation) {
    for (int gpu = 0; gpu < MAX_GPUS; gpu++) {
        for (int mig = NO_MIG; mig < MAX_MIG_DEVICES; mig++) {
            handles[generation % GENERATIONS][gpu][mig + 1] =
                (struct fake_device){MAGIC, generation, gpu, mig};
        }
    }
}

static nvmlReturn_t initialise(enum function function) {
    struct call call;
    nvmlReturn_t code = begin(&call, function, NO_GPU);
    const struct scenario *scenario = call.scenario;
    code = first_error(code, rule_code(&call, function));
    if (!scenario->driver_present) code = first_error(code, scenario->init_code);
    if (code != NVML_SUCCESS) return finish(&call, code);
    pthread_mutex_lock(&lock);
    if (session.references++ == 0) {
        session.generation = scenario->generation;
        session.count = scenario->order_count;
        memcpy(session.order, scenario->order, sizeof session.order);
        make_handles(scenario->generation);
    }
    pthread_mutex_unlock(&lock);
    return finish(&call, NVML_SUCCESS);
}

EXPORT nvmlReturn_t nvmlInit(void) { return initialise(FN_nvmlInit); }

EXPORT nvmlReturn_t nvmlInit_v2(void) { return initialise(FN_nvmlInit_v2); }

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned int flags) {
    (void)flags;
    return initialise(FN_nvmlInitWithFlags);
}

EXPORT nvmlReturn_t nvmlShutdown(void) {
    struct call call;
    nvmlReturn_t code = begin(&call, FN_nvmlShutdown, NO_GPU);
    code = first_error(code, rule_code(&call, FN_nvmlShutdown));
    if (code != NVML_SUCCESS) return finish(&call, code);
    pthread_mutex_lock(&lock);
    if (session.references == 0) code = NVML_ERROR_UNINITIALIZED;
    else session.references--;
    pthread_mutex_unlock(&lock);
    return finish(&call, code);
}

EXPORT const char *nvmlErrorString(nvmlReturn_t code) {
    static const char *const texts[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported",
        "Insufficient Permissions", "Already Initialized", "Not Found", "Insufficient Size",
        "Insufficient External Power", "Driver Not Loaded", "Timeout", "Interrupt Request Issue",
        "NVML Shared Library Not Found", "Function Not Found", "Corrupted infoROM", "GPU is lost",
        "GPU requires reset", "Operating system call failed", "Driver/library version mismatch",
        "In use by another client", "Insufficient Memory", "No data", "vGPU ECC not supported",
        "Insufficient Resources", "Frequency not supported", "Argument version mismatch",
        "Deprecated", "Not ready", "GPU not found", "Invalid state", "Reset type not supported",
    };
    count_call(FN_nvmlErrorString);
    int known = (int)(sizeof texts / sizeof texts[0]);
    return code >= 0 && code < known ? texts[code] : "Unknown Error";
}

#define SYSTEM_TEXT(function, member)                                         \
    EXPORT nvmlReturn_t function(char *buffer, unsigned int length) {         \
        BEGIN_LIBRARY(function, buffer != NULL);                              \
        return finish(&call, copy_text(call.scenario->member, buffer, length)); \
    }
SYSTEM_TEXT(nvmlSystemGetDriverVersion, driver_version)
SYSTEM_TEXT(nvmlSystemGetNVMLVersion, nvml_version)

#define CUDA_VERSION(function)                                                \
    EXPORT nvmlReturn_t function(int *version) {                              \
        BEGIN_LIBRARY(function, version != NULL);                             \
        *version = call.scenario->cuda_version;                               \
        return finish(&call, NVML_SUCCESS);                                   \
    }
CUDA_VERSION(nvmlSystemGetCudaDriverVersion)
CUDA_VERSION(nvmlSystemGetCudaDriverVersion_v2)

EXPORT nvmlReturn_t nvmlSystemGetDriverBranch(nvmlSystemDriverBranchInfo_v1_t *info,
                                              unsigned int length) {
    BEGIN_LIBRARY(nvmlSystemGetDriverBranch, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    size_t space = length < sizeof info->branch ? length : sizeof info->branch;
    return finish(&call, copy_text(call.scenario->driver_branch, info->branch, space));
}

// The GPUs that this session lists, in its order.
static int visible_gpus(const struct scenario *scenario, int numbers[MAX_GPUS]) {
    int count = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < session.count; i++) {
        int gpu = session.order[i];
        if (gpu < scenario->gpu_count && scenario->gpus[gpu].state != STATE_HIDDEN) {
            numbers[count++] = gpu;
        }
    }
    pthread_mutex_unlock(&lock);
    return count;
}

#define DEVICE_COUNT(function)                                                \
    EXPORT nvmlReturn_t function(unsigned int *count) {                       \
        BEGIN_LIBRARY(function, count != NULL);                               \
        int numbers[MAX_GPUS];                                                \
        *count = (unsigned int)visible_gpus(call.scenario, numbers);          \
        return finish(&call, NVML_SUCCESS);                                   \
    }
DEVICE_COUNT(nvmlDeviceGetCount)
DEVICE_COUNT(nvmlDeviceGetCount_v2)

EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index) {
    BEGIN_DEVICE(nvmlDeviceGetIndex, index != NULL);
    int numbers[MAX_GPUS];
    int count = visible_gpus(call.scenario, numbers);
    for (int i = 0; i < count; i++) {
        if (numbers[i] == call.number) {
            *index = (unsigned int)i;
            return finish(&call, NVML_SUCCESS);
        }
    }
    return finish(&call, NVML_ERROR_NOT_FOUND);
}

struct target {
    int gpu, mig;
};

typedef struct target resolver(const struct scenario *scenario, const void *sought);

static struct target find(const struct scenario *scenario, const void *sought,
                          bool (*matches)(const struct gpu *gpu, const void *sought, int *mig)) {
    int numbers[MAX_GPUS];
    int count = visible_gpus(scenario, numbers);
    for (int i = 0; i < count; i++) {
        int mig = NO_MIG;
        if (matches(&scenario->gpus[numbers[i]], sought, &mig)) {
            return (struct target){numbers[i], mig};
        }
    }
    return (struct target){NO_GPU, NO_MIG};
}

static struct target by_index(const struct scenario *scenario, const void *sought) {
    int numbers[MAX_GPUS];
    unsigned int index = *(const unsigned int *)sought;
    unsigned int count = (unsigned int)visible_gpus(scenario, numbers);
    return (struct target){index < count ? numbers[index] : NO_GPU, NO_MIG};
}

static bool has_uuid(const struct gpu *gpu, const void *sought, int *mig) {
    const char *own = gpu->texts[TEXT_uuid];
    if (own != NULL && strcmp(own, sought) == 0) return true;
    const struct rows *rows = &gpu->lists[LIST_mig];
    for (int i = 0; i < rows->count; i++) {
        if (strcmp(rows->items[i].cells[1].text, sought) == 0) {
            *mig = i;
            return true;
        }
    }
    return false;
}

static struct target by_uuid(const struct scenario *scenario, const void *sought) {
    return find(scenario, sought, has_uuid);
}

static bool has_serial(const struct gpu *gpu, const void *sought, int *mig) {
    (void)mig;
    const char *own = gpu->texts[TEXT_serial];
    return own != NULL && strcmp(own, sought) == 0;
}

static struct target by_serial(const struct scenario *scenario, const void *sought) {
    return find(scenario, sought, has_serial);
}

struct pci_address {
    unsigned int domain, bus, device, function;
};

static bool parse_pci(const char *text, struct pci_address *address) {
    *address = (struct pci_address){0};
    return text != NULL &&
           (sscanf(text, "%x:%x:%x.%x", &address->domain, &address->bus, &address->device,
                   &address->function) == 4 ||
            (address->domain = 0, sscanf(text, "%x:%x.%x", &address->bus, &address->device,
                                         &address->function) == 3));
}

static bool has_pci(const struct gpu *gpu, const void *sought, int *mig) {
    (void)mig;
    struct pci_address own, other;
    return parse_pci(gpu->texts[TEXT_pci_bus_id], &own) && parse_pci(sought, &other) &&
           own.domain == other.domain && own.bus == other.bus && own.device == other.device &&
           own.function == other.function;
}

static struct target by_pci(const struct scenario *scenario, const void *sought) {
    return find(scenario, sought, has_pci);
}

static nvmlReturn_t look_up(enum function function, resolver *resolve, const void *sought,
                            nvmlReturn_t missing, nvmlDevice_t *device) {
    bool valid = sought != NULL && device != NULL;
    struct target target = {NO_GPU, NO_MIG};
    if (valid) {
        const struct scenario *scenario = scenario_acquire();
        target = resolve(scenario, sought);
        scenario_release(scenario);
    }
    struct call call;
    nvmlReturn_t code = begin_lookup(&call, function, target.gpu, valid);
    if (code != NVML_SUCCESS) return code;
    // Looked up again: the scenario may have changed while the call hung.
    target = resolve(call.scenario, sought);
    if (target.gpu == NO_GPU) return finish(&call, missing);
    *device = device_handle(&call, target.gpu, target.mig);
    return finish(&call, NVML_SUCCESS);
}

#define LOOKUP_BY_INDEX(function)                                             \
    EXPORT nvmlReturn_t function(unsigned int index, nvmlDevice_t *device) {  \
        return look_up(FN_##function, by_index, &index, NVML_ERROR_INVALID_ARGUMENT, device); \
    }
#define LOOKUP_BY_TEXT(function, resolve)                                     \
    EXPORT nvmlReturn_t function(const char *text, nvmlDevice_t *device) {    \
        return look_up(FN_##function, resolve, text, NVML_ERROR_NOT_FOUND, device); \
    }
LOOKUP_BY_INDEX(nvmlDeviceGetHandleByIndex)
LOOKUP_BY_INDEX(nvmlDeviceGetHandleByIndex_v2)
LOOKUP_BY_TEXT(nvmlDeviceGetHandleByUUID, by_uuid)
LOOKUP_BY_TEXT(nvmlDeviceGetHandleBySerial, by_serial)
LOOKUP_BY_TEXT(nvmlDeviceGetHandleByPciBusId, by_pci)
LOOKUP_BY_TEXT(nvmlDeviceGetHandleByPciBusId_v2, by_pci)

static void format_pci(const struct gpu *gpu, nvmlPciInfo_t *info) {
    struct pci_address address;
    parse_pci(gpu->texts[TEXT_pci_bus_id], &address);
    info->domain = address.domain;
    info->bus = address.bus;
    info->device = address.device;
    info->pciDeviceId = (unsigned int)gpu->values[VALUE_pci_device_id];
    info->pciSubSystemId = (unsigned int)gpu->values[VALUE_pci_subsystem_id];
    snprintf(info->busIdLegacy, sizeof info->busIdLegacy, "%04X:%02X:%02X.%X",
             address.domain & 0xffff, address.bus & 0xff, address.device & 0x1f,
             address.function & 7);
    snprintf(info->busId, sizeof info->busId, "%08X:%02X:%02X.%X", address.domain, address.bus,
             address.device, address.function);
}

#define PCI_INFO(function, bytes)                                             \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, nvmlPciInfo_t *info) {  \
        BEGIN_DEVICE(function, info != NULL);                                 \
        nvmlPciInfo_t full = {0};                                             \
        format_pci(call.gpu, &full);                                          \
        memcpy(info, &full, bytes);                                           \
        return finish(&call, NVML_SUCCESS);                                   \
    }
// The structure of the first version ends before pciSubSystemId.
PCI_INFO(nvmlDeviceGetPciInfo, offsetof(nvmlPciInfo_t, pciSubSystemId))
PCI_INFO(nvmlDeviceGetPciInfo_v2, offsetof(nvmlPciInfo_t, busId))
PCI_INFO(nvmlDeviceGetPciInfo_v3, sizeof(nvmlPciInfo_t))

EXPORT nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, nvmlPciInfoExt_v1_t *info) {
    BEGIN_DEVICE(nvmlDeviceGetPciInfoExt, info != NULL);
    if (info->version != STRUCT_VERSION(*info, 1)) {
        return finish(&call, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
    }
    nvmlPciInfo_t full = {0};
    format_pci(call.gpu, &full);
    *info = (nvmlPciInfoExt_v1_t){
        .version = info->version, .domain = full.domain, .bus = full.bus, .device = full.device,
        .pciDeviceId = full.pciDeviceId, .pciSubSystemId = full.pciSubSystemId,
        .baseClass = 3, .subClass = 2,
    };
    memcpy(info->busId, full.busId, sizeof info->busId);
    return finish(&call, NVML_SUCCESS);
}

EXPORT int veo_fake_nvml_calls(const char *name) {
    unsigned long long total = 0;
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        if (name == NULL || function_matches((enum function)function, name)) {
            total += atomic_load_explicit(&calls[function], memory_order_relaxed);
        }
    }
    return (int)total;
}

EXPORT void veo_fake_nvml_scenario(const char *path) { scenario_set_path(path); }

// For tests that share a process: as if the library had just been loaded.
EXPORT void veo_fake_nvml_reset(void) {
    for (int function = 0; function < FUNCTION_COUNT; function++) {
        atomic_store_explicit(&calls[function], 0, memory_order_relaxed);
    }
    pthread_mutex_lock(&lock);
    session.references = 0;
    pthread_mutex_unlock(&lock);
}

EXPORT size_t veo_fake_nvml_sizeof(const char *name) {
#define SIZE(type) \
    if (strcmp(name, #type) == 0) return sizeof(type)
    SIZE(nvmlPciInfo_t);
    SIZE(nvmlPciInfoExt_v1_t);
    SIZE(nvmlSystemDriverBranchInfo_v1_t);
    SIZE(nvmlMemory_t);
    SIZE(nvmlMemory_v2_t);
    SIZE(nvmlBAR1Memory_t);
    SIZE(nvmlUtilization_t);
    SIZE(nvmlTemperature_v1_t);
    SIZE(nvmlMarginTemperature_v1_t);
    SIZE(nvmlProcessInfo_t);
    SIZE(nvmlProcessDetail_v1_t);
    SIZE(nvmlProcessDetailList_v1_t);
    SIZE(nvmlProcessUtilizationSample_t);
    SIZE(nvmlProcessUtilizationInfo_v1_t);
    SIZE(nvmlProcessesUtilizationInfo_v1_t);
    SIZE(nvmlValue_t);
    SIZE(nvmlSample_t);
    SIZE(nvmlFieldValue_t);
    SIZE(nvmlViolationTime_t);
    SIZE(nvmlEncoderSessionInfo_t);
    SIZE(nvmlFBCStats_t);
    SIZE(nvmlGridLicensableFeatures_t);
    SIZE(nvmlGridLicensableFeatures_v3_t);
    SIZE(nvmlGridLicensableFeatures_v4_t);
    SIZE(nvmlRowRemapperHistogramValues_t);
    SIZE(nvmlRemappedRowsInfo_v2_t);
    SIZE(nvmlEccErrorCounts_t);
    SIZE(nvmlEccSramErrorStatus_v1_t);
    SIZE(nvmlDeviceAttributes_t);
    SIZE(nvmlConfComputeMemSizeInfo_t);
    SIZE(nvmlGpuFabricInfo_v2_t);
    SIZE(nvmlGpuFabricInfo_v3_t);
    SIZE(nvmlEventData_t);
    SIZE(nvmlGpmSupport_t);
    SIZE(nvmlGpmMetric_t);
    SIZE(nvmlGpmMetricsGet_t);
#undef SIZE
    return 0;
}
