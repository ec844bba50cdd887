/* The contract between the core library and a backend plugin.
 *
 * A plugin is a shared library that exports `clover_plugin_entry`, with a manifest beside it. The core reads the
 * manifest first: version and ABI are compared, and the probe is asked, before the library is opened. A probe is a
 * small library that exports `clover_plugin_probe`, for backends whose device may be absent.
 */
#ifndef CLOVER_PLUGIN_H_
#define CLOVER_PLUGIN_H_

#include <clover/abi.h>
#include <clover/abi_ops.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One call as a provider sees it. Everything in it has been validated, and the tensors' device is current. */
typedef struct clover_call {
  uint64_t struct_size;
  void* stream;
  void* workspace; /* at least what workspace_bytes() returned for these arguments */
  uint64_t workspace_bytes;
  int32_t device_id;
  int32_t reserved;
  char* message; /* where a provider that refuses or fails says why */
  uint64_t message_capacity;
} clover_call;

/* A provider of one operator. `args` and `dims` are the operator's clover_<op>_args (attributes resolved: defaults
 * filled in) and clover_<op>_dims (what each symbol of the schema is in this call). */
typedef struct clover_provider {
  uint64_t struct_size;
  uint32_t op;
  int32_t slot; /* 0-9 native, 10-19 Triton */
  const char* name;
  /* Whether it takes the call: 1, or 0 with a reason in call->message. Null: it takes every valid call. */
  int32_t (*accept)(const clover_call* call, const void* args, const void* dims);
  /* Scratch it needs, from shapes and attributes alone. Null: none. */
  uint64_t (*workspace_bytes)(const clover_call* call, const void* args, const void* dims);
  /* Puts the whole operator on call->stream and returns CLOVER_OK, or a status with a message. */
  int32_t (*run)(const clover_call* call, const void* args, const void* dims);
  /* Makes what run needs (a kernel that is compiled on first use). Asked in place of accept where a tuned table prefers
   * the provider: CLOVER_UNSUPPORTED where that would refuse, another status where the kernel cannot be had. Null:
   * nothing can be missing. */
  int32_t (*prepare)(const clover_call* call, const void* args, const void* dims);
} clover_provider;

/* What a tuned table knows of a call: the schema's symbols and the operator's integer attributes. */
typedef struct clover_sizes {
  const char* op;
  uint64_t count;
  const char* const* names;
  const int64_t* values;
} clover_sizes;

typedef struct clover_plugin {
  uint64_t struct_size;
  uint32_t abi_version;
  int32_t device_type;
  const char* name;    /* the backend's: "cpu" */
  const char* version; /* the distribution's, in lockstep with the core's */
  const clover_provider* const* providers;
  uint64_t provider_count;
  int32_t (*device_count)(void);
  /* Makes a device's context current and checks that the stream belongs to it; leave_device restores what was. Null on
   * devices without contexts. */
  int32_t (*enter_device)(int32_t device_id, void* stream, void** token, char* message, uint64_t capacity);
  void (*leave_device)(int32_t device_id, void* token);
  /* For CLOVER_OPS_DEBUG: copies device memory to the host after the stream's work; refused while capturing. Null where
   * the host reads device memory directly. */
  int32_t (*copy_to_host)(void* destination, const void* source, uint64_t bytes, void* stream, char* message,
                          uint64_t capacity);
  int32_t (*warmup)(int32_t device_id, char* message, uint64_t capacity);
  /* What `doctor` shows, as `key: value` lines; null for nothing. */
  const char* (*describe)(void);
  /* The slot that the device's tuned table prefers for a call, or CLOVER_ANY_SLOT. Null: there are no tables. */
  int32_t (*preferred_slot)(int32_t device_id, const clover_sizes* sizes);
  /* The interpreter to compile with, unless CLOVER_OPS_PYTHON names one. Null: it compiles nothing. */
  void (*set_python)(const char* path);
} clover_plugin;

CLOVER_EXPORT const clover_plugin* clover_plugin_entry(void);

/* Returns how many devices there are; fewer than one with the reason in `message`. */
CLOVER_EXPORT int32_t clover_plugin_probe(char* message, uint64_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* CLOVER_PLUGIN_H_ */
