# find_package(CloverOps): the target Clover::ops and the function clover_ops_declarations().
cmake_minimum_required(VERSION 3.25)

get_filename_component(CloverOps_PACKAGE_DIR "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET Clover::ops)
  add_library(Clover::ops SHARED IMPORTED)
  set_target_properties(
    Clover::ops
    PROPERTIES IMPORTED_LOCATION "${CloverOps_PACKAGE_DIR}/lib/libclover_ops.so"
               INTERFACE_INCLUDE_DIRECTORIES "${CloverOps_PACKAGE_DIR}/include"
               INTERFACE_COMPILE_FEATURES cxx_std_17
  )
endif()

include("${CMAKE_CURRENT_LIST_DIR}/CloverOpsDeclarations.cmake")
