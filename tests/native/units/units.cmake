# Pieces of the core library on their own, compiled from the source tree.
set(core_sources "${source_tree}/common/src")
if(EXISTS "${core_sources}/version.cpp")
  native_test(version_test SOURCES units/version_test.cpp "${core_sources}/version.cpp")
  native_test(
    overlap_test SOURCES units/overlap_test.cpp "${core_sources}/overlap.cpp" "${core_sources}/tensor_text.cpp"
  )
  native_test(json_test SOURCES units/json_test.cpp)
  foreach(test IN ITEMS version_test overlap_test json_test)
    target_include_directories(${test} PRIVATE "${core_sources}" "${source_tree}/common/include")
  endforeach()
endif()
