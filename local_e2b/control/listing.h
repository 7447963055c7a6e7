#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/aio/http_server.h"
#include "libs/base/clock.h"
#include "local_e2b/control/answer.h"
#include "local_e2b/state/sandbox.h"

// Lists of sandboxes: filters, order and pages. Pure.
namespace local_e2b {

struct ListQuery {
  bool running = true, paused = true;
  std::map<std::string, std::string> metadata = {};
  std::optional<std::string> template_id = std::nullopt;
  std::optional<base::WallTime> started_after = std::nullopt;
  bool ascending = false;
  std::size_t limit = 100;
  std::optional<std::pair<base::WallTime, std::string>> after = std::nullopt;  // From nextToken.
};

// GET /v2/sandboxes.
Outcome<ListQuery> parse_list_query(const aio::HttpHead& head);
// The metadata parameter, of which the query's own decoding is undone: what remains is decoded as a
// whole, cut at & and =, and each part decoded once more.
Outcome<std::map<std::string, std::string>> parse_metadata_filter(const std::string& text);

struct Page {
  std::vector<const Sandbox*> items;
  std::optional<std::string> next_token;
  std::size_t running = 0;  // Of all that match, before the limit.
};
Page list_page(const std::vector<const Sandbox*>& sandboxes, const ListQuery& query);

// What clients see of a phase: nothing when it is neither running nor paused to them.
enum class Seen { kNothing, kRunning, kPaused };
Seen seen_as(Phase phase);

}  // namespace local_e2b
