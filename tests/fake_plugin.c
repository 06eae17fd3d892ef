/* A plugin whose one device keeps tensors, computes nothing, and has little memory: what a real one answers only on a
   machine that lacks something. MAJOR is the version of the interface that it says it speaks, PLATFORM the device's.
   CUSTOM_CALLS is 0 without that extension, 1 if it refuses functions, and 2 if it is too short to have them.
   With the options of several processes (node_id, num_nodes) it exchanges with the clients of the others what devices
   they have, by the same calls as XLA's plugins for GPUs, waiting WAIT milliseconds. Each process then has two devices.
   Without COMPUTES it neither runs programs nor reads tensors back. With it, any program adds 10 times the id of the
   device that runs it to the numbers of its first argument. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pjrt_c_api.h"

#define BYTES (1 << 20)

#define MOST 64
#define EACH 2

struct PJRT_Error { PJRT_Error_Code code; const char* message; bool is_made; };
struct PJRT_Device { int id, process; bool is_here; };
struct PJRT_Client {
  char options[512];
  int count, here;
  PJRT_Device all[MOST];
  PJRT_Device *devices[MOST], *own[EACH];
};
struct PJRT_Buffer { PJRT_Buffer_Type type; size_t rank, size; int64_t sizes[8]; char bytes[]; };
struct PJRT_LoadedExecutable { PJRT_Client* client; };
struct PJRT_Executable { int unused; };

static struct PJRT_Error no_driver = {PJRT_Error_Code_FAILED_PRECONDITION, "no device: the driver is missing."};
static struct PJRT_Error no_memory = {PJRT_Error_Code_RESOURCE_EXHAUSTED, "nothing is left.\nThe allocator's state follows."};
static struct PJRT_Error unexpected = {PJRT_Error_Code_INTERNAL, "the key-value store has not what was put there."};
static size_t used;

static void destroy_error(PJRT_Error_Destroy_Args* a) {
  if (a->error->is_made) { free((char*)a->error->message); free(a->error); }
}
static void message(PJRT_Error_Message_Args* a) { a->message = a->error->message; a->message_size = strlen(a->message); }
static PJRT_Error* code(PJRT_Error_GetCode_Args* a) { a->code = a->error->code; return NULL; }
static PJRT_Error* initialize(PJRT_Plugin_Initialize_Args* a) { (void)a; return NULL; }
static PJRT_Error* attributes(PJRT_Plugin_Attributes_Args* a) { a->num_attributes = 0; return NULL; }

/* What a callback makes its errors with. */
static PJRT_Error* make_error(PJRT_Error_Code code, const char* text, size_t size) {
  char* copy = malloc(size + 1);
  memcpy(copy, text, size);
  copy[size] = 0;
  PJRT_Error* made = malloc(sizeof *made);
  *made = (PJRT_Error){code, copy, true};
  return made;
}
static PJRT_CallbackError error_maker = make_error;

static PJRT_Error* kv_put(PJRT_Client_Create_Args* a, const char* key, const char* value, size_t size) {
  PJRT_KeyValuePutCallback_Args put = {sizeof put, NULL, key, strlen(key), value, size, &error_maker, a->kv_put_user_arg};
  return a->kv_put_callback(&put);
}

/* Gets a value, waiting for it unless `now`. */
static PJRT_Error* kv_get(PJRT_Client_Create_Args* a, const char* key, bool now, char* value, size_t* size) {
  PJRT_KeyValueGetCallback_Args get = {sizeof get, NULL, key, strlen(key), WAIT, &error_maker, a->kv_get_user_arg, NULL, 0, NULL};
  PJRT_KeyValueTryGetCallback_Args try = {sizeof try, NULL, key, strlen(key), &error_maker, a->kv_try_get_user_arg, NULL, 0, NULL};
  PJRT_Error* error = now ? a->kv_try_get_callback(&try) : a->kv_get_callback(&get);
  if (error) return error;
  char* got = now ? try.value : get.value;
  *size = now ? try.value_size : get.value_size;
  memcpy(value, got, *size);
  (now ? try.value_deleter_callback : get.value_deleter_callback)(got);
  return NULL;
}

