# A GPU backend's host side: the shared sources of this folder, and device code from an artifact folder.

# clover_device_code(<session>): reads the artifact in CLOVER_DEVICE_CODE (default build/device-code/<backend>), which the
# nox session <session> makes. Sets in the caller's scope
#   clover_device_sources         what the plugin compiles besides its own sources: the shared layer, and the portable
#                                 kernels' providers, which backend.toml lists as slot 1
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
  set(clover_device_names code_objects device driver kernels launcher plugin portable)
  if(clover_device_hip)
    list(APPEND clover_device_names code_cache hiprtc runtime_compiler sha256)
  endif()
  foreach(source IN LISTS clover_device_names)
    list(APPEND clover_device_sources "${CMAKE_SOURCE_DIR}/common/device/${source}.cpp")
  endforeach()
endmacro()
