#include "executor/envd/connect.h"

#include <gtest/gtest.h>

namespace executor {
namespace {

TEST(Connect, FramesMessages) {
  using namespace std::string_literals;
  EXPECT_EQ(encode_envelope(0, "{}"), "\0\0\0\0\2{}"s);
  EXPECT_EQ(encode_envelope(2, std::string(258, 'x')).substr(0, 5), "\2\0\0\1\2"s);
  EXPECT_EQ(end_envelope({}), "\2\0\0\0\2{}"s);
  EXPECT_EQ(end_envelope(RpcError(RpcCode::kNotFound, "no")).substr(5),
            R"({"error":{"code":"not_found","message":"no"}})");
}

TEST(Connect, TakesEnvelopesOffABodyInParts) {
  EnvelopeReader reader;
  std::string seen;
  for (const char byte : encode_envelope(0, "one") + encode_envelope(2, "two")) {
    reader.add({&byte, 1});
    const auto envelope = reader.next();
    ASSERT_TRUE(envelope.ok());
    if (*envelope) seen += std::to_string((*envelope)->flags) + (*envelope)->payload + ";";
  }
  EXPECT_EQ(seen, "0one;2two;");
  EXPECT_TRUE(reader.empty());
}

TEST(Connect, RefusesLargeAndCompressedMessages) {
  EnvelopeReader large;
  large.add(std::string_view("\0\xff\xff\xff\xff", 5));
  EXPECT_EQ(large.next().error().rpc_code, RpcCode::kResourceExhausted);
  EnvelopeReader compressed;
  compressed.add(encode_envelope(kEnvelopeCompressed, "x"));
  EXPECT_EQ(compressed.next().error().rpc_code, RpcCode::kInvalidArgument);
}

TEST(Connect, MapsCodesToStatus) {
  EXPECT_EQ(http_status(RpcCode::kCanceled), 499);
  EXPECT_EQ(http_status(RpcCode::kFailedPrecondition), 400);
  EXPECT_EQ(http_status(RpcCode::kDeadlineExceeded), 504);
  EXPECT_EQ(http_status(RpcCode::kResourceExhausted), 429);
  EXPECT_EQ(to_word(RpcCode::kUnauthenticated), "unauthenticated");
  const struct {
    base::ErrorCode code;
    std::string_view word;
  } cases[] = {
      {base::ErrorCode::kInvalid, "invalid_argument"},
      {base::ErrorCode::kDenied, "permission_denied"},
      {base::ErrorCode::kNotFound, "not_found"},
      {base::ErrorCode::kConflict, "already_exists"},
      {base::ErrorCode::kRateLimited, "resource_exhausted"},
      {base::ErrorCode::kUnavailable, "internal"},
      {base::ErrorCode::kCancelled, "canceled"},
  };
  for (const auto& test : cases)
    EXPECT_EQ(to_word(RpcError(base::Error{test.code, ""}).rpc_code), test.word);
}

TEST(Connect, ReadsItsHeaders) {
  EXPECT_EQ(*parse_timeout(std::nullopt), std::nullopt);
  EXPECT_EQ(*parse_timeout("0"), base::Milliseconds(0));
  EXPECT_EQ(*parse_timeout("60000"), base::Milliseconds(60000));
  for (const char* bad : {"", "-1", "+1", "1.5", "12345678901", "soon"})
    EXPECT_FALSE(parse_timeout(bad).ok()) << bad;

  EXPECT_EQ(parse_keepalive("50"), base::Seconds(50));
  for (const char* odd : {"", "0", "-1", "x", "86401", "99999999999999999999"})
    EXPECT_EQ(parse_keepalive(odd), base::Seconds(90)) << odd;
  EXPECT_EQ(parse_keepalive(std::nullopt), base::Seconds(90));

  EXPECT_EQ(content_kind("application/json; charset=utf-8"), RpcContent::kUnary);
  EXPECT_EQ(content_kind("Application/Connect+JSON"), RpcContent::kStream);
  for (const char* other : {"application/proto", "application/connect+proto", "text/plain", ""})
    EXPECT_EQ(content_kind(other), RpcContent::kUnsupported) << other;
}

}  // namespace
}  // namespace executor
