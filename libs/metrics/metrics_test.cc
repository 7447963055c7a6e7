#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "libs/metrics/process.h"
#include "libs/metrics/registry.h"

namespace metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

const Table kTable = {
    {Kind::kCounter, "sandfleet_requests_total", "Requests by outcome.", {"op", "code"}},
    {Kind::kCounter, "sandfleet_sweeps_total", "Sweeps that ended."},
    {Kind::kGauge, "sandfleet_sandboxes", "Sandboxes by state.", {"state"}},
    {Kind::kHistogram, "sandfleet_wait_seconds", "Time waited.", {}, {0.1, 1, 10}},
};

TEST(Registry, ExposesCountersWithLabelsInTheOrderDeclared) {
  Registry registry(kTable);
  registry.counter("sandfleet_requests_total", {"create", "201"}).add();
  registry.counter("sandfleet_requests_total", {"create", "201"}).add(2);
  EXPECT_THAT(registry.expose(),
              HasSubstr("# HELP sandfleet_requests_total Requests by outcome.\n"
                        "# TYPE sandfleet_requests_total counter\n"
                        "sandfleet_requests_total{code=\"201\",op=\"create\"} 3\n"));
}

TEST(Registry, ShowsWhatHasNoLabelsFromTheStart) {
  Registry registry(kTable);
  EXPECT_THAT(registry.expose(), HasSubstr("\nsandfleet_sweeps_total 0\n"));
  EXPECT_THAT(registry.expose(), HasSubstr("sandfleet_wait_seconds_count 0\n"));
}

TEST(Registry, PutsObservationsIntoCumulativeBuckets) {
  Registry registry(kTable);
  auto wait = registry.histogram("sandfleet_wait_seconds");
  for (const double seconds : {0.05, 0.5, 5.0, 50.0}) wait.observe(seconds);
  const auto text = registry.expose();
  EXPECT_THAT(text, HasSubstr("sandfleet_wait_seconds_bucket{le=\"0.1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("sandfleet_wait_seconds_bucket{le=\"10\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("sandfleet_wait_seconds_bucket{le=\"+Inf\"} 4\n"));
}

TEST(Registry, RefreshesWhatIsMeasuredBeforeEachExposition) {
  Registry registry(kTable);
  int looks = 0;
  registry.before_exposition(
      [&] { registry.gauge("sandfleet_sandboxes", {"Ready"}).set(++looks); });
  EXPECT_THAT(registry.expose(), HasSubstr("sandfleet_sandboxes{state=\"Ready\"} 1\n"));
  EXPECT_THAT(registry.expose(), HasSubstr("sandfleet_sandboxes{state=\"Ready\"} 2\n"));
}

TEST(Registry, CountsLabelValuesBeyondTheBoundUnderOther) {
  Registry registry(kTable);
  for (std::size_t i = 0; i < kSeriesMax + 5; ++i) {
    registry.counter("sandfleet_requests_total", {"create", std::to_string(i)}).add();
  }
  registry.counter("sandfleet_requests_total", {"create", "0"}).add();  // Known ones go on.
  const auto text = registry.expose();
  EXPECT_THAT(text, HasSubstr("sandfleet_requests_total{code=\"other\",op=\"other\"} 5\n"));
  EXPECT_THAT(text, HasSubstr("sandfleet_requests_total{code=\"0\",op=\"create\"} 2\n"));
  EXPECT_THAT(text, Not(HasSubstr("code=\"" + std::to_string(kSeriesMax) + "\"")));
}

TEST(Registry, LosesNoCountBetweenThreads) {
  Registry registry(kTable);
  constexpr int kThreads = 4, kEach = 2000;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&registry, t] {
        for (int i = 0; i < kEach; ++i) {
          registry.counter("sandfleet_requests_total", {"create", std::to_string(t % 2)}).add();
          if (i % 200 == 0) registry.expose();
        }
      });
    }
  }
  EXPECT_EQ(registry.counter("sandfleet_requests_total", {"create", "0"}).value() +
                registry.counter("sandfleet_requests_total", {"create", "1"}).value(),
            kThreads * kEach);
}

