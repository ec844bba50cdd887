# The core library and the CPU backend from the source tree, with sanitizers, laid out as an installation is:
#
#   cmake -S tests/native -B build/asan -DCLOVER_SANITIZE=address,undefined    (or build/tsan, thread)
#   cmake --build build/asan && ctest --test-dir build/asan --output-on-failure
#
# The core is compiled without its Python binding; the backend by its own CMakeLists.txt.
set(site "${CMAKE_CURRENT_BINARY_DIR}/site")
set(CloverOps_PACKAGE_DIR "${site}/clover_ops")
file(STRINGS "${source_tree}/common/clover_ops/_version.py" version_line REGEX "^__version__ = ")
string(REGEX MATCH "[0-9][^\"]*" CloverOps_VERSION "${version_line}")

set(sanitizer_flags "-fsanitize=${CLOVER_SANITIZE}" -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1
    -Wno-maybe-uninitialized) # GCC takes its own checks for reads
add_compile_options(${sanitizer_flags})
add_link_options(${sanitizer_flags})

file(GLOB core_sources CONFIGURE_DEPENDS "${source_tree}/common/src/*.cpp" "${source_tree}/common/src/generated/*.cpp")
add_library(clover_ops SHARED ${core_sources})
add_library(Clover::ops ALIAS clover_ops)
target_include_directories(clover_ops PUBLIC "${source_tree}/common/include" PRIVATE "${source_tree}/common/src")
target_compile_definitions(clover_ops PRIVATE "CLOVER_OPS_VERSION=\"${CloverOps_VERSION}\"")
target_compile_features(clover_ops PUBLIC cxx_std_17)
target_link_libraries(clover_ops PRIVATE ${CMAKE_DL_LIBS})
target_link_options(clover_ops PRIVATE "LINKER:--version-script=${source_tree}/common/cmake/core.map")
set_target_properties(
  clover_ops PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
                        LIBRARY_OUTPUT_DIRECTORY "${CloverOps_PACKAGE_DIR}/lib"
)

# Part of `all`; nothing depends on it until a test runs.
include(ExternalProject)
string(JOIN " " backend_flags ${sanitizer_flags})
ExternalProject_Add(
  cpu_backend
  SOURCE_DIR "${source_tree}"
  BINARY_DIR "${CMAKE_CURRENT_BINARY_DIR}/cpu_backend"
  BUILD_ALWAYS ON
  CMAKE_ARGS
    -DCLOVER_DISTRIBUTION=cpu -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG= "-DCMAKE_CXX_FLAGS=${backend_flags}"
    "-DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}" "-DCMAKE_C_COMPILER=${CMAKE_C_COMPILER}"
    "-DCMAKE_INSTALL_PREFIX=${site}"
)

set(CloverOps_DECLARATIONS "${source_tree}/common/cmake/package/CloverOpsDeclarations.cmake")
include("${CloverOps_DECLARATIONS}")
