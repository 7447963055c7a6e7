# Headers that most files include, parsed once: sandfleet::precompiled for programs, sandfleet::precompiled_tests with
# GoogleTest. They spare a third of the compile time and take part in nothing else: each file still includes what it
# uses, and SANDFLEET_PRECOMPILED=OFF builds without.
option(SANDFLEET_PRECOMPILED "Precompile the standard library, JSON and GoogleTest" ON)
set(SANDFLEET_PRECOMPILED_CACHE "$ENV{HOME}/.cache/sandfleet/precompiled" CACHE PATH "Precompiled headers of all clones")

# precompiled(<name> HEADERS ... [DEFINITIONS ...]): the library sandfleet::<name>, whose users read those headers
# precompiled. For targets that add no flag to the build's own but definitions.
#
# The result is in the cache, by the hash of all that went into it, and not in the build tree: so all clones name the
# same file, and one clone's objects are hits in ccache for another. The build comes here again when one of the headers
# changes, and when the cache was emptied.
function(precompiled name)
  cmake_parse_arguments(ARG "" "" "HEADERS;DEFINITIONS" ${ARGN})
  add_library(${name} INTERFACE)
  add_library(sandfleet::${name} ALIAS ${name})
  if(NOT SANDFLEET_PRECOMPILED OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    return()
  endif()

  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  separate_arguments(flags UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}")
  list(TRANSFORM ARG_DEFINITIONS PREPEND -D)
  set(compile ${CMAKE_CXX_COMPILER} ${flags} ${ARG_DEFINITIONS} ${CMAKE_CXX20_STANDARD_COMPILE_OPTION} -x c++-header)

  # What the headers say, macros included, and which files say it.
  set(scratch ${CMAKE_BINARY_DIR}/precompiled/${name})
  list(TRANSFORM ARG_HEADERS REPLACE "(.+)" "#include <\\1>\n")
  list(JOIN ARG_HEADERS "" text)
  file(WRITE ${scratch}.h "${text}")
  execute_process(COMMAND ${compile} -E -P -dD -MD -MF ${scratch}.d ${scratch}.h -o ${scratch}.ii COMMAND_ERROR_IS_FATAL ANY)
  file(SHA256 ${scratch}.ii meaning)
  file(READ ${scratch}.d read)
  string(REGEX MATCHALL "/[^ \n]+" read "${read}")
  list(FILTER read EXCLUDE REGEX "^${CMAKE_BINARY_DIR}/")
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} --version OUTPUT_VARIABLE version COMMAND_ERROR_IS_FATAL ANY)
  string(SHA256 key "${version}${compile}${text}${read}${meaning}")

  set(folder ${SANDFLEET_PRECOMPILED_CACHE}/${key})
  set(header ${folder}/${name}.h)
  file(LOCK ${SANDFLEET_PRECOMPILED_CACHE} DIRECTORY GUARD FUNCTION)
  if(NOT EXISTS ${header}.pch)
    message(STATUS "Precompiling ${name}")
    file(WRITE ${header} "${text}")
    file(WRITE ${header}.pch.sum "${key}")  # ccache reads this one instead of 30 MB.
    execute_process(
      COMMAND ${compile} -Xclang -fno-pch-timestamp -fpch-instantiate-templates ${header} -o ${header}.part
      COMMAND_ERROR_IS_FATAL ANY)
    file(RENAME ${header}.part ${header}.pch)
  endif()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${read} ${header}.pch)
  target_compile_options(${name} INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -include-pch -Xclang ${header}.pch>")
endfunction()

set(common_headers
  algorithm array atomic cerrno chrono condition_variable cstddef cstdint cstdlib cstring deque filesystem fstream
  functional list map memory mutex optional random regex set sstream stop_token string string_view thread utility
  variant vector nlohmann/json.hpp)
precompiled(precompiled HEADERS ${common_headers})
if(BUILD_TESTING)
  precompiled(precompiled_tests HEADERS ${common_headers} gmock/gmock.h gtest/gtest.h DEFINITIONS GTEST_HAS_PTHREAD=1)
endif()
