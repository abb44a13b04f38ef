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
    add_executable(${name}_test ${ARG_TESTS})
    target_link_libraries(${name}_test PRIVATE ${target} GTest::gmock GTest::gtest_main)
    add_test(NAME ${name} COMMAND ${name}_test WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()
