# One set of flags for every room: warnings are errors, and code runs on any x86-64-v3 processor.
option(SEXTANT_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
option(SEXTANT_SANITIZE_THREAD "Build with the thread sanitizer" OFF)
option(SEXTANT_TESTS "Build the tests" ON)
option(SEXTANT_BENCHMARKS "Build the benchmarks" ON)
option(SEXTANT_FUZZ "Build the fuzz targets (needs clang)" OFF)

# The programs of tests are marked by this property (cmake/Room.cmake).
set(SEXTANT_IS_TEST "$<BOOL:$<TARGET_PROPERTY:SEXTANT_TEST>>")

add_library(sextant_flags INTERFACE)
target_compile_options(sextant_flags INTERFACE
  -march=x86-64-v3 -Wall -Wextra -Wpedantic -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports std::string operations as overlapping copies (GCC bug 105651).
  target_compile_options(sextant_flags INTERFACE -Wno-restrict)
endif()
# Some tests count allocations by an operator new of their own, which g++ 12 takes for a mismatch at -O1.
target_compile_options(sextant_flags INTERFACE
  "$<$<AND:$<CONFIG:Release>,${SEXTANT_IS_TEST}>:-O1>" "$<${SEXTANT_IS_TEST}:-Wno-mismatched-new-delete>")
if(SEXTANT_SANITIZE)
  # -O1: sanitized searches at -O0 take minutes where a release build takes a second. Warnings are judged by the
  # release build; instrumented code draws false ones from g++ 12 (mismatched new and delete of a test's own allocator).
  # Tests are not instrumented themselves: what they call is, and instrumented googletest macros take g++ three times
  # as long to compile. Checks for null and alignment cost half of the rest: the address sanitizer stops at a use of
  # null anyway, and x86-64 reads unaligned values.
  target_compile_options(sextant_flags INTERFACE -Wno-error -fno-omit-frame-pointer
    "$<${SEXTANT_IS_TEST}:-O0>"
    "$<$<NOT:${SEXTANT_IS_TEST}>:-O1;-fsanitize=address,undefined;-fno-sanitize=null,alignment;-fno-sanitize-recover=all>"
    "$<$<BOOL:$<TARGET_PROPERTY:SEXTANT_WITHOUT_ARITHMETIC>>:-fno-sanitize=undefined>")
  target_link_options(sextant_flags INTERFACE -fsanitize=address,undefined)
elseif(SEXTANT_SANITIZE_THREAD)
  target_compile_options(sextant_flags INTERFACE -Wno-error -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(sextant_flags INTERFACE -fsanitize=thread)
endif()
if(SEXTANT_FUZZ)
  target_compile_options(sextant_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(sextant_flags INTERFACE -fsanitize=address,undefined)
endif()

find_program(SEXTANT_CCACHE ccache)
if(SEXTANT_CCACHE)
  # ccache needs to be told that precompiled headers are in use.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SEXTANT_CCACHE})
endif()
find_program(SEXTANT_MOLD mold)
if(SEXTANT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
