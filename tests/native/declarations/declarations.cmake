# Which operators <clover/ops.h> declares: clover_ops_declarations() and `clover-ops declarations` on the toy backend.
set(toy_manifest "${toy_folder}/plugin.manifest")

# A registry that names every operator compiles against one backend when it declares them all. As the toy backend of a
# device of its own, and as one that takes the CPU from the CPU backend.
foreach(backend IN ITEMS toy toy_cpu)
  set(constant CLOVER_ROCM)
  if(backend STREQUAL "toy_cpu")
    set(constant CLOVER_CPU)
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${backend}")
  native_test(
    registry_on_${backend} SOURCES declarations/registry.cpp LINK operator_cases
    DEFINITIONS "TOY_FOLDER=\"${folder}\"" "TOY_DEVICE=${constant}"
  )
  clover_ops_declarations(registry_on_${backend} BACKENDS toy DECLARE all MANIFESTS "${folder}/plugin.manifest")
  add_dependencies(registry_on_${backend} ${backend})
endforeach()

# By default only what the backend provides is declared.
add_library(uses_provided OBJECT declarations/uses_provided.cpp)
clover_ops_declarations(uses_provided BACKENDS toy MANIFESTS "${toy_manifest}")
add_library(uses_two OBJECT declarations/uses_two.cpp)
clover_ops_declarations(uses_two BACKENDS toy DECLARE fused_moe MANIFESTS "${toy_manifest}")
add_library(must_not_compile OBJECT EXCLUDE_FROM_ALL declarations/uses_two.cpp)
clover_ops_declarations(must_not_compile BACKENDS toy MANIFESTS "${toy_manifest}")

# expect_failure(<test> <regular expression> <command>...)
function(expect_failure test message)
  add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" -P "${CMAKE_CURRENT_SOURCE_DIR}/expect_failure.cmake" -- "${message}"
                                ${ARGN})
endfunction()

expect_failure(
  an_undeclared_operator_does_not_compile "fused_moe.* is not a member of .*clover" #
  "${CMAKE_COMMAND}" --build "${CMAKE_CURRENT_BINARY_DIR}" --target must_not_compile
)

# What the function refuses, and in what words.
function(expect_refused test message)
  expect_failure(
    declarations_refuse_${test} "clover_ops_declarations: ${message}" "${CMAKE_COMMAND}" -D
    "DECLARATIONS=${CloverOps_DECLARATIONS}" -D "PACKAGE=${CloverOps_PACKAGE_DIR}" -P
    "${CMAKE_CURRENT_SOURCE_DIR}/declarations/declare.cmake" -- ${ARGN}
  )
endfunction()

expect_refused(an_unknown_operator "`fused_mow` is no operator. there are causal_conv1d, .*rms_norm_gated" DECLARE
               fused_mow)
expect_refused(an_unknown_backend "backend `abacus` is not installed. .*MANIFESTS or in CLOVER_OPS_PLUGIN_PATH"
               BACKENDS abacus)
expect_refused(a_missing_manifest "there is no manifest /nowhere/plugin.manifest" BACKENDS toy MANIFESTS
               /nowhere/plugin.manifest)
expect_refused(no_choice "name BACKENDS, DECLARE, or both")
expect_refused(unknown_arguments "unknown arguments: OPERATORS cast" OPERATORS cast)

# `clover-ops declarations` writes the same header, byte for byte.
find_package(Python 3.10 COMPONENTS Interpreter)
cmake_path(GET CloverOps_PACKAGE_DIR PARENT_PATH site)
set(python_command "${CMAKE_COMMAND}" -E env "PYTHONPATH=${site}" CLOVER_OPS_PLUGIN_PATH= "${Python_EXECUTABLE}")
set(python_status 1)
if(Python_FOUND AND NOT CLOVER_SANITIZE)
  execute_process(COMMAND ${python_command} -c "import clover_ops.cli" RESULT_VARIABLE python_status
                  OUTPUT_QUIET ERROR_QUIET)
endif()

# same_header_test(<test> <target> <arguments of the command>...): the header of <target> and what the command writes.
function(same_header_test test target)
  if(NOT python_status EQUAL 0)
    skipped_test(${test} "no Python that can import clover_ops.cli")
    return()
  endif()
  set(written "${CMAKE_CURRENT_BINARY_DIR}/${test}.h")
  add_test(NAME write_${test} COMMAND ${python_command} -m clover_ops declarations ${ARGN} --output "${written}")
  set_tests_properties(write_${test} PROPERTIES FIXTURES_SETUP ${test})
  add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" -E compare_files "${written}"
                                "${CMAKE_CURRENT_BINARY_DIR}/clover_ops_declarations_${target}.h")
  set_tests_properties(${test} PROPERTIES FIXTURES_REQUIRED ${test})
endfunction()

same_header_test(same_header_by_default uses_provided --backends toy --manifest "${toy_manifest}")
same_header_test(same_header_with_some uses_two --backends toy --declare fused_moe --manifest "${toy_manifest}")
same_header_test(same_header_with_all registry_on_toy --backends toy --declare all --manifest "${toy_manifest}")
if(python_status EQUAL 0)
  expect_failure(command_refuses_an_unknown_operator "`fused_mow` is no operator. there are causal_conv1d"
                 ${python_command} -m clover_ops declarations --declare cast,fused_mow)
  expect_failure(command_refuses_an_unknown_backend "backend `abacus` is not installed" ${python_command} -m clover_ops
                 declarations --backends abacus)
  expect_failure(command_refuses_no_choice "name --backends, --declare, or both" ${python_command} -m clover_ops
                 declarations)
endif()
