/* Clover's C ABI: what every boundary between libraries is made of.
 *
 * Errors are codes with a message; no exception crosses a boundary. Every struct that may grow begins with its own
 * size: a callee reads no further than the size says and takes defaults for what is beyond it.
 * The per-operator structs and functions are in <clover/abi_ops.h>, generated from the operator schema.
 */
#ifndef CLOVER_ABI_H_
#define CLOVER_ABI_H_

#include <stdint.h>

#if defined(_WIN32)
#define CLOVER_EXPORT __declspec(dllexport)
#else
#define CLOVER_EXPORT __attribute__((visibility("default")))
#endif

#define CLOVER_ABI_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

typedef enum clover_status {
  CLOVER_OK = 0,
  CLOVER_INVALID_ARGUMENT = 1,  /* the call is wrong whatever the backend */
  CLOVER_UNSUPPORTED = 2,       /* no provider takes it here */
  CLOVER_MISSING_WORKSPACE = 3, /* workspace missing, too small or misaligned */
  CLOVER_DRIVER_ERROR = 4,      /* a device driver refused or failed */
  CLOVER_COMPILE_ERROR = 5,     /* a kernel could not be compiled or loaded */
  CLOVER_ABI_MISMATCH = 6,      /* a plugin or caller of another version */
  CLOVER_INTERNAL = 7           /* a bug, or memory exhausted */
} clover_status;

/* Device types and dtype codes are DLPack's. */
enum { CLOVER_CPU = 1, CLOVER_CUDA = 2, CLOVER_ROCM = 10 };
enum { CLOVER_INT = 0, CLOVER_UINT = 1, CLOVER_FLOAT = 2, CLOVER_BFLOAT = 4, CLOVER_COMPLEX = 5, CLOVER_BOOL = 6 };

typedef struct clover_dtype {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} clover_dtype;

/* The same layout as DLPack's DLTensor, so that a pointer to one is a pointer to the other. */
typedef struct clover_tensor {
  void* data;
  int32_t device_type;
  int32_t device_id;
  int32_t ndim;
  clover_dtype dtype;
  const int64_t* shape;
  const int64_t* strides; /* in elements; null means contiguous */
  uint64_t byte_offset;
} clover_tensor;

#define CLOVER_WORKSPACE_ALIGNMENT 256
#define CLOVER_ANY_SLOT (-1)

/* How a call is to run. A null handle means: default stream, no workspace, any provider. */
typedef struct clover_handle {
  uint64_t struct_size;
  void* stream;    /* CUstream or hipStream_t; ignored on the CPU */
  void* workspace; /* aligned to CLOVER_WORKSPACE_ALIGNMENT, on the tensors' device */
  uint64_t workspace_bytes;
  int32_t provider_slot; /* CLOVER_ANY_SLOT, or the slot that must run the call */
} clover_handle;

CLOVER_EXPORT uint32_t clover_abi_version(void);
CLOVER_EXPORT const char* clover_version(void);

/* The message of this thread's last failed call; empty when there was none. Valid until the thread's next call. */
CLOVER_EXPORT const char* clover_last_error(void);

/* Loads the plugin that a manifest describes. Loading a manifest twice is harmless. */
CLOVER_EXPORT int32_t clover_load_plugin(const char* manifest_path);

/* Loads every plugin beside the core library and in CLOVER_OPS_PLUGIN_PATH. Runs by itself before the first call that
 * needs a provider; calling it again looks again. A broken plugin is recorded with its reason, never an error here. */
CLOVER_EXPORT int32_t clover_discover_plugins(void);

/* Any operator by its number; `args` is its clover_<op>_args. What clover_<op> and clover_<op>_workspace_size do. With
 * `missing`, a call whose handle has no workspace is not refused for that: it does nothing and stores the bytes it
 * needs (0 when it has run). */
CLOVER_EXPORT int32_t clover_call_operator(uint32_t op, const clover_handle* handle, const void* args,
                                           uint64_t* missing);
CLOVER_EXPORT int32_t clover_operator_workspace_size(uint32_t op, const clover_handle* handle, const void* args,
                                                     uint64_t* bytes);

/* Whether `backend`'s manifest lists the operator. CLOVER_INVALID_ARGUMENT for an operator or backend not known. */
CLOVER_EXPORT int32_t clover_provides(uint32_t op, const char* backend, int32_t* answer);

/* Whether an active provider exists for the operator on such a device. */
CLOVER_EXPORT int32_t clover_supports(uint32_t op, int32_t device_type, int32_t device_id, int32_t* answer);

/* Loads all prebuilt kernels of a device's backends, so that calls can be captured in a graph. */
CLOVER_EXPORT int32_t clover_warmup(int32_t device_type, int32_t device_id);

/* The Python interpreter that this program lives in, for backends that compile kernels on first use; CLOVER_OPS_PYTHON
 * wins over it, and without either they run python3. Null takes it back. */
CLOVER_EXPORT int32_t clover_set_python(const char* path);

/* The registry as JSON: {"version", "abi", "plugins": [...], "operators": [...]}. The text is handed to `sink` once. */
typedef void (*clover_text_sink)(void* context, const char* text, uint64_t size);
CLOVER_EXPORT int32_t clover_describe(clover_text_sink sink, void* context);

#ifdef __cplusplus
}
#endif

#endif /* CLOVER_ABI_H_ */
