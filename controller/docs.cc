// controller_docs: prints docs/metrics.md, which the controller's table of metrics knows best.
#include <iostream>

#include "controller/metrics.h"

int main() {
  std::cout << "# Metrics\n\n"
               "Written by `scripts/docs` from the controller's table of metrics; edit "
               "`controller/metrics.cc`, not this page.\n\n"
               "`sandfleet-controller` shows them at `/metrics`, in Prometheus' text format.\n\n"
            << metrics::to_markdown(controller::metrics_table());
  return std::cout.flush() ? 0 : 1;
}
