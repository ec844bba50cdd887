# A GPU backend's host side: the shared sources of this folder, and device code from an artifact folder.

# clover_device_code(<session>): reads the artifact in CLOVER_DEVICE_CODE (default build/device-code/<backend>), which the
# nox session <session> makes. Sets in the caller's scope
#   clover_device_sources         what the plugin compiles besides its own sources: the shared layer, the portable kernels'
#                                 providers, which backend.toml lists as slot 1, and common/jit with those of slot 10
#   clover_device_architectures   for the manifest
#   clover_device_driver_version  the oldest driver that loads the code
#   clover_device_hip             the folder of HIP sources for compiling on the user's machine; empty for CUDA
# CLOVER_ARCHITECTURES names architectures that must be there: one that is not is an error.
macro(clover_device_code session)
  get_filename_component(clover_backend "${CMAKE_CURRENT_SOURCE_DIR}" NAME)
  set(CLOVER_DEVICE_CODE "${CMAKE_SOURCE_DIR}/build/device-code/${clover_backend}" CACHE PATH "Folder of compiled device code")
  set(CLOVER_ARCHITECTURES "" CACHE STRING "Architectures that the device code must have, as gfx906;gfx936")
  set(clover_device_output "${CMAKE_CURRENT_BINARY_DIR}/device-code")
  execute_process(
    COMMAND
      "${Python_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/common/device/embed.py" "${CMAKE_SOURCE_DIR}" "${CLOVER_DEVICE_CODE}"
      "${clover_device_output}" "run `nox -s ${session}` on a machine that has the toolchain"
      ${CLOVER_ARCHITECTURES}
    RESULT_VARIABLE clover_device_result
    ERROR_VARIABLE clover_device_error
  )
  if(NOT clover_device_result EQUAL 0)
    message(FATAL_ERROR "${clover_device_error}")
  endif()
  include("${clover_device_output}/device_code.cmake")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CLOVER_DEVICE_CODE}/device-code.json")
  foreach(input IN LISTS clover_device_inputs)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/${input}")
  endforeach()
  set_source_files_properties("${clover_device_output}/device_code.cpp" PROPERTIES OBJECT_DEPENDS "${clover_device_files}")
  set(clover_device_sources "${clover_device_output}/device_code.cpp")
  set(clover_device_names code_cache code_objects device driver kernels launcher own_folder plugin portable sha256)
  if(clover_device_hip)
    list(APPEND clover_device_names hiprtc runtime_compiler)
  endif()
  foreach(source IN LISTS clover_device_names)
    list(APPEND clover_device_sources "${CMAKE_SOURCE_DIR}/common/device/${source}.cpp")
  endforeach()
  clover_triton_kernels()
endmacro()

# The Triton kernels: their table compiled in, their sources and the bundle beside the library. Not for use by itself.
macro(clover_triton_kernels)
  set(CLOVER_JIT_BUNDLE "${CLOVER_DEVICE_CODE}/bundle" CACHE STRING
      "Folder of Triton kernels compiled ahead of time, or OFF: all are compiled on first use")
  set(clover_triton_folder "${CMAKE_SOURCE_DIR}/common/kernels/triton")
  set(clover_triton_bundle)
  if(CLOVER_JIT_BUNDLE)
    set(clover_triton_bundle
        "${CMAKE_CURRENT_SOURCE_DIR}/bundle.toml" "${CLOVER_JIT_BUNDLE}"
        "run `nox -s jit-bundle -- ${clover_backend}`, or set CLOVER_JIT_BUNDLE=OFF to do without")
    install(DIRECTORY "${CLOVER_JIT_BUNDLE}/" DESTINATION clover_ops_${clover_backend}/bundle FILES_MATCHING PATTERN "*.clvk")
  endif()
  if(clover_device_hip)
    set(clover_triton_family hip)
  else()
    set(clover_triton_family cuda)
  endif()
  execute_process(
    COMMAND
      "${Python_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/common/jit/embed.py" "${clover_triton_folder}" ${clover_triton_family}
      "${clover_device_output}/triton_kernels.cpp" ${clover_triton_bundle}
    RESULT_VARIABLE clover_device_result
    ERROR_VARIABLE clover_device_error
  )
  if(NOT clover_device_result EQUAL 0)
    message(FATAL_ERROR "${clover_device_error}")
  endif()
  file(GLOB clover_triton_files CONFIGURE_DEPENDS "${clover_triton_folder}/*.py" "${clover_triton_folder}/kernels.toml")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${clover_triton_files})
  install(FILES ${clover_triton_files} DESTINATION clover_ops_${clover_backend}/triton)
  file(GLOB clover_tuned_files CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/tuned/*.txt")
  install(FILES ${clover_tuned_files} DESTINATION clover_ops_${clover_backend}/tuned)
  list(APPEND clover_device_sources "${clover_device_output}/triton_kernels.cpp")
  file(GLOB clover_jit_sources CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/common/jit/*.cpp" "${CMAKE_SOURCE_DIR}/common/jit/providers/*.cpp")
  list(APPEND clover_device_sources ${clover_jit_sources})
endmacro()
