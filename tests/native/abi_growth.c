/* The C ABI from C: structs of an older caller are completed with defaults, those of a newer one are refused. */
#include <clover/abi_ops.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static int failures, checks;

static void expect(int passed, const char* text, int line) {
  ++checks;
  if (passed) return;
  ++failures;
  printf("abi_growth.c:%d: %s (last error: %s)\n", line, text, clover_last_error());
}

#define CHECK(condition) expect((condition) != 0, #condition, __LINE__)
#define CHECK_REFUSED(call, status, part)             \
  do {                                                \
    CHECK((call) == (status));                        \
    CHECK(strstr(clover_last_error(), part) != NULL); \
  } while (0)

enum { T = 3, K = 4, V = 2 };

static float q[T * K], k[T * K], v[T * V], g[T], beta[T], state[V * K], o[T * V], first[T * V];
static int32_t cu_seqlens[2] = {0, T}, slots[1] = {0};
static const int64_t shape_qk[] = {T, 1, K}, shape_v[] = {T, 1, V}, shape_g[] = {T, 1}, shape_state[] = {1, 1, V, K};
static const int64_t shape_cu[] = {2}, shape_slots[] = {1};
static clover_tensor tensors[9];
static _Alignas(CLOVER_WORKSPACE_ALIGNMENT) char workspace[1 << 20];

static const clover_tensor* tensor(int i, void* data, int32_t ndim, const int64_t* shape, uint8_t code) {
  clover_tensor* t = &tensors[i];
  memset(t, 0, sizeof(*t));
  t->data = data;
  t->device_type = CLOVER_CPU;
  t->ndim = ndim;
  t->dtype.code = code;
  t->dtype.bits = 32;
  t->dtype.lanes = 1;
  t->shape = shape;
  return t;
}

/* Every field that is not set here is 0xFF, so that whoever reads one shows it. */
static clover_preview_gated_delta_rule_args make_args(void) {
  clover_preview_gated_delta_rule_args args;
  memset(&args, 0xFF, sizeof(args));
  args.struct_size = sizeof(args);
  args.given = 0;
  args.q = tensor(0, q, 3, shape_qk, CLOVER_FLOAT);
  args.k = tensor(1, k, 3, shape_qk, CLOVER_FLOAT);
  args.v = tensor(2, v, 3, shape_v, CLOVER_FLOAT);
  args.g = tensor(3, g, 2, shape_g, CLOVER_FLOAT);
  args.beta = tensor(4, beta, 2, shape_g, CLOVER_FLOAT);
  args.state = tensor(5, state, 4, shape_state, CLOVER_FLOAT);
  args.cu_seqlens = tensor(6, cu_seqlens, 1, shape_cu, CLOVER_INT);
  args.initial_state_indices = tensor(7, slots, 1, shape_slots, CLOVER_INT);
  args.o = tensor(8, o, 3, shape_v, CLOVER_FLOAT);
  return args;
}

static clover_handle make_handle(void) {
  clover_handle handle = {sizeof(clover_handle), NULL, workspace, sizeof(workspace), CLOVER_ANY_SLOT};
  return handle;
}

static void fill(void) {
  for (int i = 0; i < T * K; ++i) q[i] = (float)(i % 5) - 2, k[i] = (float)(i % 3) * 0.25f;
  for (int i = 0; i < T * V; ++i) v[i] = (float)i;
  for (int i = 0; i < T; ++i) g[i] = -0.5f, beta[i] = 0.5f;
  for (int i = 0; i < V * K; ++i) state[i] = (float)(i % 4);
}

static void older_args(void) {
  clover_handle handle = make_handle();
  clover_preview_gated_delta_rule_args args = make_args();
  args.given = 15;
  args.scale = 0.5; /* K ** -0.5 */
  args.l2norm = 0;
  args.read = CLOVER_preview_gated_delta_rule_read_bidirectional;
  args.max_seqlen = T;
  CHECK(clover_preview_gated_delta_rule(&handle, &args) == CLOVER_OK);
  memcpy(first, o, sizeof(o));
  CHECK(first[T * V - 1] != 0);

  /* From before max_seqlen, from before read, from before any attribute. */
  const size_t sizes[] = {offsetof(clover_preview_gated_delta_rule_args, max_seqlen),
                          offsetof(clover_preview_gated_delta_rule_args, read),
                          offsetof(clover_preview_gated_delta_rule_args, scale)};
  for (int i = 0; i < 3; ++i) {
    args = make_args();
    args.struct_size = sizes[i];
    memset(o, 0, sizeof(o));
    uint64_t bytes = 0;
    CHECK(clover_preview_gated_delta_rule_workspace_size(&handle, &args, &bytes) == CLOVER_OK);
    CHECK(bytes > 0 && bytes <= sizeof(workspace));
    CHECK(clover_preview_gated_delta_rule(&handle, &args) == CLOVER_OK);
    CHECK(memcmp(first, o, sizeof(o)) == 0);
  }

  /* The same by number. */
  memset(o, 0, sizeof(o));
  CHECK(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, &handle, &args, NULL) == CLOVER_OK);
  CHECK(memcmp(first, o, sizeof(o)) == 0);

  /* Older than a tensor that has no default. */
  args.struct_size = offsetof(clover_preview_gated_delta_rule_args, o);
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_INVALID_ARGUMENT, "o is missing");
}

