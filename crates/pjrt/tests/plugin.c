/* A minimal plugin that only answers calls. Its layouts are written by hand from the documentation of the PJRT C API.
   The test builds it several times, with different values of the macros. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct base { size_t size; int type; struct base* next; };
struct version { size_t size; struct base* ext; int major, minor; };
struct error { int code; const char* message; };
struct destroy_args { size_t size; struct base* ext; struct error* error; };
struct message_args { size_t size; struct base* ext; const struct error* error; const char* message; size_t message_size; };
struct code_args { size_t size; struct base* ext; const struct error* error; int code; };
struct value {
  size_t size; struct base* ext; const char* name; size_t name_size; int type;
  union { const char* s; int64_t i; const int64_t* l; float f; _Bool b; } v;
  size_t value_size;
};
struct attributes_args { size_t size; struct base* ext; const struct value* attributes; size_t count; };

static struct error failure = {8, "no memory left"};
static void destroy(struct destroy_args* a) { a->error->code = 0; }
static void message(struct message_args* a) { a->message = a->error->message; a->message_size = strlen(a->error->message); }
static struct error* code(struct code_args* a) { a->code = a->error->code; return NULL; }
static struct error* initialize(void* a) { (void)a; return FAIL ? &failure : NULL; }
static const int64_t list[] = {1, 13, 0};
static struct value values[] = {
  {sizeof(struct value), NULL, "xla_version", 11, 1, {.i = 2}, 1},
  {sizeof(struct value), NULL, "stablehlo_current_version", 25, 2, {.l = list}, 3},
  {sizeof(struct value), NULL, "from_the_future", 15, 99, {.i = 0}, 1},
};
static struct error* attributes(struct attributes_args* a) { a->attributes = values; a->count = 3; return NULL; }

static struct base second = {sizeof(struct base), 9, NULL};
static struct base first = {sizeof(struct base), 4, &second};
static struct {
  size_t size; struct base* ext; struct version version;
  void (*destroy)(struct destroy_args*); void (*message)(struct message_args*); struct error* (*code)(struct code_args*);
  struct error* (*initialize)(void*); struct error* (*attributes)(struct attributes_args*);
} table = {SIZE, &first, {sizeof(struct version), NULL, MAJOR, 81}, destroy, message, code, initialize, attributes};

const void* GetPjrtApi(void) { return &table; }