TEST(RegistryDeathTest, EndsTheProgramOnANameThatTheTableDoesNotDeclare) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(Registry(kTable).counter("sandfleet_typo_total"), "not declared");
  EXPECT_DEATH(Registry(kTable).gauge("sandfleet_sweeps_total"), "another type");
  EXPECT_DEATH(Registry(kTable).counter("sandfleet_requests_total", {"create"}),
               "another number of labels");
}

struct BadTable {
  const char* name;
  Table table;
  const char* message;
};
void PrintTo(const BadTable& bad, std::ostream* out) { *out << bad.name; }

class Check : public testing::TestWithParam<BadTable> {};

TEST_P(Check, RefusesWhatWouldMisleadAReader) {
  const auto checked = check(GetParam().table);
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Tables, Check,
    testing::Values(
        BadTable{"bad_name",
                 {{Kind::kGauge, "Sand-fleet", "A."}},
                 "\"Sand-fleet\" is not a metric name: use a-z, 0-9 and _, a letter first"},
        BadTable{"no_help", {{Kind::kGauge, "a", ""}}, "a: the help must be a sentence"},
        BadTable{"counter_without_total",
                 {{Kind::kCounter, "a", "A."}},
                 "a: counters, and only they, end in _total"},
        BadTable{"gauge_with_total",
                 {{Kind::kGauge, "a_total", "A."}},
                 "a_total: counters, and only they, end in _total"},
        BadTable{"histogram_without_buckets",
                 {{Kind::kHistogram, "a", "A."}},
                 "a: histograms, and only they, have buckets"},
        BadTable{"buckets_that_descend",
                 {{Kind::kHistogram, "a", "A.", {}, {2, 1}}},
                 "a: the buckets must ascend"},
        BadTable{"a_series_per_object",
                 {{Kind::kGauge, "a", "A.", {"uid"}}},
                 "a: label \"uid\" names single objects; count them by a bounded word instead"},
        BadTable{"reserved_label",
                 {{Kind::kGauge, "a", "A.", {"le"}}},
                 "a: \"le\" is not usable as a label name"},
        BadTable{"twice",
                 {{Kind::kGauge, "a", "A."}, {Kind::kGauge, "a", "A."}},
                 "a is declared twice"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Table, PrintsItselfForTheDocumentation) {
  EXPECT_EQ(to_markdown({kTable[2], kTable[0]}),
            "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
            "| `sandfleet_requests_total` | counter | op, code | Requests by outcome. |\n"
            "| `sandfleet_sandboxes` | gauge | state | Sandboxes by state. |\n");
}

TEST(ExponentialBuckets, MultiplyFromTheFirst) {
  EXPECT_EQ(exponential_buckets(1, 10, 3), (std::vector<double>{1, 10, 100}));
}

TEST(Process, TellsTheTruthAboutThisProcess) {
  ASSERT_TRUE(check(process_table()));
  Registry registry(process_table());
  watch_process(registry);
  registry.expose();
  const auto files_before = registry.gauge("process_open_fds").value();
  const int extra = ::dup(0);
  registry.expose();
  ::close(extra);
  EXPECT_EQ(registry.gauge("process_open_fds").value(), files_before + 1);
  EXPECT_GT(registry.gauge("process_resident_memory_bytes").value(), 1e6);
  EXPECT_GE(registry.gauge("process_threads").value(), 1);
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  EXPECT_NEAR(registry.gauge("process_start_time_seconds").value(), now, 600);
}

TEST(Process, CpuTimeOnlyGrows) {
  Registry registry(process_table());
  watch_process(registry);
  registry.expose();
  const double before = registry.counter("process_cpu_seconds_total").value();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (registry.counter("process_cpu_seconds_total").value() <= before &&
         std::chrono::steady_clock::now() < deadline) {
    registry.expose();
  }
  EXPECT_GT(registry.counter("process_cpu_seconds_total").value(), before);
}

}  // namespace
}  // namespace metrics
