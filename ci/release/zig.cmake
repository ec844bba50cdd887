# Builds against an old glibc without a container: clang, lld and libc++ from the pip package ziglang.
# CLOVER_ZIG names its program and CLOVER_ZIG_TARGET the machine and glibc, such as x86_64-linux-gnu.2.28.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES CLOVER_ZIG CLOVER_ZIG_TARGET)
if(NOT CLOVER_ZIG OR NOT CLOVER_ZIG_TARGET)
  message(FATAL_ERROR "zig.cmake needs -DCLOVER_ZIG=<the zig program> and -DCLOVER_ZIG_TARGET=<machine>-linux-gnu.<glibc>")
endif()
set(CMAKE_SYSTEM_NAME Linux)
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR "${CLOVER_ZIG_TARGET}")
set(CMAKE_C_COMPILER "${CLOVER_ZIG}" cc -target "${CLOVER_ZIG_TARGET}")
set(CMAKE_CXX_COMPILER "${CLOVER_ZIG}" c++ -target "${CLOVER_ZIG_TARGET}")