/* An error unless `error` is one of that code, which is freed. */
static PJRT_Error* expect(PJRT_Error* error, PJRT_Error_Code code) {
  if (!error || error->code != code) return error ? error : &unexpected;
  PJRT_Error_Destroy_Args a = {sizeof a, NULL, error};
  destroy_error(&a);
  return NULL;
}

/* The processes tell each other how many devices they have: each puts a byte, the first one puts all bytes together. */
static PJRT_Error* exchange(PJRT_Client_Create_Args* a, PJRT_Client* client, int node, int nodes) {
  char key[64], all[MOST] = {0}, mine[] = {0, EACH};
  size_t size;
  PJRT_Error* error;
  snprintf(key, sizeof key, "local_topology/fake/%d", node);
  if ((error = expect(kv_get(a, key, true, all, &size), PJRT_Error_Code_NOT_FOUND))) return error;
  if ((error = kv_put(a, key, mine, sizeof mine))) return error;
  if ((error = expect(kv_put(a, key, mine, sizeof mine), PJRT_Error_Code_ALREADY_EXISTS))) return error;
  if (node == 0) {
    for (int i = 0; i < nodes; i++) {
      char its[MOST];
      snprintf(key, sizeof key, "local_topology/fake/%d", i);
      if ((error = kv_get(a, key, false, its, &size))) return error;
      if (size != sizeof mine || its[0] != 0) return &unexpected;
      all[i] = its[1];
    }
    if ((error = kv_put(a, "global_topology/fake", all, (size_t)nodes))) return error;
  } else {
    if ((error = kv_get(a, "global_topology/fake", false, all, &size))) return error;
    if (size != (size_t)nodes) return &unexpected;
  }
  client->count = client->here = 0;
  for (int i = 0; i < nodes; i++)
    for (int j = 0; j < all[i]; j++, client->count++) {
      client->all[client->count] = (PJRT_Device){client->count, i, i == node};
      if (i == node) client->own[client->here++] = &client->all[client->count];
    }
  return NULL;
}

/* Writes down the options, for the client's version to tell. */
static PJRT_Error* create(PJRT_Client_Create_Args* a) {
  PJRT_Client* client = calloc(1, sizeof *client);
  int64_t node = 0, nodes = 1;
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
    else if (option->type == PJRT_NamedValue_kInt64 && (end += snprintf(end, left, "%.*s=%lld ", name, option->name, (long long)option->int64_value))) {
      if (!strncmp(option->name, "node_id", option->name_size)) node = option->int64_value;
      if (!strncmp(option->name, "num_nodes", option->name_size)) nodes = option->int64_value;
    } else
      end += snprintf(end, left, "%.*s=? ", name, option->name);
  }
  client->count = client->here = 1;
  client->all[0] = (PJRT_Device){0, 0, true};
  client->own[0] = &client->all[0];
  PJRT_Error* error = nodes > 1 ? exchange(a, client, (int)node, (int)nodes) : NULL;
  if (error) {
    free(client);
    return error;
  }
  for (int i = 0; i < client->count; i++) client->devices[i] = &client->all[i];
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
  a->addressable_devices = a->client->own;
  a->num_addressable_devices = (size_t)a->client->here;
  return NULL;
}
static PJRT_Error* all_devices(PJRT_Client_Devices_Args* a) {
  a->devices = a->client->devices;
  a->num_devices = (size_t)a->client->count;
  return NULL;
}
static PJRT_Error* is_here(PJRT_Device_IsAddressable_Args* a) { a->is_addressable = a->device->is_here; return NULL; }
static PJRT_Error* description(PJRT_Device_GetDescription_Args* a) {
  a->device_description = (PJRT_DeviceDescription*)a->device;
  return NULL;
}
static PJRT_Error* id(PJRT_DeviceDescription_Id_Args* a) { a->id = ((PJRT_Device*)a->device_description)->id; return NULL; }
static PJRT_Error* process(PJRT_DeviceDescription_ProcessIndex_Args* a) { a->process_index = ((PJRT_Device*)a->device_description)->process; return NULL; }
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
static PJRT_Error* new_buffer(PJRT_Buffer_Type type, const int64_t* sizes, size_t rank, PJRT_Buffer** buffer) {
  size_t size = 4;
  for (size_t i = 0; i < rank; i++) size *= (size_t)sizes[i];
  if (used + size > BYTES) return &no_memory;
  used += size;
  *buffer = calloc(1, sizeof(struct PJRT_Buffer) + size);
  (*buffer)->type = type;
  (*buffer)->rank = rank;
  (*buffer)->size = size;
  memcpy((*buffer)->sizes, sizes, rank * sizeof *sizes);
  return NULL;
}
static PJRT_Error* put(PJRT_Client_BufferFromHostBuffer_Args* a) {
  PJRT_Error* error = new_buffer(a->type, a->dims, a->num_dims, &a->buffer);
  if (!error) memcpy(a->buffer->bytes, a->data, a->buffer->size);
  return error;
}
static PJRT_Error* type(PJRT_Buffer_ElementType_Args* a) { a->type = a->buffer->type; return NULL; }
static PJRT_Error* sizes(PJRT_Buffer_Dimensions_Args* a) { a->dims = a->buffer->sizes; a->num_dims = a->buffer->rank; return NULL; }
static PJRT_Error* read_back(PJRT_Buffer_ToHostBuffer_Args* a) {
  if (a->dst) memcpy(a->dst, a->src->bytes, a->src->size);
  a->dst_size = a->src->size;
  a->event = NULL;
  return NULL;
}

