#include "libs/wire/frames/frame.h"

#include <gtest/gtest.h>

#include "libs/base/crypto.h"
#include "libs/base/reading.h"
#include "libs/wire/frames/message.h"
#include "libs/wire/handshake.h"

namespace wire {
namespace {

base::Json vectors() {
  const auto text = base::read_regular_file(PROTOCOL_VECTORS, 1u << 20);
  EXPECT_TRUE(text) << text.error().message;
  const auto json = base::parse_json(*text);
  EXPECT_TRUE(json);
  return *json;
}

std::string text(const base::Json& json, const char* field) {
  return base::text_at(json, field).value_or("it is not there");
}
std::string bytes_at(const base::Json& json, const char* field) {
  return *base::from_hex(text(json, field));
}

// Of one part of the vectors, which is not empty.
base::Json part(const char* name) {
  base::Json found = vectors()[name];
  EXPECT_GT(found.size(), 0u) << name;
  return found;
}

TEST(Vectors, AreReadAndWrittenAsTheyStand) {
  for (const base::Json& one : part("frames")) {
    const std::string name = one["name"];
    const auto frame = decode(bytes_at(one, "bytes"));
    ASSERT_TRUE(frame && *frame) << name;
    const base::Json& means = one["means"];
    EXPECT_EQ((*frame)->stream, means.value("stream", 0u)) << name;
    EXPECT_EQ((*frame)->payload, *base::from_hex(means.value("payload", ""))) << name;
    EXPECT_EQ((*frame)->flags, (means.value("end", false) ? kEndFlag : 0) |
                                   (means.value("dropped", false) ? kDroppedFlag : 0))
        << name;
    const auto message = to_message(**frame);
    ASSERT_TRUE(message) << name << ": " << message.error().message;
    EXPECT_EQ(base::to_hex(encode(to_frame(*message))), text(one, "bytes")) << name;
  }
}

TEST(Vectors, OfLaterTypesAreSkipped) {
  for (const base::Json& one : part("skipped")) {
    const auto frame = decode(bytes_at(one, "bytes"));
    ASSERT_TRUE(frame) << one["name"];
    EXPECT_FALSE(*frame) << one["name"];
    FrameReader reader;
    reader.add(bytes_at(one, "bytes") + encode(to_frame(Ping{})));
    const auto next = reader.next();
    ASSERT_TRUE(next && *next) << one["name"];
    EXPECT_EQ((*next)->type, FrameType::kPing) << one["name"];
  }
}

TEST(Vectors, AreCarriedAsTheyCame) {
  for (const char* kind : {"frames", "skipped"}) {
    for (const base::Json& one : part(kind)) {
      const std::string bytes = bytes_at(one, "bytes");
      const auto seen = look_at(bytes);
      ASSERT_TRUE(seen) << one["name"];
      EXPECT_EQ(seen->bytes, bytes) << one["name"];
      EXPECT_EQ(seen->type, static_cast<std::uint8_t>(bytes[kLengthBytes])) << one["name"];
      EXPECT_EQ(seen->stream,
                std::stoul(base::to_hex(bytes.substr(kLengthBytes + 2, 4)), nullptr, 16))
          << one["name"];
      FrameReader reader;
      reader.add(bytes + bytes);
      for (int count = 0; count < 2; ++count) {
        const auto next = reader.next_bytes();
        ASSERT_TRUE(next && *next) << one["name"];
        EXPECT_EQ((*next)->bytes, bytes) << one["name"];
        EXPECT_EQ((*next)->type, seen->type) << one["name"];
        EXPECT_EQ((*next)->stream, seen->stream) << one["name"];
      }
    }
  }
  EXPECT_FALSE(look_at(""));
  EXPECT_FALSE(look_at(encode(to_frame(Ping{})) + "more"));
}

TEST(Vectors, ThatBreakARuleAreRefused) {
  for (const base::Json& one : part("refused")) {
    auto frame = decode(bytes_at(one, "bytes"));
    if (!frame) continue;
    ASSERT_TRUE(*frame) << one["name"];
    const auto message = to_message(**std::move(frame));
    EXPECT_FALSE(message) << one["name"];
    if (!message) EXPECT_EQ(message.error().code, base::ErrorCode::kInvalid) << one["name"];
  }
}

TEST(Vectors, OfNamesAreReadAndWritten) {
  const Name rule{1, 4096};
  for (const base::Json& one : part("names")) {
    const auto bytes = rule.read(one["json"]);
    ASSERT_TRUE(bytes) << one["name"];
    EXPECT_EQ(base::to_hex(*bytes), text(one, "bytes")) << one["name"];
    EXPECT_EQ(rule.write(*bytes), one["json"]) << one["name"];
  }
}

TEST(Vectors, OfAHandshakeHold) {
  const base::Json hand = vectors()["handshake"];
  const auto split = split_token(text(hand, "token"));
  ASSERT_TRUE(split) << split.error().message;
  EXPECT_EQ(split->claims, text(hand, "claims"));
  EXPECT_EQ(split->secret, secret_of(split->claims, bytes_at(hand, "attachKey")));
  const Nonces nonces{text(hand, "clientNonce"), text(hand, "serverNonce")};
  EXPECT_EQ(link_proof(ProofOf::kExecutor, split->secret, nonces),
            text(hand["proofs"], "executor"));
  EXPECT_EQ(link_proof(ProofOf::kClient, split->secret, nonces), text(hand["proofs"], "client"));
  EXPECT_EQ(link_proof(ProofOf::kRenewal, split->secret, nonces), text(hand["proofs"], "renewal"));
}

TEST(FrameReader, PutsFramesTogetherHoweverTheyArrive) {
  std::string bytes;
  for (int i = 1; i <= 3; ++i)
    bytes += encode(to_frame(
        Data{.stream = 7, .offset = i, .payload = std::string(static_cast<std::size_t>(i), 'x')}));
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    FrameReader reader;
    int seen = 0;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      reader.add(std::string_view(bytes).substr(at, piece));
      for (auto frame = reader.next(); frame && *frame; frame = reader.next())
        EXPECT_EQ((*frame)->payload.size(), static_cast<std::size_t>(++seen)) << piece;
    }
    EXPECT_EQ(seen, 3) << piece;
    EXPECT_EQ(reader.held(), 0u) << piece;
  }
}

