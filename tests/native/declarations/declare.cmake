# cmake -D "DECLARATIONS=<CloverOpsDeclarations.cmake>" -D "PACKAGE=<the core's package>" -P declare.cmake --
# <arguments>: calls clover_ops_declarations() outside any project, to see what it refuses.
cmake_minimum_required(VERSION 3.25)
set(CloverOps_PACKAGE_DIR "${PACKAGE}")
include("${DECLARATIONS}")

set(arguments)
set(index 0)
while(NOT CMAKE_ARGV${index} STREQUAL "--")
  math(EXPR index "${index} + 1")
endwhile()
math(EXPR first "${index} + 1")
math(EXPR last "${CMAKE_ARGC} - 1")
if(first LESS_EQUAL last)
  foreach(index RANGE ${first} ${last})
    list(APPEND arguments "${CMAKE_ARGV${index}}")
  endforeach()
endif()
clover_ops_declarations(target ${arguments})
