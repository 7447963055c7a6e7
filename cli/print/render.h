#pragma once

#include <string>
#include <vector>

#include "libs/api/resource_store.h"

// What is printed, as pure functions of what is known and of the time.
namespace cli {

// Rows of cells under upper-case headings, columns apart by three spaces, as kubectl prints.
// Control characters in a cell, which may be a sandbox's own words, come out as blanks.
struct Table {
  std::vector<std::string> headings;
  std::vector<std::vector<std::string>> rows = {};
};
std::string to_text(const Table& table);

// Tables under one another that read as one: headings once, columns never narrower than before.
class Columns {
 public:
  std::string print(const Table& table);

 private:
  std::vector<std::size_t> widths_;  // Empty before the first.
};

struct Layout {
  bool wide = false;
  bool spaces = false;  // A column for the namespace.
};

Table sandbox_table(const std::vector<api::Sandbox>& sandboxes, const Layout& layout,
                    base::WallTime now);
Table provider_table(const std::vector<api::SandboxProvider>& providers, const Layout& layout,
                     base::WallTime now);
Table event_table(const std::vector<api::RecordedEvent>& events, const Layout& layout,
                  base::WallTime now);

// One object as itself, several as a List.
template <typename Resource>
base::Json to_document(const std::vector<Resource>& resources, bool single) {
  if (single && resources.size() == 1) return api::to_json(resources[0]);
  base::Json items = base::Json::array();
  for (const auto& each : resources) items.push_back(api::to_json(each));
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}
base::Json to_document(const std::vector<api::RecordedEvent>& events);

// "45s", "12m", "3h", "5d": as precise as it is young.
std::string age(std::optional<base::WallTime> since, base::WallTime now);

// Without `events`: they could not be read.
std::string describe(const api::Sandbox& sandbox, const std::string& origin,
                     const std::optional<std::vector<api::RecordedEvent>>& events,
                     base::WallTime now);

}  // namespace cli
