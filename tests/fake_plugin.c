/* A plugin whose one device keeps tensors, computes nothing, and has little memory: what a real one answers only on a
   machine that lacks something. MAJOR is the version of the interface that it says it speaks, PLATFORM the device's.
   CUSTOM_CALLS is 0 without that extension, 1 if it refuses functions, and 2 if it is too short to have them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

#define BYTES (1 << 20)

struct PJRT_Error { PJRT_Error_Code code; const char* message; };
struct PJRT_Client { char options[256]; };
struct PJRT_Buffer { size_t size; char bytes[]; };

static struct PJRT_Error no_driver = {PJRT_Error_Code_FAILED_PRECONDITION, "no device: the driver is missing."};
static struct PJRT_Error no_memory = {PJRT_Error_Code_RESOURCE_EXHAUSTED, "nothing is left.\nThe allocator's state follows."};
static size_t used;
static int device;
static PJRT_Device* const devices[] = {(PJRT_Device*)&device};

static void destroy_error(PJRT_Error_Destroy_Args* a) { (void)a; }
static void message(PJRT_Error_Message_Args* a) { a->message = a->error->message; a->message_size = strlen(a->message); }
static PJRT_Error* code(PJRT_Error_GetCode_Args* a) { a->code = a->error->code; return NULL; }
static PJRT_Error* initialize(PJRT_Plugin_Initialize_Args* a) { (void)a; return NULL; }
static PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* a) { a->num_attributes = 0; return NULL; }

/* Writes down the options, for the client's version to tell. */
static PJRT_Error* create(PJRT_Client_Create_Args* a) {
  PJRT_Client* client = calloc(1, sizeof *client);
  char* end = client->options;
  for (size_t i = 0; i < a->num_options; i++) {
    const PJRT_NamedValue* option = &a->create_options[i];
    size_t left = (size_t)(client->options + sizeof client->options - end);
    int name = (int)option->name_size;
    if (option->type == PJRT_NamedValue_kBool && !strncmp(option->name, "no_driver", option->name_size)) {
      free(client);
      return &no_driver;
    }
    if (option->type == PJRT_NamedValue_kBool)
      end += snprintf(end, left, "%.*s=%d ", name, option->name, option->bool_value);
    else if (option->type == PJRT_NamedValue_kFloat)
      end += snprintf(end, left, "%.*s=%g ", name, option->name, option->float_value);
    else if (option->type == PJRT_NamedValue_kInt64)
      end += snprintf(end, left, "%.*s=%lld ", name, option->name, (long long)option->int64_value);
    else
      end += snprintf(end, left, "%.*s=? ", name, option->name);
  }
  a->client = client;
  return NULL;
}

static PJRT_Error* destroy(PJRT_Client_Destroy_Args* a) { free(a->client); return NULL; }
static PJRT_Error* platform(PJRT_Client_PlatformName_Args* a) { a->platform_name = PLATFORM; a->platform_name_size = strlen(PLATFORM); return NULL; }
static PJRT_Error* version(PJRT_Client_PlatformVersion_Args* a) {
  a->platform_version = a->client->options;
  a->platform_version_size = strlen(a->client->options);
  return NULL;
}
static PJRT_Error* addressable(PJRT_Client_AddressableDevices_Args* a) {
  a->addressable_devices = devices;
  a->num_addressable_devices = 1;
  return NULL;
}
static PJRT_Error* description(PJRT_Device_GetDescription_Args* a) {
  a->device_description = (PJRT_DeviceDescription*)a->device;
  return NULL;
}
static PJRT_Error* id(PJRT_DeviceDescription_Id_Args* a) { a->id = 0; return NULL; }
static PJRT_Error* process(PJRT_DeviceDescription_ProcessIndex_Args* a) { a->process_index = 0; return NULL; }
static PJRT_Error* kind(PJRT_DeviceDescription_Kind_Args* a) { a->device_kind = "cardboard"; a->device_kind_size = 9; return NULL; }
static PJRT_Error* debug(PJRT_DeviceDescription_DebugString_Args* a) { a->debug_string = ""; a->debug_string_size = 0; return NULL; }
static PJRT_Error* properties(PJRT_DeviceDescription_Attributes_Args* a) { a->num_attributes = 0; return NULL; }
static PJRT_Error* memory(PJRT_Device_MemoryStats_Args* a) {
  a->bytes_in_use = (int64_t)used;
  a->bytes_limit = BYTES;
  a->bytes_limit_is_set = true;
  return NULL;
}

/* Every element of the tests has four bytes. */
static PJRT_Error* put(PJRT_Client_BufferFromHostBuffer_Args* a) {
  size_t size = 4;
  for (size_t i = 0; i < a->num_dims; i++) size *= (size_t)a->dims[i];
  if (used + size > BYTES) return &no_memory;
  used += size;
  a->buffer = malloc(sizeof(struct PJRT_Buffer) + size);
  a->buffer->size = size;
  memcpy(a->buffer->bytes, a->data, size);
  return NULL;
}
static PJRT_Error* drop(PJRT_Buffer_Destroy_Args* a) { used -= a->buffer->size; free(a->buffer); return NULL; }

static PJRT_Error* ready(PJRT_Buffer_ReadyEvent_Args* a) { a->event = NULL; return NULL; }
static PJRT_Error* pointer(PJRT_Buffer_UnsafePointer_Args* a) { a->buffer_pointer = (uintptr_t)a->buffer->bytes; return NULL; }
static PJRT_Error* slot(PJRT_Device_LocalHardwareId_Args* a) { a->local_hardware_id = 3; return NULL; }

static PJRT_Error* refuse(void* a) { (void)a; return &no_driver; }
static struct { PJRT_Extension_Base base; void* types; void* data; PJRT_Error* (*add)(void*); } calls = {
    {CUSTOM_CALLS == 2 ? sizeof(PJRT_Extension_Base) : sizeof calls, PJRT_Extension_Type_FFI, NULL}, NULL, NULL, refuse};

static PJRT_Api table;

const PJRT_Api* GetPjrtApi(void) {
  table.struct_size = sizeof table;
  if (CUSTOM_CALLS) table.extension_start = &calls.base;
  table.pjrt_api_version.struct_size = sizeof table.pjrt_api_version;
  table.pjrt_api_version.major_version = MAJOR;
  table.pjrt_api_version.minor_version = PJRT_API_MINOR;
  table.PJRT_Error_Destroy = destroy_error;
  table.PJRT_Error_Message = message;
  table.PJRT_Error_GetCode = code;
  table.PJRT_Plugin_Initialize = initialize;
  table.PJRT_Plugin_Attributes = attributes;
  table.PJRT_Client_Create = create;
  table.PJRT_Client_Destroy = destroy;
  table.PJRT_Client_PlatformName = platform;
  table.PJRT_Client_PlatformVersion = version;
  table.PJRT_Client_AddressableDevices = addressable;
  table.PJRT_Device_GetDescription = description;
  table.PJRT_DeviceDescription_Id = id;
  table.PJRT_DeviceDescription_ProcessIndex = process;
  table.PJRT_DeviceDescription_Kind = kind;
  table.PJRT_DeviceDescription_DebugString = debug;
  table.PJRT_DeviceDescription_Attributes = properties;
  table.PJRT_Device_MemoryStats = memory;
  table.PJRT_Client_BufferFromHostBuffer = put;
  table.PJRT_Buffer_Destroy = drop;
  table.PJRT_Buffer_ReadyEvent = ready;
  table.PJRT_Buffer_UnsafePointer = pointer;
  table.PJRT_Device_LocalHardwareId = slot;
  return &table;
}
