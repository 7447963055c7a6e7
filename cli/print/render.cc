#include "cli/print/render.h"

#include <algorithm>

#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace cli {
namespace {

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

struct Readiness {
  std::string status = "Unknown", reason;
};
Readiness readiness(const std::vector<api::Condition>& conditions) {
  for (const auto& condition : conditions) {
    if (condition.type == "Ready") return {condition.status, condition.reason};
  }
  return {};
}

}  // namespace

std::string to_text(const Table& table) { return Columns().print(table); }

std::string Columns::print(const Table& table) {
  const bool first = widths_.empty();
  widths_.resize(table.headings.size(), 0);
  const auto measure = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], row[i].size());
  };
  measure(table.headings);
  for (const auto& row : table.rows) measure(row);
  std::string text;
  const auto add = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool last = i + 1 == row.size();
      text += base::on_one_line(row[i]);
      text += last ? "\n" : std::string(widths_[i] - row[i].size() + 3, ' ');
    }
  };
  if (first && !table.headings.empty() && !table.headings[0].empty()) add(table.headings);
  for (const auto& row : table.rows) add(row);
  return text;
}

Table sandbox_table(const std::vector<api::Sandbox>& sandboxes, const Layout& layout,
                    base::WallTime now) {
  Table table{{"NAME", "READY", "STATE", "SANDBOX-ID", "TEMPLATE", "AGE"}};
  if (layout.wide) table.headings.insert(table.headings.end(), {"PROVIDER", "EPOCH", "REASON"});
  if (layout.spaces) table.headings.insert(table.headings.begin(), "NAMESPACE");
  for (const auto& sandbox : sandboxes) {
    const auto ready = readiness(sandbox.status.conditions);
    std::vector<std::string> row = {
        sandbox.metadata.key.name,     ready.status,
        or_dash(sandbox.status.state), or_dash(sandbox.status.sandbox_id),
        sandbox.spec.template_id,      age(sandbox.metadata.created, now)};
    if (layout.wide) {
      row.insert(row.end(), {sandbox.spec.provider, std::to_string(sandbox.status.epoch),
                             or_dash(ready.reason)});
    }
    if (layout.spaces) row.insert(row.begin(), sandbox.metadata.key.space);
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table provider_table(const std::vector<api::SandboxProvider>& providers, const Layout& layout,
                     base::WallTime now) {
  Table table{{"NAME", "READY", "URL", "AGE"}};
  if (layout.wide) table.headings.insert(table.headings.end(), {"DATA-URL", "ROUTING", "REASON"});
  for (const auto& provider : providers) {
    const auto ready = readiness(provider.status.conditions);
    std::vector<std::string> row = {provider.metadata.key.name, ready.status, provider.spec.api_url,
                                    age(provider.metadata.created, now)};
    if (layout.wide) {
      row.insert(row.end(), {provider.spec.data_url, std::string(to_word(provider.spec.routing)),
                             or_dash(ready.reason)});
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table event_table(const std::vector<api::RecordedEvent>& events, const Layout& layout,
                  base::WallTime now) {
  Table table{{"LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE"}};
  if (layout.wide) table.headings.insert(table.headings.begin() + 1, {"FIRST SEEN", "ACTION"});
  if (layout.spaces) table.headings.insert(table.headings.begin(), "NAMESPACE");
  for (const auto& event : events) {
    std::vector<std::string> row = {age(event.last, now),        event.event.type,
                                    event.event.reason,          "sandbox/" + event.regarding.name,
                                    std::to_string(event.count), event.event.note};
    if (layout.wide) {
      row.insert(row.begin() + 1, {age(event.first, now), or_dash(event.event.action)});
    }
    if (layout.spaces) row.insert(row.begin(), event.regarding.space);
    table.rows.push_back(std::move(row));
  }
  return table;
}

base::Json to_document(const std::vector<api::RecordedEvent>& events) {
  base::Json items = base::Json::array();
  for (const auto& each : events) {
    items.push_back({{"type", each.event.type},
                     {"reason", each.event.reason},
                     {"action", each.event.action},
                     {"note", each.event.note},
                     {"count", each.count},
                     {"firstTime", base::to_rfc3339(each.first)},
                     {"lastTime", base::to_rfc3339(each.last)},
                     {"regarding",
                      {{"kind", "Sandbox"},
                       {"namespace", each.regarding.space},
                       {"name", each.regarding.name},
                       {"uid", each.regarding_uid}}}});
  }
  return {{"apiVersion", "v1"}, {"kind", "List"}, {"items", items}};
}

std::string age(std::optional<base::WallTime> since, base::WallTime now) {
  if (!since) return "-";
  const auto seconds =
      std::max<std::int64_t>(0, std::chrono::floor<base::Seconds>(now - *since).count());
  constexpr std::int64_t kMinute = 60, kHour = 60 * kMinute, kDay = 24 * kHour;
  if (seconds < 2 * kMinute) return std::to_string(seconds) + "s";
  if (seconds < 2 * kHour) return std::to_string(seconds / kMinute) + "m";
  if (seconds < 2 * kDay) return std::to_string(seconds / kHour) + "h";
  return std::to_string(seconds / kDay) + "d";
}

}  // namespace cli
