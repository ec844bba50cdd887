# What the installed libraries export and need.
function(symbols_test name library exports)
  add_test(NAME ${name}
           COMMAND "${CMAKE_COMMAND}" -D "LIBRARY=${library}" -D "EXPORTS=${exports}" -D "NM=${CMAKE_NM}" -D
                   "READELF=${CMAKE_READELF}" -P "${CMAKE_CURRENT_SOURCE_DIR}/check_symbols.cmake")
endfunction()

symbols_test(symbols_of_the_core "${CloverOps_PACKAGE_DIR}/lib/libclover_ops.so" "^clover_")
file(GLOB plugins "${CloverOps_PACKAGE_DIR}/../clover_ops_*/libclover_ops_*.so")
foreach(plugin IN LISTS plugins)
  cmake_path(GET plugin STEM stem)
  string(REPLACE "libclover_ops_" "" backend "${stem}")
  symbols_test(symbols_of_${backend} "${plugin}" "^clover_plugin_(entry|probe)$")
endforeach()
