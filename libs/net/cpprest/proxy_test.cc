#include "libs/net/cpprest/proxy.h"

#include <gtest/gtest.h>

#include <map>

namespace net {
namespace {

struct ExemptCase {
  const char* name;
  const char* no_proxy;
  const char* host;
  bool exempt;
};
void PrintTo(const ExemptCase& c, std::ostream* out) { *out << c.name; }

class Exempt : public testing::TestWithParam<ExemptCase> {};

TEST_P(Exempt, IsWhatTheListHas) {
  EXPECT_EQ(is_exempt(GetParam().no_proxy, GetParam().host), GetParam().exempt);
}

const ExemptCase kExemptCases[] = {
    {"nothing_listed", "", "api.test", false},
    {"everything", " * ", "api.test", true},
    {"the_name", "other,api.test", "api.test", true},
    {"in_any_case", "API.Test", "Api.tesT", true},
    {"a_suffix", "test", "api.test", true},
    {"a_dotted_suffix", ".test", "api.test", true},
    {"half_a_word", "est", "api.test", false},
    {"a_longer_name", "api.test", "test", false},
    {"blanks_between", "a.test b.test, c.test", "b.test", true},
    {"a_dot_at_the_end", "api.test", "api.test.", true},
    {"a_dot_at_the_other_end", "api.test.", "api.test", true},
    {"a_dot_alone", ".", "api.test", false},
    {"the_address", "10.0.0.1", "10.0.0.1", true},
    {"no_suffix_of_an_address", "0.0.1", "10.0.0.1", false},
    {"a_network", "192.168.0.0/16,10.96.0.0/12", "10.100.0.1", true},
    {"another_network", "10.96.0.0/12", "10.112.0.1", false},
    {"the_whole_address_space", "0.0.0.0/0", "10.0.0.1", true},
    {"bits_beyond_the_address", "10.0.0.1/33", "10.0.0.1", false},
    {"bits_that_are_no_number", "10.0.0.1/x", "10.0.0.1", false},
    {"a_network_of_the_other_family", "::/0", "10.0.0.1", false},
    {"an_ipv6_network", "fd00::/8", "fd12::1", true},
    {"no_name_is_in_a_network", "0.0.0.0/0", "api.test", false},
};
INSTANTIATE_TEST_SUITE_P(Proxy, Exempt, testing::ValuesIn(kExemptCases),
                         [](const auto& info) { return info.param.name; });

struct ProxyCase {
  const char* name;
  std::map<std::string, std::string> environment;
  const char* scheme;
  const char* proxy;
};
void PrintTo(const ProxyCase& c, std::ostream* out) { *out << c.name; }

class Proxy : public testing::TestWithParam<ProxyCase> {};

TEST_P(Proxy, IsReadAsLibcurlDoes) {
  const auto& values = GetParam().environment;
  const auto environment = [&](const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  EXPECT_EQ(proxy_from(environment, GetParam().scheme, "api.test"), GetParam().proxy);
}

const ProxyCase kProxyCases[] = {
    {"none", {}, "https", ""},
    {"for_http", {{"http_proxy", "p:1"}, {"https_proxy", "q:2"}}, "http", "p:1"},
    {"for_https", {{"http_proxy", "p:1"}, {"https_proxy", "q:2"}}, "https", "q:2"},
    {"capitals_for_https", {{"HTTPS_PROXY", "q:2"}}, "https", "q:2"},
    {"no_capitals_for_http", {{"HTTP_PROXY", "p:1"}}, "http", ""},
    {"small_letters_first", {{"HTTPS_PROXY", "q:2"}, {"https_proxy", "r:3"}}, "https", "r:3"},
    {"one_for_all", {{"ALL_PROXY", "a:9"}, {"https_proxy", ""}}, "https", "a:9"},
    {"exempt", {{"https_proxy", "q:2"}, {"no_proxy", ".test"}}, "https", ""},
    {"exempt_in_capitals", {{"https_proxy", "q:2"}, {"NO_PROXY", "*"}}, "https", ""},
};
INSTANTIATE_TEST_SUITE_P(Proxy, Proxy, testing::ValuesIn(kProxyCases),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace net
