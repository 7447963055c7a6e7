// Both ends of both kinds of echo (echo.h).
#include "bench/contenders/echo.h"

#include <string>

namespace {

constexpr char kUsage[] =
    "usage: bench_echo serve-unix PATH | ask-unix PATH | serve-web PORT |\n"
    "       ask-web ADDRESS PORT SANDBOX_ID PORT_INSIDE [TRAFFIC_TOKEN]";

}  // namespace

int main(int argc, char** argv) {
  using namespace contenders;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string what = words.empty() ? "" : words[0];
  if (what == "serve-unix" && words.size() == 2) return serve_unix(words[1]);
  if (what == "ask-unix" && words.size() == 2) return ask_unix(words[1]);
  if (what == "serve-web" && words.size() == 2) return serve_web(std::stoi(words[1]));
  if (what == "ask-web" && (words.size() == 5 || words.size() == 6))
    return ask_web({.address = words[1],
                    .port = std::stoi(words[2]),
                    .sandbox_id = words[3],
                    .port_inside = words[4],
                    .traffic_token = words.size() == 6 ? words[5] : ""});
  give_up(kUsage);
}
