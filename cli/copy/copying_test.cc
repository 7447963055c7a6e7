#include "cli/copy/copying.h"

#include <gmock/gmock.h>

#include "cli/reach/transfer.h"

namespace cli {
namespace {

Side inside(const std::string& sandbox, const std::string& path) { return {true, sandbox, path}; }
Side here(const std::string& path) { return {false, "", path}; }

TEST(Copy, TellsWhichSideIsInside) {
  EXPECT_EQ(read_side("box:/srv/a"), inside("box", "/srv/a"));
  EXPECT_EQ(read_side("team/box:a:b"), inside("team/box", "a:b"));
  EXPECT_EQ(read_side("box:"), inside("box", ".")) << "where calls begin";
  for (const char* word : {"a", "a/b", "./box:a", "/box:a", "a/b/c:d", "with space:a", "-", ":a",
                           "/team/box:a", "team/:a", ".."})
    EXPECT_EQ(read_side(word), here(word)) << word;
}

TEST(Copy, IsBetweenTheTwo) {
  const auto copying = [](std::vector<std::string> words) {
    return read_copying({.words = std::move(words)});
  };
  EXPECT_EQ(copying({"box:a", "b"})->inside().sandbox, "box");
  EXPECT_EQ(copying({"b", "team/box:a"})->inside().sandbox, "team/box");
  EXPECT_TRUE(copying({"box:a", "-"})->to.stream());
  for (const auto& words :
       {std::vector<std::string>{"a", "b"}, {"x:a", "y:b"}, {"x:a"}, {}, {"x:a", "b", "c"}})
    EXPECT_EQ(copying(words).error().code, base::ErrorCode::kInvalid);
}

TEST(Copy, ArrivesAsCpWouldHaveIt) {
  struct Case {
    const char *from, *to;
    bool folder;
    const char* arrives;
  };
  for (const Case& one : {
           Case{"a/b", "c", false, "c"},
           Case{"a/b", "c", true, "c/b"},
           Case{"a/b/", "c/", true, "c/b"},
           Case{"a/b/.", "c", true, "c"},
           Case{".", "c", true, "c"},
           Case{"/", "c", true, "c"},
           Case{"b", "/", true, "/b"},
           Case{"a/..", "c", true, "c"},
       })
    EXPECT_EQ(arrival_of(one.from, one.to, one.folder), one.arrives) << one.from << " " << one.to;
}

TEST(Copy, SaysHowMuchForPeople) {
  EXPECT_EQ(readable_bytes(0), "0 B");
  EXPECT_EQ(readable_bytes(1023), "1023 B");
  EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
  EXPECT_EQ(readable_bytes(std::uint64_t{5} << 40), "5.0 TiB");
}

}  // namespace
}  // namespace cli