TEST(FrameReader, RefusesALengthBeforeItHoldsTheRest) {
  FrameReader reader;
  reader.add(std::string_view("\x00\x14\x00\x0b", 4));  // One more than may be.
  EXPECT_FALSE(reader.next());
  FrameReader largest;
  largest.add(std::string_view("\x00\x14\x00\x0a", 4));
  EXPECT_TRUE(largest.next());
}

TEST(Frame, TakesTheLargestHeaderAndPayloadAndNoMore) {
  Frame frame{.type = FrameType::kData, .stream = 1};
  frame.header = R"({"offset":0,"x":")" + std::string(kHeaderBytesMax - 20, 'y') + "\"}";
  ASSERT_EQ(frame.header.size(), kHeaderBytesMax - 1);
  frame.header += " ";
  frame.payload.assign(kPayloadBytesMax, 'z');
  const std::string bytes = encode(frame);
  EXPECT_EQ(bytes.size(), kFrameBytesMax);
  const auto read = decode(bytes);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ(**read, frame);
  EXPECT_TRUE(to_message(**read));
  // The same sizes, told otherwise: a byte more of the header, or of the payload.
  for (const int more : {+1, -1}) {
    std::string moved = bytes;
    const std::size_t header = kHeaderBytesMax + static_cast<std::size_t>(more);
    for (int i = 0; i < 4; ++i) moved[10 + i] = static_cast<char>(header >> (24 - 8 * i));
    EXPECT_FALSE(decode(moved)) << more;
  }
}

