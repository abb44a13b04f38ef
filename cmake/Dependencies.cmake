# Everything comes from Debian packages; scripts/setup.sh installs them.
find_package(fmt 9 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(yaml-cpp 0.7 REQUIRED)
find_package(CLI11 2.1 REQUIRED)
find_package(GTest 1.12 REQUIRED)
find_package(Threads REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(SQLite3 3.40 REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(CURL 7.88 REQUIRED)
find_package(Boost 1.74 REQUIRED)  # headers alone: Asio and Beast
if(SEXTANT_TESTS)  # Debian's rapidcheck has no CMake package
  find_path(RAPIDCHECK_INCLUDE_DIR rapidcheck.h REQUIRED)
  find_library(RAPIDCHECK_LIBRARY rapidcheck REQUIRED)
  add_library(rapidcheck::rapidcheck UNKNOWN IMPORTED)
  set_target_properties(rapidcheck::rapidcheck PROPERTIES
    IMPORTED_LOCATION ${RAPIDCHECK_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${RAPIDCHECK_INCLUDE_DIR})
endif()
if(SEXTANT_BENCHMARKS)
  find_package(benchmark 1.7 REQUIRED)
endif()
