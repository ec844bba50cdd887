# Plugins of the tests' own, built as a third party would: from the installed headers, without the core library.

# toy_library(<target> <source>): a plugin's library, or its probe.
function(toy_library target source)
  add_library(${target} MODULE "${source}")
  target_include_directories(${target} PRIVATE "${include_dir}")
  target_compile_options(${target} PRIVATE ${warnings})
  target_compile_definitions(${target} PRIVATE "TOY_VERSION=\"${CloverOps_VERSION}\"" ${ARGN})
  set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(NOT CLOVER_SANITIZE)
    target_link_options(${target} PRIVATE -static-libstdc++ -static-libgcc LINKER:--exclude-libs,ALL)
  endif()
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

# toy_backend(<target> <device> <its constant>): the toy backend for a device and its manifest, in a folder of their own.
function(toy_backend target toy_device constant)
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}")
  set(toy_library "libclover_ops_toy.so")
  toy_library(${target} toy_plugin/toy.cpp "TOY_DEVICE=${constant}")
  set_target_properties(${target} PROPERTIES OUTPUT_NAME clover_ops_toy LIBRARY_OUTPUT_DIRECTORY "${folder}")
  configure_file(toy_plugin/plugin.manifest.in "${folder}/plugin.manifest" @ONLY)
endfunction()

toy_backend(toy rocm CLOVER_ROCM)
toy_backend(toy_cpu cpu CLOVER_CPU)
toy_library(moody toy_plugin/moody.cpp)
toy_library(faulty toy_plugin/faulty.cpp)
toy_library(probe toy_plugin/probe.cpp)

set(toy_folder "${CMAKE_CURRENT_BINARY_DIR}/toy")
set(toy_definitions
    "TOY_FOLDER=\"${toy_folder}\""
    "FAULTY_LIBRARY=\"$<TARGET_FILE:faulty>\""
    "MOODY_LIBRARY=\"$<TARGET_FILE:moody>\""
    "PROBE_LIBRARY=\"$<TARGET_FILE:probe>\""
)

foreach(test IN ITEMS plugin_faults plugin_choice provider_misbehaviour)
  native_test(${test} SOURCES ${test}.cpp LINK Clover::ops DEFINITIONS ${toy_definitions})
  add_dependencies(${test} toy faulty moody probe)
endforeach()