/* Programs: one result each, on each device of this process. */
static PJRT_Error* compile(PJRT_Client_Compile_Args* a) {
  a->executable = malloc(sizeof *a->executable);
  a->executable->client = a->client;
  return NULL;
}
static PJRT_Error* executable(PJRT_LoadedExecutable_GetExecutable_Args* a) { a->executable = malloc(sizeof *a->executable); return NULL; }
static PJRT_Error* drop_executable(PJRT_Executable_Destroy_Args* a) { free(a->executable); return NULL; }
static PJRT_Error* drop_loaded(PJRT_LoadedExecutable_Destroy_Args* a) { free(a->executable); return NULL; }
static PJRT_Error* outputs(PJRT_Executable_NumOutputs_Args* a) { a->num_outputs = 1; return NULL; }
static PJRT_Error* execute(PJRT_LoadedExecutable_Execute_Args* a) {
  PJRT_Client* client = a->executable->client;
  if (!a->execute_device && a->num_devices != (size_t)client->here) return &unexpected;
  for (size_t i = 0; i < a->num_devices; i++) {
    PJRT_Device* device = a->execute_device ? a->execute_device : client->own[i];
    PJRT_Buffer* x = a->argument_lists[i][0];
    PJRT_Buffer** y = a->output_lists[i];
    PJRT_Error* error = new_buffer(x->type, x->sizes, x->rank, y);
    if (error) return error;
    for (size_t n = 0; n < x->size / 4; n++) ((float*)(*y)->bytes)[n] = ((float*)x->bytes)[n] + 10.0f * (float)device->id;
  }
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
  table.PJRT_Client_Devices = all_devices;
  table.PJRT_Device_IsAddressable = is_here;
  table.PJRT_Buffer_ElementType = type;
  table.PJRT_Buffer_Dimensions = sizes;
  if (COMPUTES) table.PJRT_Buffer_ToHostBuffer = read_back;
  if (COMPUTES) table.PJRT_Client_Compile = compile;
  table.PJRT_LoadedExecutable_GetExecutable = executable;
  table.PJRT_LoadedExecutable_Destroy = drop_loaded;
  table.PJRT_LoadedExecutable_Execute = execute;
  table.PJRT_Executable_Destroy = drop_executable;
  table.PJRT_Executable_NumOutputs = outputs;
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
