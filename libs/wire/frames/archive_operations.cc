#include "libs/wire/frames/archive_operations.h"

#include "libs/wire/frames/place_fields.h"

namespace wire {
namespace {

constexpr Number kCount;
constexpr Flag kFlag;

}  // namespace

template <Is<ArchiveRemark> Fields>
void fields(auto& visit, Fields& m) {
  visit("path", m.path, kPath);
  visit("remark", m.remark, Text{1, 32});
}

template <Is<ArchiveReport> Fields>
void fields(auto& visit, Fields& m) {
  visit("entries", m.entries, kCount);
  visit("files", m.files, kCount);
  visit("bytes", m.bytes, kCount);
  visit.with_default("remarks", m.remarks, std::int64_t{0}, kCount);
  visit.with_default("told", m.told, {}, List{kRemarksMax, Inner<ArchiveRemark>{}});
}

template <Is<CreateArchiveArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.with_default("excludes", m.excludes, {}, List{kExcludesMax, kEntryName});
  visit.with_default("level", m.level, kArchiveLevelUsual, Number{1, kArchiveLevelMax});
}

template <Is<CreateArchiveArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("target", m.target, kPath);
}

template <Is<ExtractArchiveArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.with_default("excludes", m.excludes, {}, List{kExcludesMax, kEntryName});
  visit.with_default("replace", m.replace, true, kFlag);
  visit.with_default("setIds", m.set_ids, false, kFlag);
  visit.with_default("durable", m.durable, false, kFlag);
  visit.with_default("bytesMax", m.bytes_max, kArchiveBytesMax, Number{0, kArchiveBytesMax});
}

template <Is<ExtractArchiveArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("created", m.created, kFlag);
  visit("target", m.target, kPath);
  visit("report", m.report, Inner<ArchiveReport>{});
}

WIRE_FIELDS(ArchiveRemark)
WIRE_FIELDS(ArchiveReport)
WIRE_FIELDS(CreateArchiveArgs)
WIRE_FIELDS(CreateArchiveArgs::Ok)
WIRE_FIELDS(ExtractArchiveArgs)
WIRE_FIELDS(ExtractArchiveArgs::Ok)

}  // namespace wire
