#include "executor/envd/multipart.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

// What a body says, written flat: "name|file:bytes;" for each part, then "end".
std::string read(std::string_view body, std::size_t step) {
  Multipart multipart("b0");
  std::string seen;
  for (std::size_t at = 0; at < body.size(); at += step) {
    multipart.add(body.substr(at, step));
    for (;;) {
      auto event = multipart.next();
      if (!event) return seen + "!" + event.error().message;
      if (std::holds_alternative<Multipart::NeedsMore>(*event)) break;
      if (std::holds_alternative<Multipart::Finished>(*event)) return seen + "end";
      if (const auto* part = std::get_if<Multipart::PartBegins>(&*event))
        seen += part->name + "|" + part->file_name.value_or("-") + ":";
      if (const auto* part = std::get_if<Multipart::PartBytes>(&*event)) seen += part->bytes;
      if (std::holds_alternative<Multipart::PartEnds>(*event)) seen += ";";
    }
  }
  return seen + "cut";
}

const struct {
  const char* name;
  std::string body, wanted;
} kCases[] = {
    {"one",
     "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"/a/b.txt\"\r\n"
     "Content-Type: text/plain\r\n\r\nhello\r\n--b0--\r\n",
     "file|/a/b.txt:hello;end"},
    {"two_with_boundary_like_bytes",
     "--b0\r\ncontent-disposition: form-data; name=file; filename=a\r\n\r\n\r\n--b\r\n-\r\n"
     "--b0\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n\r\n--b0--",
     "file|a:\r\n--b\r\n-;x|-:;end"},
    {"preamble_is_ignored",
     "hello\r\n--b0 \r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nx\r\n--b0--",
     "file|-:x;end"},
    {"empty", "--b0--\r\n", "end"},
    {"escapes",
     "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\\\"b\\c;d\"\r\n\r\n"
     "x\r\n--b0--",
     "file|a\"b\\c;d:x;end"},
    {"extended_name",
     "--b0\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"; "
     "filename*=UTF-8''%C3%A9\r\n\r\nx\r\n--b0--",
     "file|\xc3\xa9:x;end"},
    {"no_headers", "--b0\r\n\r\nx\r\n--b0--", "|-:x;end"},
    {"cut", "--b0\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nhel", "cut"},
    {"text_after_boundary", "--b0xx\r\n",
     "!malformed multipart body: a boundary is followed by other text"},
};

TEST(Multipart, ReadsTheSameInPartsOfAnySize) {
  for (const auto& test : kCases)
    for (const std::size_t step : {1u, 2u, 3u, 7u, 1000u}) {
      const std::string seen = read(test.body, step);
      if (test.wanted == "cut") {
        EXPECT_TRUE(seen.ends_with("cut")) << test.name << " by " << step << ": " << seen;
      } else {
        EXPECT_EQ(seen, test.wanted) << test.name << " by " << step;
      }
    }
}

TEST(Multipart, BoundsWhatItHoldsBack) {
  const std::string long_text(Multipart::kPartHeadBytesMax + 100, 'x');
  EXPECT_EQ(read(long_text, 1000), "!malformed multipart body: no boundary at its beginning");
  EXPECT_EQ(read("--b0\r\n" + long_text, 1000),
            "!malformed multipart body: the head of a part is too long");
}

TEST(Multipart, FindsTheBoundary) {
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=b0"), "b0");
  EXPECT_EQ(multipart_boundary("Multipart/Form-Data; charset=x; boundary=\"a b\""), "a b");
  EXPECT_EQ(multipart_boundary("multipart/form-data"), std::nullopt);
  EXPECT_EQ(multipart_boundary("text/plain; boundary=b0"), std::nullopt);
  EXPECT_EQ(multipart_boundary("multipart/form-data; boundary=" + std::string(71, 'a')),
            std::nullopt);
}

}  // namespace
}  // namespace executor