TEST(Message, HoldsWhatACallerGivesToItsLimits) {
  const auto refused = [](const Message& message) { return !to_message(to_frame(message)); };
  Request request{.id = 1, .op = "fs.write", .up = true};
  request.payload.assign(kFirstBytesMax, 'x');
  EXPECT_FALSE(refused(request));
  request.payload += 'x';
  EXPECT_TRUE(refused(request));

  Notice notice{.number = 1, .kind = "k", .message = "m"};
  notice.detail = base::Json{{"x", std::string(kDetailBytesMax - 8, 'y')}};
  EXPECT_FALSE(refused(notice));
  notice.detail = base::Json{{"x", std::string(kDetailBytesMax - 7, 'y')}};
  EXPECT_TRUE(refused(notice));
  EXPECT_EQ(failure(FailureCode::kBusy, std::string(2000, 'x')).message.size(), 1024u);
}

TEST(Message, RefusesAHeaderThatWouldBecomeMuchMore) {
  const auto read = [](std::string header) {
    return to_message({.type = FrameType::kPing, .header = std::move(header)});
  };
  const auto commas = [](std::size_t count) {
    return "{\"a\":[0" + [&] {
      std::string more;
      for (std::size_t i = 0; i < count; ++i) more += ",0";
      return more;
    }() + "]}";
  };
  EXPECT_TRUE(read(commas(kHeaderValuesMax - 3)));
  EXPECT_FALSE(read(commas(kHeaderValuesMax - 2)));
  EXPECT_TRUE(read("{\"a\":\"" + std::string(100'000, ',') + "\"}")) << "a text is one value";
  EXPECT_TRUE(read(R"({"a":"\"[[[[[[[[[[[[[[[[[["})")) << "and its brackets are none";
}

TEST(Message, NamesTheFieldThatIsWrong) {
  const struct {
    FrameType type;
    std::uint32_t stream;
    const char *header, *why;
  } cases[] = {
      {FrameType::kCredit, 1, R"({"received":1})", "credit refused: \"limit\" is missing"},
      {FrameType::kCredit, 1, R"({"received":"1","limit":2})", "\"received\" must be a whole"},
      {FrameType::kCredit, 0, R"({"received":1,"limit":2})", "credit refused: it has no stream"},
      {FrameType::kPing, 2, "", "ping refused: it has a stream"},
      {FrameType::kReply, 1, R"({"error":{"code":7,"message":""}})",
       "\"error\" \"code\" must be one of FS_NOT_FOUND"},
      {FrameType::kResume, 0, R"({"receiving":[[1,2,3],[1,2]]})",
       "\"receiving\" item 1 must be [stream, received, limit]"},
      {FrameType::kHello, 0, R"({"protocol":{"min":2,"max":1}})",
       "\"protocol\" \"min\" is above \"max\""},
  };
  for (const auto& test : cases) {
    const auto message =
        to_message({.type = test.type, .stream = test.stream, .header = test.header});
    ASSERT_FALSE(message) << test.header;
    EXPECT_NE(message.error().message.find(test.why), std::string::npos) << message.error().message;
  }
}

TEST(Message, TakesWordsOfLaterVersionsForTheGeneralOne) {
  const auto reply = to_message({.type = FrameType::kReply,
                                 .stream = 1,
                                 .header = R"({"error":{"code":"SOME_NEW_ONE","message":"m"}})"});
  ASSERT_TRUE(reply);
  EXPECT_EQ(std::get<Reply>(*reply).error->code, FailureCode::kInternal);
  const auto close = to_message({.type = FrameType::kClose, .header = R"({"reason":"why not"})"});
  ASSERT_TRUE(close);
  EXPECT_EQ(std::get<Close>(*close).reason, CloseReason::kOther);
}

}  // namespace
}  // namespace wire
