# module(<name> SOURCES ... [TESTS ...] [DEPENDS ...] [PRIVATE_DEPENDS ...] [LABELS ...] [TABLES ...])
# One folder of code: the library sandfleet::<name>, and <name>_test when it has tests.
# DEPENDS are the floors beneath that its headers speak of; LABELS sort its tests (default: unit); TABLES: as suite() has them.
function(module name)
  cmake_parse_arguments(ARG "" "" "SOURCES;TESTS;DEPENDS;PRIVATE_DEPENDS;TEST_DEPENDS;LABELS;TABLES" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()

  if(ARG_SOURCES)
    add_library(${name} STATIC ${ARG_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${name} PRIVATE ${ARG_PRIVATE_DEPENDS} sandfleet::precompiled sandfleet::warnings)
  else()
    add_library(${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  add_library(sandfleet::${name} ALIAS ${name})
  target_include_directories(${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} ${scope} ${ARG_DEPENDS})

  if(ARG_TESTS AND BUILD_TESTING)
    suite(${name}_test SOURCES ${ARG_TESTS} DEPENDS ${name} ${ARG_TEST_DEPENDS} LABELS ${ARG_LABELS} TABLES ${ARG_TABLES})
  endif()
endfunction()

# All suites labelled `threads`: what the tsan preset builds and runs.
add_custom_target(threads_tests)

# When a test has hung. Tests take seconds; a busy machine may stretch them many times over.
set(hang_seconds 240)
# What ctest's level counts are halves of processors (Makefile): a test that computes takes a whole one, and one that mostly waits
# for programs that begin and end takes half of one, which is what ctest takes by itself.
set(whole_processor 2)

# suite(<name> SOURCES ... [DEPENDS ...] [LABELS ...] [PREFIX ...] [TABLES ...]): one GoogleTest program, each of its tests a
# ctest test, by its name after PREFIX. All of a suite in TABLES are one: to begin the program costs more than any case of it.
function(suite name)
  cmake_parse_arguments(ARG "" "PREFIX" "SOURCES;DEPENDS;LABELS;TABLES" ${ARGN})
  if(NOT ARG_LABELS)
    set(ARG_LABELS unit)
  endif()
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} sandfleet::precompiled_tests sandfleet::warnings GTest::gmock_main)
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(threads_tests ${name})
  endif()
  foreach(table IN LISTS ARG_TABLES)
    add_test(NAME ${ARG_PREFIX}${table} COMMAND ${name} --gtest_filter=${table}.*)
    set_tests_properties(${ARG_PREFIX}${table} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${hang_seconds}
      PROCESSORS ${whole_processor} FAIL_REGULAR_EXPRESSION "Running 0 tests")
    list(APPEND tables ${table}.*)
  endforeach()
  list(JOIN tables ":" tables)
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 TEST_PREFIX "${ARG_PREFIX}" TEST_FILTER "*-${tables}"
    PROPERTIES TIMEOUT ${hang_seconds} PROCESSORS ${whole_processor})
  # A list does not survive the discovery's own file, so a second one sets the labels.
  set(labels_file ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(WRITE ${labels_file} "foreach(test IN LISTS ${name}_TESTS)\n\
  set_tests_properties(\"\${test}\" PROPERTIES LABELS \"${ARG_LABELS}\")\nendforeach()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels_file})
endfunction()
