#include "cli/print/render.h"
#include "libs/base/strings.h"
#include "libs/base/time.h"

namespace cli {
namespace {

// "Name:          value" lines, so that values stand in one column.
class Page {
 public:
  void line(const std::string& name, const std::string& value) {
    constexpr std::size_t kColumn = 18;
    const std::string head = name + ":";
    text_ += head + std::string(head.size() < kColumn ? kColumn - head.size() : 1, ' ') +
             (value.empty() ? "-" : base::on_one_line(value)) + "\n";
  }
  void map(const std::string& name, const std::map<std::string, std::string>& values) {
    std::string first = name;
    if (values.empty()) line(name, "");
    for (const auto& [key, value] : values) {
      std::string pair = key;
      line(first, pair.append("=").append(value));
      first = " ";
    }
  }
  void section(const std::string& name, const Table& table) {
    text_ += name + ":" + (table.rows.empty() ? " none\n" : "\n");
    if (table.rows.empty()) return;
    std::string indented = "  ";
    for (const char c : to_text(table)) {
      indented += c;
      if (c == '\n') indented += "  ";
    }
    indented.resize(indented.size() - 2);
    text_ += indented;
  }
  std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

std::string when(std::optional<base::WallTime> time, base::WallTime now) {
  if (!time) return "";
  return base::to_rfc3339(*time) + " (" + age(time, now) + " ago)";
}

void spec_lines(Page& page, const api::SandboxSpec& spec) {
  page.line("Provider", spec.provider);
  page.line("Template", spec.template_id);
  page.line("Desired state", std::string(to_word(spec.desired_state)));
  page.line("Deletion policy", std::string(to_word(spec.deletion_policy)));
  page.line("Keep alive", std::to_string(spec.keep_alive.timeout.count()) +
                              "s lease, extended each " +
                              std::to_string(spec.keep_alive.heartbeat.count()) + "s; on timeout " +
                              std::string(to_word(spec.keep_alive.on_timeout)));
  const auto& life = spec.lifecycle;
  if (life.idle) {
    page.line("When idle", std::string(to_word(life.idle_action)) + " after " +
                               std::to_string(life.idle->count()) + "s" +
                               (life.wake_on_attach ? "; whoever attaches wakes it" : ""));
  }
  if (life.max_lifetime) {
    page.line("Max lifetime", std::to_string(life.max_lifetime->count()) + "s");
  }
  if (life.shutdown_time) page.line("Shutdown time", base::to_rfc3339(*life.shutdown_time));
}

void status_lines(Page& page, const api::SandboxStatus& status, base::WallTime now) {
  page.line("State", status.state);
  page.line("Sandbox ID", status.sandbox_id);
  page.line("Epoch", std::to_string(status.epoch) + ", incarnation " +
                         std::to_string(status.incarnation) + ", run " +
                         std::to_string(status.run));
  page.line("Endpoint", status.endpoint_url.empty()
                            ? ""
                            : status.endpoint_url + " (" + status.endpoint_routing + ")");
  page.line("Running since", when(status.start_time, now));
  if (status.paused_by != api::PausedBy::kNobody) {
    page.line("Paused by", std::string(to_word(status.paused_by)));
  }
  if (status.ended_by != api::EndedBy::kNobody) {
    page.line("Ended by", std::string(to_word(status.ended_by)));
    page.line("Ended", when(status.terminated_time, now));
  }
}

Table condition_table(const std::vector<api::Condition>& conditions, base::WallTime now) {
  Table table{{"TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}};
  for (const auto& each : conditions) {
    table.rows.push_back({each.type, each.status, each.reason, age(each.last_transition, now),
                          each.message.empty() ? "-" : each.message});
  }
  return table;
}

Table notice_table(const std::vector<api::SandboxStatus::Notice>& notices, base::WallTime now) {
  Table table{{"NUMBER", "AGE", "TEXT"}};
  for (const auto& each : notices) {
    table.rows.push_back({std::to_string(each.number), age(each.time, now), each.text});
  }
  return table;
}

}  // namespace

std::string describe(const api::Sandbox& sandbox, const std::string& origin,
                     const std::optional<std::vector<api::RecordedEvent>>& events,
                     base::WallTime now) {
  const auto& metadata = sandbox.metadata;
  Page page;
  page.line("Name", metadata.key.name);
  page.line("Namespace", metadata.key.space);
  page.line("UID", metadata.uid);
  if (!origin.empty()) page.line("Declared in", origin);
  page.line("Created", when(metadata.created, now));
  if (metadata.deleted) page.line("Deleting since", when(metadata.deleted, now));
  page.line("Generation", std::to_string(metadata.generation) + ", observed " +
                              std::to_string(sandbox.status.observed_generation));
  page.map("Labels", metadata.labels);
  spec_lines(page, sandbox.spec);
  status_lines(page, sandbox.status, now);
  page.section("Conditions", condition_table(sandbox.status.conditions, now));
  page.section("Notices", notice_table(sandbox.status.notices, now));
  if (events)
    page.section("Events", event_table(*events, {}, now));
  else
    page.line("Events", "could not be read");
  return std::move(page).text();
}

}  // namespace cli
