# A backend plugin from its backend.toml: `clover_add_backend(<name> SOURCES ... [PROBE ...])` in backends/<name>/CMakeLists.txt.

include(CloverLibrary)
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
find_package(Threads REQUIRED)

# Makes target clover_ops_<name> (libclover_ops_<name>.so), the probe library when PROBE names sources, the table of
# providers and the manifest from backend.toml, and installs the three into the package clover_ops_<name>.
function(clover_add_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TOOLCHAIN" "SOURCES;PROBE;ARCHITECTURES")
  set(target clover_ops_${name})
  set(toolchain "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  if(arg_TOOLCHAIN) # of the device code
    string(APPEND toolchain "; ${arg_TOOLCHAIN}")
  endif()
  set(generated "${CMAKE_CURRENT_BINARY_DIR}/generated")
  set(toml "${CMAKE_CURRENT_SOURCE_DIR}/backend.toml")

  execute_process(
    COMMAND
      "${CMAKE_COMMAND}" -E env "PYTHONPATH=${CMAKE_SOURCE_DIR}/common" "${Python_EXECUTABLE}" -m declgen plugin
      "${toml}" "${generated}" --version "${CLOVER_OPS_VERSION}"
      --toolchain "${toolchain}" --architectures ${arg_ARCHITECTURES}
      COMMAND_ERROR_IS_FATAL ANY
  )
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${toml}" "${CMAKE_SOURCE_DIR}/common/schema/operators.toml")

  clover_shared_library(
    ${target} MAP "${CMAKE_SOURCE_DIR}/common/cmake/plugin.map" SOURCES ${arg_SOURCES} "${generated}/registration.cpp"
  )
  target_include_directories(${target} PRIVATE "${CMAKE_SOURCE_DIR}/common/include" "${generated}/include")
  target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  install(TARGETS ${target} LIBRARY DESTINATION clover_ops_${name})

  if(arg_PROBE)
    clover_shared_library(${target}_probe MAP "${CMAKE_SOURCE_DIR}/common/cmake/plugin.map" SOURCES ${arg_PROBE})
    target_include_directories(${target}_probe PRIVATE "${CMAKE_SOURCE_DIR}" "${CMAKE_SOURCE_DIR}/common/include")
    target_link_libraries(${target}_probe PRIVATE ${CMAKE_DL_LIBS})
    install(TARGETS ${target}_probe LIBRARY DESTINATION clover_ops_${name})
  endif()
  install(FILES "${generated}/plugin.manifest" DESTINATION clover_ops_${name})
endfunction()
