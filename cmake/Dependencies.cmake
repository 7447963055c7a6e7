# Third-party libraries, each found once here; docs/dependencies.md gives every one's reason and licence.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(CURL REQUIRED)
find_package(GTest REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(MICROHTTPD REQUIRED IMPORTED_TARGET libmicrohttpd)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
find_package(LibArchive REQUIRED)

# Boost 1.81 stands unpacked in the cache, beside the 1.74 that other packages need; header-only.
set(SANDFLEET_BOOST "$ENV{HOME}/.cache/sandfleet/boost-1.81/usr/include" CACHE PATH "Boost 1.81 headers")
if(NOT EXISTS ${SANDFLEET_BOOST}/boost/beast.hpp)
  message(FATAL_ERROR "Boost 1.81 is not in ${SANDFLEET_BOOST}; run scripts/bootstrap first.")
endif()
add_library(boost_headers INTERFACE)
add_library(sandfleet::boost ALIAS boost_headers)
target_include_directories(boost_headers SYSTEM INTERFACE ${SANDFLEET_BOOST})
target_compile_definitions(boost_headers INTERFACE BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION)
target_link_libraries(boost_headers INTERFACE Threads::Threads)

# Brings the system's Boost 1.74 along. The macro U() that it would define breaks fmt.
find_package(cpprestsdk CONFIG REQUIRED)
add_library(cpprest_library INTERFACE)
add_library(sandfleet::cpprest ALIAS cpprest_library)
target_compile_definitions(cpprest_library INTERFACE _TURN_OFF_PLATFORM_STRING)
target_link_libraries(cpprest_library INTERFACE cpprestsdk::cpprest OpenSSL::SSL OpenSSL::Crypto)

# Libraries that a program with the property FULLY_STATIC takes from their archives, others shared.
function(either_way name shared archive)
  find_library(${name}_ARCHIVE ${archive} REQUIRED)
  add_library(${name} INTERFACE)
  add_library(sandfleet::${name} ALIAS ${name})
  target_link_libraries(${name} INTERFACE
    $<IF:$<BOOL:$<TARGET_PROPERTY:FULLY_STATIC>>,${${name}_ARCHIVE},${shared}>)
endfunction()
either_way(crypto OpenSSL::Crypto libcrypto.a)
either_way(ssl OpenSSL::SSL libssl.a)
either_way(zlib ZLIB::ZLIB libz.a)
# Of its archive only the members for tar come along, which want no other library.
either_way(libarchive LibArchive::LibArchive libarchive.a)
either_way(zstd PkgConfig::ZSTD libzstd.a)