static void foreign_args(void) {
  clover_handle handle = make_handle();
  clover_preview_gated_delta_rule_args args = make_args();
  memset(o, 0, sizeof(o));
  const uint64_t sizes[] = {sizeof(args) + 8, UINT64_MAX, 8, 0};
  for (int i = 0; i < 4; ++i) {
    args.struct_size = sizes[i];
    CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_ABI_MISMATCH,
                  "preview_gated_delta_rule: args.struct_size is");
  }
  args = make_args();
  args.given = 16; /* an attribute of a later version */
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_ABI_MISMATCH,
                "args.given names attributes this library does not know");
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, NULL), CLOVER_INVALID_ARGUMENT, "args is null");
  CHECK_REFUSED(clover_call_operator(12345, &handle, &args, NULL), CLOVER_INVALID_ARGUMENT,
                "no operator has number 12345");
  for (int i = 0; i < T * V; ++i) CHECK(o[i] == 0);
}

static void attributes_out_of_range(void) {
  clover_handle handle = make_handle();
  clover_preview_gated_delta_rule_args args = make_args();
  args.given = 4;
  args.read = 3;
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_INVALID_ARGUMENT,
                "read must be one of bidirectional, block, causal, got number 3");
  args.given = 2;
  args.l2norm = 2;
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_INVALID_ARGUMENT,
                "l2norm must be 0 or 1, got 2");
}

static void handles(void) {
  clover_preview_gated_delta_rule_args args = make_args();
  uint64_t bytes = 0;
  CHECK(clover_preview_gated_delta_rule_workspace_size(NULL, &args, &bytes) == CLOVER_OK);
  CHECK(bytes > 0);
  CHECK_REFUSED(clover_preview_gated_delta_rule(NULL, &args), CLOVER_MISSING_WORKSPACE, "workspace is missing");

  /* No workspace is needed here: a null handle runs. */
  clover_cast_args cast = {sizeof(cast), 0, args.v, args.o};
  memset(o, 0, sizeof(o));
  CHECK(clover_cast(NULL, &cast) == CLOVER_OK);
  CHECK(memcmp(o, v, sizeof(o)) == 0);

  /* An older handle, whose slot, then workspace, are beyond its end. */
  clover_handle handle = make_handle();
  handle.provider_slot = 12345;
  handle.struct_size = offsetof(clover_handle, provider_slot);
  memset(o, 0, sizeof(o));
  CHECK(clover_preview_gated_delta_rule(&handle, &args) == CLOVER_OK);
  CHECK(memcmp(first, o, sizeof(o)) == 0);
  handle.struct_size = offsetof(clover_handle, workspace);
  CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_MISSING_WORKSPACE, "workspace is missing");

  const uint64_t sizes[] = {sizeof(handle) + 8, 7, 0};
  for (int i = 0; i < 3; ++i) {
    handle.struct_size = sizes[i];
    CHECK_REFUSED(clover_preview_gated_delta_rule(&handle, &args), CLOVER_ABI_MISMATCH, "handle.struct_size is");
  }
}

/* A caller that allocates only what it must: the first call tells how much, or has already run. */
static void ask_by_calling(void) {
  clover_preview_gated_delta_rule_args args = make_args();
  clover_handle none = make_handle(), handle = make_handle();
  none.workspace = NULL;
  none.workspace_bytes = 0;
  uint64_t missing = 0, bytes = 0;
  memset(o, 0, sizeof(o));
  CHECK(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, &none, &args, &missing) == CLOVER_OK);
  CHECK(clover_preview_gated_delta_rule_workspace_size(&none, &args, &bytes) == CLOVER_OK);
  CHECK(missing > 0 && missing == bytes);
  for (int i = 0; i < T * V; ++i) CHECK(o[i] == 0);

  CHECK(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, NULL, &args, &missing) == CLOVER_OK);
  CHECK(missing == bytes);
  CHECK(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, &handle, &args, &missing) == CLOVER_OK);
  CHECK(missing == 0);
  CHECK(memcmp(first, o, sizeof(o)) == 0);

  /* A workspace that is there and too small stays an error. */
  handle.workspace_bytes = bytes - 1;
  CHECK_REFUSED(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, &handle, &args, &missing),
                CLOVER_MISSING_WORKSPACE, "workspace is too small");
  CHECK_REFUSED(clover_call_operator(CLOVER_OP_preview_gated_delta_rule, &none, &args, NULL), CLOVER_MISSING_WORKSPACE,
                "workspace is missing");

  clover_cast_args cast = {sizeof(cast), 0, args.v, args.o};
  missing = 99;
  CHECK(clover_call_operator(CLOVER_OP_cast, NULL, &cast, &missing) == CLOVER_OK);
  CHECK(missing == 0);
  CHECK(memcmp(o, v, sizeof(o)) == 0);
}

int main(void) {
  CHECK(clover_abi_version() == CLOVER_ABI_VERSION);
  CHECK(strcmp(clover_version(), EXPECTED_VERSION) == 0);
  fill();
  older_args();
  foreign_args();
  attributes_out_of_range();
  handles();
  ask_by_calling();
  printf("%d checks, %d failures\n", checks, failures);
  return failures != 0;
}
