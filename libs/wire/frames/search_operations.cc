#include "libs/wire/frames/search_operations.h"

#include "libs/base/crypto.h"
#include "libs/base/utf8.h"
#include "libs/wire/frames/place_fields.h"

namespace wire {
namespace {

constexpr Number kCount;
constexpr Flag kFlag;
constexpr Text kGlob{1, 4096};
constexpr Text kWord{1, 64};
constexpr Text kDigest{64, 64};

constexpr std::pair<SearchOrder, std::string_view> kOrders[] = {
    {SearchOrder::kAsFound, "asFound"},
    {SearchOrder::kPath, "path"},
    {SearchOrder::kModified, "modified"}};
constexpr Words<SearchOrder> kOrder{kOrders};

constexpr std::pair<CaseMode, std::string_view> kCaseModes[] = {
    {CaseMode::kSensitive, "sensitive"},
    {CaseMode::kInsensitive, "insensitive"},
    {CaseMode::kSmart, "smart"}};
constexpr Words<CaseMode> kCaseMode{kCaseModes};

// A line of a file: any bytes, NUL too.
struct Content {
  base::Json write(const std::string& bytes) const {
    if (base::is_utf8(bytes)) return bytes;
    return {{"b64", base::to_base64(bytes)}};
  }
  base::Result<std::string> read(const base::Json& json) const {
    if (json.is_string()) return json.get<std::string>();
    const auto encoded = base::text_at(json, "b64");
    if (encoded)
      if (auto bytes = base::from_base64(*encoded)) return *std::move(bytes);
    return must_be("a text or {\"b64\"}");
  }
};

struct Span {
  base::Json write(const std::pair<std::int64_t, std::int64_t>& span) const {
    return base::Json::array({span.first, span.second});
  }
  base::Result<std::pair<std::int64_t, std::int64_t>> read(const base::Json& json) const {
    if (!json.is_array() || json.size() != 2) return must_be("[from, to]");
    TRY(const std::int64_t from, kCount.read(json[0]));
    TRY(const std::int64_t to, kCount.read(json[1]));
    return std::pair(from, to);
  }
};

void selection_fields(auto& visit, auto& files) {
  visit.with_default("globs", files.globs, {}, List{64, kGlob});
  visit.with_default("types", files.types, {}, List{64, kWord});
  visit.with_default("hidden", files.hidden, false, kFlag);
  visit.with_default("ignoreFiles", files.ignore_files, true, kFlag);
  visit.with_default("order", files.order, SearchOrder::kAsFound, kOrder);
}

void bound_fields(auto& visit, auto& m) {
  visit.with_default("foundMax", m.found_max, kFoundUsual, Number{1, kFoundMax});
  visit.with_default("bytesMax", m.bytes_max, kSearchBytesUsual, Number{1, kSearchBytesMax});
}

}  // namespace

template <Is<SearchOk> Fields>
void fields(auto& visit, Fields& m) {
  visit("target", m.target, kPath);
}

template <Is<GlobArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  selection_fields(visit, m.files);
  bound_fields(visit, m);
}

template <Is<GrepArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit("pattern", m.pattern, Text{1, 32u << 10});
  visit.with_default("literal", m.literal, false, kFlag);
  visit.with_default("word", m.word, false, kFlag);
  visit.with_default("multiline", m.multiline, false, kFlag);
  visit.with_default("binary", m.binary, false, kFlag);
  visit.with_default("case", m.case_mode, CaseMode::kSensitive, kCaseMode);
  visit.with_default("before", m.before, std::int64_t{0}, Number{0, kContextMax});
  visit.with_default("after", m.after, std::int64_t{0}, Number{0, kContextMax});
  selection_fields(visit, m.files);
  visit.optional("fileBytesMax", m.file_bytes_max, Number{1});
  visit.with_default("lineBytesMax", m.line_bytes_max, kLineBytesUsual, Number{1, kLineBytesMax});
  bound_fields(visit, m);
}

template <Is<SearchSummary> Fields>
void fields(auto& visit, Fields& m) {
  visit("found", m.found, kCount);
  visit("files", m.files, kCount);
  visit.optional("limit", m.limit, kWord);
  visit.with_default("troubles", m.troubles, std::int64_t{0}, kCount);
  visit.with_default("told", m.told, {}, List{20, Text{0, 1024}});
}

template <Is<SearchLine> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("path", m.path, kPath);
  visit.optional("line", m.line, kCount);
  visit.optional("offset", m.offset, kCount);
  visit.optional("text", m.text, Content{});
  visit.with_default("context", m.context, false, kFlag);
  visit.with_default("cut", m.cut, false, kFlag);
  visit.with_default("spans", m.spans, {}, List{kSpansMax, Span{}});
  visit.optional("summary", m.summary, Inner<SearchSummary>{});
  visit.judge(m.path.has_value() != m.summary.has_value(),
              "either \"path\" or \"summary\" is needed");
}

template <Is<FindToolArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("name", m.name, kWord);
}

template <Is<FindToolArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("sha256", m.sha256, kDigest);
  visit("bytes", m.bytes, kCount);
  visit.nullable("path", m.path, kPath);
}

template <Is<PutToolArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("name", m.name, kWord);
  visit("sha256", m.sha256, kDigest);
}

template <Is<PutToolArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("path", m.path, kPath);
}

WIRE_FIELDS(SearchOk)
WIRE_FIELDS(GlobArgs)
WIRE_FIELDS(GrepArgs)
WIRE_FIELDS(SearchSummary)
WIRE_FIELDS(SearchLine)
WIRE_FIELDS(FindToolArgs)
WIRE_FIELDS(FindToolArgs::Ok)
WIRE_FIELDS(PutToolArgs)
WIRE_FIELDS(PutToolArgs::Ok)

}  // namespace wire
