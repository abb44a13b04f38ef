# One set of flags for every room: warnings are errors, and code runs on any x86-64-v3 processor.
option(SEXTANT_SANITIZE "Build with the address and undefined-behaviour sanitizers" OFF)
option(SEXTANT_SANITIZE_THREAD "Build with the thread sanitizer" OFF)
option(SEXTANT_TESTS "Build the tests" ON)
option(SEXTANT_BENCHMARKS "Build the benchmarks" ON)
option(SEXTANT_FUZZ "Build the fuzz targets (needs clang)" OFF)

add_library(sextant_flags INTERFACE)
target_compile_options(sextant_flags INTERFACE
  -march=x86-64-v3 -Wall -Wextra -Wpedantic -Wconversion -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports std::string operations as overlapping copies (GCC bug 105651).
  target_compile_options(sextant_flags INTERFACE -Wno-restrict)
endif()
if(SEXTANT_SANITIZE)
  # -O1: sanitized searches at -O0 take minutes where a release build takes a second. Warnings are judged by the
  # release build; instrumented code draws false ones from g++ 12 (mismatched new and delete of a test's own allocator).
  target_compile_options(sextant_flags INTERFACE
    -O1 -Wno-error -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(sextant_flags INTERFACE -fsanitize=address,undefined)
elseif(SEXTANT_SANITIZE_THREAD)
  target_compile_options(sextant_flags INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  target_link_options(sextant_flags INTERFACE -fsanitize=thread)
endif()
if(SEXTANT_FUZZ)
  target_compile_options(sextant_flags INTERFACE -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
  target_link_options(sextant_flags INTERFACE -fsanitize=address,undefined)
endif()

find_program(SEXTANT_CCACHE ccache)
if(SEXTANT_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SEXTANT_CCACHE})
endif()
find_program(SEXTANT_MOLD mold)
if(SEXTANT_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
