/* A plugin of PJRT for tests: programs return their first argument, whatever they say.

   The name of a program's module makes it do something else: to refuse it, to die, to hang, to give
   a wrong number. Its device keeps the elements of an array from the last to the first, and gives
   them so where no layout is asked for. pjrt_abi.h has the places of functions and fields. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pjrt_abi.h"

#define FIELD(type, args, name) (*(type *)((char *)(args) + name))

struct error { char text[80]; };
struct buffer { int32_t type; size_t rank; int64_t dims[8]; size_t size, width; char *bytes; };
struct executable { int is_wrong; };

static int client, device, description;
static void *devices[1] = {&device};
static size_t device_count = 1;
static char api[API_SIZE];

static struct error *failed(const char *text) {
    struct error *error = calloc(1, sizeof *error);
    strcpy(error->text, text);
    return error;
}

static void *nothing(void *args) { (void)args; return NULL; }

static void *release(void *args) { (void)args; return NULL; } /* a test is short */

static void *error_message(void *args) {
    struct error *error = FIELD(struct error *, args, PJRT_Error_Message_Args_error);
    FIELD(const char *, args, PJRT_Error_Message_Args_message) = error->text;
    FIELD(size_t, args, PJRT_Error_Message_Args_message_size) = strlen(error->text);
    return NULL;
}

static void *error_code(void *args) {
    FIELD(int32_t, args, PJRT_Error_GetCode_Args_code) = 3;
    return NULL;
}

static void *client_create(void *args) {
    char *option = FIELD(char *, args, PJRT_Client_Create_Args_create_options);
    size_t count = FIELD(size_t, args, PJRT_Client_Create_Args_num_options);
    for (size_t n = 0; n < count; ++n, option += PJRT_NamedValue_SIZE) {
        if (memcmp(FIELD(char *, option, PJRT_NamedValue_name), "devices", 7) == 0) {
            device_count = (size_t)FIELD(int64_t, option, PJRT_NamedValue_int64_value);
        } else if (FIELD(char, option, PJRT_NamedValue_bool_value)) {
            abort();
        } else {
            return failed("no chip of ours\nand more");
        }
    }
    FIELD(void *, args, PJRT_Client_Create_Args_client) = &client;
    return NULL;
}

static void *platform_name(void *args) {
    FIELD(const char *, args, PJRT_Client_PlatformName_Args_platform_name) = "tester";
    FIELD(size_t, args, PJRT_Client_PlatformName_Args_platform_name_size) = 6;
    return NULL;
}

static void *client_devices(void *args) {
    FIELD(void *, args, PJRT_Client_AddressableDevices_Args_addressable_devices) = devices;
    FIELD(size_t, args, PJRT_Client_AddressableDevices_Args_num_addressable_devices) = device_count;
    return NULL;
}

static void *device_description(void *args) {
    FIELD(void *, args, PJRT_Device_GetDescription_Args_device_description) = &description;
    return NULL;
}

static void *to_string(void *args) {
    FIELD(const char *, args, PJRT_DeviceDescription_ToString_Args_to_string) = "chip 0";
    FIELD(size_t, args, PJRT_DeviceDescription_ToString_Args_to_string_size) = 6;
    return NULL;
}

static void *compile(void *args) {
    void *program = FIELD(void *, args, PJRT_Client_Compile_Args_program);
    const char *code = FIELD(const char *, program, PJRT_Program_code);
    size_t size = FIELD(size_t, program, PJRT_Program_code_size);
    if (memmem(code, size, "it_is_refused", 13)) return failed("no room for it");
    if (memmem(code, size, "it_dies", 7)) abort();
    while (memmem(code, size, "it_hangs", 8)) { }
    struct executable *made = calloc(1, sizeof *made);
    made->is_wrong = memmem(code, size, "it_is_wrong", 11) != NULL;
    FIELD(void *, args, PJRT_Client_Compile_Args_executable) = made;
    return NULL;
}

static void *get_executable(void *args) {
    FIELD(void *, args, PJRT_LoadedExecutable_GetExecutable_Args_executable) =
        FIELD(void *, args, PJRT_LoadedExecutable_GetExecutable_Args_loaded_executable);
    return NULL;
}

static void *executable_devices(void *args) {
    FIELD(void *, args, PJRT_LoadedExecutable_AddressableDevices_Args_addressable_devices) =
        devices;
    FIELD(size_t, args, PJRT_LoadedExecutable_AddressableDevices_Args_num_addressable_devices) = 1;
    return NULL;
}

static void *output_count(void *args) {
    FIELD(size_t, args, PJRT_Executable_NumOutputs_Args_num_outputs) = 1;
    return NULL;
}

static void reverse(char *to, const char *from, size_t size, size_t width) {
    for (size_t at = 0; at < size; at += width) memcpy(to + at, from + size - width - at, width);
}

static size_t width_of(int32_t type) {
    static const unsigned char widths[] = ELEMENT_WIDTHS;
    return widths[type];
}

