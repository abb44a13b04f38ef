# sextant_room(<name> ROOMS <lower rooms> SOURCES <files> [LIBRARIES <outside libraries>] [TESTS <files>])
#
# A folder under src/ is a room: one static library, `sextant_<name>`. ROOMS is the one place where it
# says which lower rooms it may include; scripts/check_includes.py holds every #include against it.
# Tests of a room form one program, `<name>_test`, run by ctest.
function(sextant_room name)
  cmake_parse_arguments(ARG "" "" "ROOMS;SOURCES;LIBRARIES;TESTS" ${ARGN})
  set(target sextant_${name})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(${target} PUBLIC sextant_flags)
  foreach(room IN LISTS ARG_ROOMS)
    target_link_libraries(${target} PUBLIC sextant_${room})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LIBRARIES})
  if(ARG_TESTS AND SEXTANT_TESTS)
    sextant_test(${name} SOURCES ${ARG_TESTS} LIBRARIES ${target})
  endif()
endfunction()

# sextant_test(<name> SOURCES <files> LIBRARIES <libraries>): the program `<name>_test`, run by ctest as <name>.
function(sextant_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${name}_test ${ARG_SOURCES})
  set_target_properties(${name}_test PROPERTIES SEXTANT_TEST ON)
  target_link_libraries(${name}_test PRIVATE ${ARG_LIBRARIES} fmt::fmt GTest::gmock GTest::gtest_main)
  target_precompile_headers(${name}_test REUSE_FROM sextant_test_headers)
  add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
endfunction()

# What most tests include, compiled once for all test programs.
if(SEXTANT_TESTS)
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cpp "")
  add_library(sextant_test_headers OBJECT ${CMAKE_BINARY_DIR}/test_headers.cpp)
  set_target_properties(sextant_test_headers PROPERTIES SEXTANT_TEST ON)
  target_link_libraries(sextant_test_headers PRIVATE sextant_flags fmt::fmt GTest::gmock)
  target_precompile_headers(sextant_test_headers PRIVATE
    <gmock/gmock.h> <gtest/gtest.h> <fmt/format.h> <algorithm> <filesystem> <map> <optional> <span> <string> <vector>)
endif()
