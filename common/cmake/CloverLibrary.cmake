# What every shared library of the project has in common.

# clover_shared_library(<target> MAP <version script> SOURCES ...): C++17, nothing exported but what the version script
# says, the C++ runtime inside, no RPATH but the library's own folder.
function(clover_shared_library target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MAP" "SOURCES")
  add_library(${target} SHARED ${arg_SOURCES})
  set_target_properties(
    ${target}
    PROPERTIES CXX_STANDARD 17
               CXX_STANDARD_REQUIRED ON
               CXX_EXTENSIONS OFF
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               POSITION_INDEPENDENT_CODE ON
               BUILD_WITH_INSTALL_RPATH ON
               INSTALL_RPATH "$ORIGIN"
               LINK_DEPENDS "${arg_MAP}"
  )
  target_compile_options(${target} PRIVATE -Wall -Wextra $<$<BOOL:${CLOVER_WERROR}>:-Werror>)
  # A build folder must leave no trace in the product.
  target_compile_options(${target} PRIVATE "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=." "-ffile-prefix-map=${CMAKE_BINARY_DIR}=build")
  target_link_options(
    ${target}
    PRIVATE
    "LINKER:--version-script=${arg_MAP}"
    "LINKER:--no-undefined"
    "LINKER:--gc-sections"
    -static-libstdc++
    -static-libgcc
    $<$<CONFIG:Release>:LINKER:-s>
  )
endfunction()