static void *from_host(void *args) {
    struct buffer *made = calloc(1, sizeof *made);
    made->type = FIELD(int32_t, args, PJRT_Client_BufferFromHostBuffer_Args_type);
    made->rank = FIELD(size_t, args, PJRT_Client_BufferFromHostBuffer_Args_num_dims);
    made->size = made->width = width_of(made->type);
    int64_t *dims = FIELD(int64_t *, args, PJRT_Client_BufferFromHostBuffer_Args_dims);
    for (size_t n = 0; n < made->rank; ++n) made->size *= (size_t)(made->dims[n] = dims[n]);
    made->bytes = malloc(made->size + 1);
    char *data = FIELD(char *, args, PJRT_Client_BufferFromHostBuffer_Args_data);
    reverse(made->bytes, data, made->size, made->width);
    FIELD(void *, args, PJRT_Client_BufferFromHostBuffer_Args_buffer) = made;
    return NULL;
}

static void *execute(void *args) {
    struct executable *self =
        FIELD(struct executable *, args, PJRT_LoadedExecutable_Execute_Args_executable);
    struct buffer ***given =
        FIELD(struct buffer ***, args, PJRT_LoadedExecutable_Execute_Args_argument_lists);
    struct buffer ***results =
        FIELD(struct buffer ***, args, PJRT_LoadedExecutable_Execute_Args_output_lists);
    struct buffer *made = malloc(sizeof *made);
    *made = *given[0][0];
    made->bytes = malloc(made->size + 1);
    memcpy(made->bytes, given[0][0]->bytes, made->size);
    if (self->is_wrong) made->bytes[made->width - 1] ^= 1;
    results[0][0] = made;
    return NULL;
}

static void *element_type(void *args) {
    FIELD(int32_t, args, PJRT_Buffer_ElementType_Args_type) =
        FIELD(struct buffer *, args, PJRT_Buffer_ElementType_Args_buffer)->type;
    return NULL;
}

static void *dimensions(void *args) {
    struct buffer *self = FIELD(struct buffer *, args, PJRT_Buffer_Dimensions_Args_buffer);
    FIELD(int64_t *, args, PJRT_Buffer_Dimensions_Args_dims) = self->dims;
    FIELD(size_t, args, PJRT_Buffer_Dimensions_Args_num_dims) = self->rank;
    return NULL;
}

static void *is_deleted(void *args) {
    FIELD(char, args, PJRT_Buffer_IsDeleted_Args_is_deleted) = 0;
    return NULL;
}

static void *to_host(void *args) {
    struct buffer *self = FIELD(struct buffer *, args, PJRT_Buffer_ToHostBuffer_Args_src);
    char *layout = FIELD(char *, args, PJRT_Buffer_ToHostBuffer_Args_host_layout);
    char *to = FIELD(char *, args, PJRT_Buffer_ToHostBuffer_Args_dst);
    if (FIELD(size_t, args, PJRT_Buffer_ToHostBuffer_Args_dst_size) != self->size)
        return failed("another size");
    if (layout == NULL) {
        memcpy(to, self->bytes, self->size);
        return NULL;
    }
    char *tiled = layout + PJRT_Buffer_MemoryLayout_tiled;
    int64_t *order = FIELD(int64_t *, tiled, PJRT_Buffer_MemoryLayout_Tiled_minor_to_major);
    for (size_t n = 0; n < self->rank; ++n)
        if (order[n] != (int64_t)(self->rank - 1 - n)) return failed("another order");
    reverse(to, self->bytes, self->size, self->width);
    return NULL;
}

#define FUNCTION(name, function) \
    FIELD(void *, api, VTABLE_OFFSET + SLOT_##name * sizeof(void *)) = (void *)function

void *GetPjrtApi(void) {
    FIELD(size_t, api, 0) = sizeof api;
    FIELD(int32_t, api, MAJOR_OFFSET) = MAJOR;
    FIELD(int32_t, api, MINOR_OFFSET) = MINOR;
    FUNCTION(PJRT_Error_Destroy, release);
    FUNCTION(PJRT_Error_Message, error_message);
    FUNCTION(PJRT_Error_GetCode, error_code);
    FUNCTION(PJRT_Plugin_Initialize, nothing);
    FUNCTION(PJRT_Client_Create, client_create);
    FUNCTION(PJRT_Client_Destroy, nothing);
    FUNCTION(PJRT_Client_PlatformName, platform_name);
    FUNCTION(PJRT_Client_AddressableDevices, client_devices);
    FUNCTION(PJRT_Device_GetDescription, device_description);
    FUNCTION(PJRT_DeviceDescription_ToString, to_string);
    FUNCTION(PJRT_Client_Compile, compile);
    FUNCTION(PJRT_LoadedExecutable_GetExecutable, get_executable);
    FUNCTION(PJRT_LoadedExecutable_AddressableDevices, executable_devices);
    FUNCTION(PJRT_LoadedExecutable_Execute, execute);
    FUNCTION(PJRT_LoadedExecutable_Destroy, release);
    FUNCTION(PJRT_Executable_NumOutputs, output_count);
    FUNCTION(PJRT_Executable_Destroy, nothing);
    FUNCTION(PJRT_Client_BufferFromHostBuffer, from_host);
    FUNCTION(PJRT_Buffer_ElementType, element_type);
    FUNCTION(PJRT_Buffer_Dimensions, dimensions);
    FUNCTION(PJRT_Buffer_IsDeleted, is_deleted);
    FUNCTION(PJRT_Buffer_ToHostBuffer, to_host);
    FUNCTION(PJRT_Buffer_Destroy, release);
    return api;
}
