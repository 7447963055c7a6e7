#include "local_e2b/control/listing.h"

#include <algorithm>
#include <tuple>

#include "libs/base/crypto.h"
#include "libs/base/json.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"
#include "local_e2b/control/requests.h"

namespace local_e2b {
namespace {

constexpr std::int64_t kLimitMax = 100;

std::optional<std::string> unescape(std::string text) {
  std::replace(text.begin(), text.end(), '+', ' ');
  return base::percent_decode(text);
}

std::string make_token(const Sandbox& last, bool ascending) {
  const base::Json token = {{"order", ascending ? "asc" : "desc"},
                            {"startedAt", base::to_rfc3339(last.started_at)},
                            {"id", last.id}};
  return base::to_base64url(base::to_text(token));
}

Outcome<std::pair<base::WallTime, std::string>> read_token(const std::string& text,
                                                           bool ascending) {
  const Refusal bad = refuse(400, "Invalid next token");
  const auto decoded = base::from_base64url(text);
  if (!decoded) return bad;
  const auto json = base::parse_json(*decoded);
  if (!json) return bad;
  const auto started_at = base::text_at(*json, "startedAt");
  const auto id = base::text_at(*json, "id");
  const auto time = base::parse_rfc3339(started_at.value_or(""));
  if (!id || !time) return bad;
  if (base::text_at(*json, "order") != (ascending ? "asc" : "desc"))
    return refuse(400, "the next token belongs to a list in the other order");
  return std::pair{*time, *id};
}

Outcome<base::Done> read_states(const std::string& csv, ListQuery& query) {
  query.running = query.paused = false;
  for (const auto& part : base::split(csv, ',')) {
    const auto word = base::trim(part);
    if (word == "running")
      query.running = true;
    else if (word == "paused")
      query.paused = true;
    else
      return invalid("state must be running, paused or both");
  }
  return base::Done{};
}

Outcome<base::Done> read_limit(const std::string& text, ListQuery& query) {
  const auto limit = base::parse_integer(text);
  if (!limit || *limit < 1 || *limit > kLimitMax)
    return invalid("limit must be from 1 to " + std::to_string(kLimitMax));
  query.limit = static_cast<std::size_t>(*limit);
  return base::Done{};
}

}  // namespace

Outcome<std::map<std::string, std::string>> parse_metadata_filter(const std::string& text) {
  std::map<std::string, std::string> filter;
  const auto whole = unescape(text);
  if (!whole) return refuse(400, "metadata cannot be decoded");
  if (whole->empty()) return filter;
  for (const auto& pair : base::split(*whole, '&')) {
    const auto parts = base::split(pair, '=');
    if (parts.size() != 2 || parts[0].empty())
      return refuse(400, "metadata must be key=value pairs joined by &, each encoded twice");
    const auto key = unescape(parts[0]), value = unescape(parts[1]);
    if (!key || !value) return refuse(400, "metadata cannot be decoded");
    filter[*key] = *value;
  }
  return filter;
}

Outcome<ListQuery> parse_list_query(const aio::HttpHead& head) {
  ListQuery query;
  if (const auto order = head.query("order")) {
    if (*order != "asc" && *order != "desc") return invalid("order must be asc or desc");
    query.ascending = *order == "asc";
  }
  if (const auto states = head.query("state"); states && !states->empty())
    CHECK_OK(read_states(*states, query));
  if (const auto limit = head.query("limit")) CHECK_OK(read_limit(*limit, query));
  if (const auto metadata = head.query("metadata")) {
    TRY(query.metadata, parse_metadata_filter(*metadata));
  }
  if (const auto id = head.query("template"); id && !id->empty()) {
    const auto resolved = resolve_template(*id);
    query.template_id = resolved ? *resolved : *id;
  }
  if (const auto text = head.query("startedAfter")) {
    const auto time = base::parse_rfc3339(*text);
    if (!time) return invalid("startedAfter must be an RFC 3339 time");
    query.started_after = *time;
  }
  if (const auto token = head.query("nextToken"); token && !token->empty()) {
    TRY(query.after, read_token(*token, query.ascending));
  }
  return query;
}

Seen seen_as(Phase phase) {
  switch (phase) {
    case Phase::kRunning:
      return Seen::kRunning;
    case Phase::kPausing:
    case Phase::kPaused:
    case Phase::kResuming:
      return Seen::kPaused;
    case Phase::kStarting:
    case Phase::kKilling:
      return Seen::kNothing;
  }
  return Seen::kNothing;
}

namespace {

bool matches(const Sandbox& sandbox, const ListQuery& query) {
  const Seen seen = seen_as(sandbox.phase);
  if (seen == Seen::kNothing) return false;
  if (seen == Seen::kRunning ? !query.running : !query.paused) return false;
  if (query.template_id && sandbox.template_id != *query.template_id) return false;
  if (query.started_after && sandbox.started_at < *query.started_after) return false;
  return std::all_of(query.metadata.begin(), query.metadata.end(), [&](const auto& pair) {
    const auto found = sandbox.metadata.find(pair.first);
    return found != sandbox.metadata.end() && found->second == pair.second;
  });
}

}  // namespace

Page list_page(const std::vector<const Sandbox*>& sandboxes, const ListQuery& query) {
  const auto place = [](const Sandbox* each) { return std::tie(each->started_at, each->id); };
  Page page;
  std::vector<const Sandbox*> found;
  for (const Sandbox* each : sandboxes) {
    if (!matches(*each, query)) continue;
    page.running += each->phase == Phase::kRunning ? 1 : 0;
    if (query.after) {
      const auto after = std::tie(query.after->first, query.after->second);
      if (query.ascending ? place(each) <= after : place(each) >= after) continue;
    }
    found.push_back(each);
  }
  // The page, and one more that tells whether another follows.
  const auto end =
      found.begin() + static_cast<std::ptrdiff_t>(std::min(found.size(), query.limit + 1));
  std::partial_sort(found.begin(), end, found.end(), [&](const Sandbox* a, const Sandbox* b) {
    return query.ascending ? place(a) < place(b) : place(a) > place(b);
  });
  if (found.size() > query.limit) {
    found.resize(query.limit);
    page.next_token = make_token(*found.back(), query.ascending);
  }
  page.items = std::move(found);
  return page;
}

}  // namespace local_e2b
