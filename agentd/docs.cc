// agentd_docs: prints the part of docs/metrics.md that agentd's table of metrics knows best.
#include <iostream>

#include "agentd/metrics/metrics.h"

int main() {
  std::cout << "\n## sandfleet-agentd\n\n"
               "Shown at its own `/metrics`; written from `agentd/metrics/metrics.cc`.\n\n"
            << metrics::to_markdown(agentd::metrics_table());
  return std::cout.flush() ? 0 : 1;
}
