# The same tests in programs whose C++ runtime is not the libraries': nothing but C crosses between them.

# A test that this machine cannot run says why.
function(skipped_test name reason)
  add_test(NAME ${name} COMMAND "${CMAKE_COMMAND}" -E echo "skipped: ${reason}")
  set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

# A runtime of the program's own, beside the copies inside the libraries.
if(NOT CLOVER_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  native_test(errors_in_a_static_runtime SOURCES $<TARGET_OBJECTS:queries_and_errors> LINK Clover::ops)
  target_link_options(errors_in_a_static_runtime PRIVATE -static-libstdc++ -static-libgcc)
else()
  skipped_test(errors_in_a_static_runtime "needs GCC without sanitizers")
endif()

# clang++ with libc++: another compiler and another library.
find_program(CLANGXX clang++)
if(NOT CLANGXX)
  skipped_test(errors_in_libcxx "no clang++")
elseif(CLOVER_SANITIZE)
  skipped_test(errors_in_libcxx "a build with sanitizers has one runtime")
else()
  set(probe "${CMAKE_CURRENT_BINARY_DIR}/libcxx_probe.cpp")
  file(WRITE "${probe}" "#include <string>\nint main() { return static_cast<int>(std::string().size()); }\n")
  execute_process(
    COMMAND "${CLANGXX}" -stdlib=libc++ -std=c++17 "${probe}" -o "${CMAKE_CURRENT_BINARY_DIR}/libcxx_probe"
    RESULT_VARIABLE libcxx OUTPUT_QUIET ERROR_QUIET
  )
  if(libcxx EQUAL 0)
    set(program "${CMAKE_CURRENT_BINARY_DIR}/errors_in_libcxx")
    get_target_property(library Clover::ops IMPORTED_LOCATION)
    cmake_path(GET library PARENT_PATH library_dir)
    add_custom_command(
      OUTPUT "${program}"
      COMMAND
        "${CLANGXX}" -stdlib=libc++ -std=c++17 -Wall -Wextra "-DEXPECTED_VERSION=\"${CloverOps_VERSION}\""
        "-I${include_dir}" "-I${CMAKE_CURRENT_SOURCE_DIR}" "-I${CMAKE_CURRENT_BINARY_DIR}/generated"
        "${CMAKE_CURRENT_SOURCE_DIR}/queries_and_errors.cpp" "${CMAKE_CURRENT_SOURCE_DIR}/check_main.cpp" "${library}"
        "-Wl,-rpath,${library_dir}" -o "${program}"
      DEPENDS queries_and_errors.cpp check_main.cpp check.hpp json_reader.hpp
      VERBATIM
    )
    add_custom_target(errors_in_libcxx_program ALL DEPENDS "${program}")
    add_test(NAME errors_in_libcxx COMMAND "${program}")
  else()
    skipped_test(errors_in_libcxx "clang++ has no libc++")
  endif()
endif()
