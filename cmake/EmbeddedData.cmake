# Compiles the files of data/ into the program, so that it runs without an installation.
# A folder named by the environment variable SEXTANT_DATA overrides single files at run time.
function(sextant_embed_data target)
  set(generated ${CMAKE_BINARY_DIR}/embedded_data.cpp)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS
    ${CMAKE_SOURCE_DIR}/data/*.yaml ${CMAKE_SOURCE_DIR}/data/*.json)
  add_custom_command(
    OUTPUT ${generated}
    COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR}/data -DOUT=${generated}
            -P ${CMAKE_SOURCE_DIR}/cmake/write_embedded_data.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/write_embedded_data.cmake
    COMMENT "Embedding data/")
  target_sources(${target} PRIVATE ${generated})
endfunction()
