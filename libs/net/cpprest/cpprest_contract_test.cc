#include "libs/net/cpprest/cpprest_transport.h"
#include "libs/net/testing/socket_contract.h"

namespace net {
namespace {

// Spares each connection the system's authorities, which take long under sanitizers.
const int kSpared = setenv("SSL_CERT_FILE", "/dev/null", 1);

const Maker kCpprest{"Cpprest", cpprest_transport, false, true, false};
const Maker kCpprestTls{"CpprestTls", cpprest_transport, true, true};

INSTANTIATE_TEST_SUITE_P(All, TransportContract,
                         testing::Values(world_of(kCpprest), world_of(kCpprestTls)),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, SocketContract, testing::Values(kCpprest, kCpprestTls),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, TlsContract, testing::Values(kCpprestTls),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace net
