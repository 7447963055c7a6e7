#include "libs/wire/frames/file_operations.h"

#include "libs/wire/frames/place_fields.h"

namespace wire {
namespace {

constexpr Text kVersion{1, 128};
constexpr Number kCount;
constexpr Number kPermissions{0, 0777};
constexpr Number kMode{0, 07777};
constexpr Number kPage{1, kPageEntriesMax};
constexpr Flag kFlag;

constexpr std::pair<FileType, std::string_view> kTypes[] = {{FileType::kFile, "file"},
                                                            {FileType::kDirectory, "directory"},
                                                            {FileType::kSymlink, "symlink"},
                                                            {FileType::kOther, "other"}};
constexpr Words<FileType> kType{kTypes};

constexpr std::pair<WriteOperation, std::string_view> kOperations[] = {
    {WriteOperation::kCreate, "create"}, {WriteOperation::kUpdate, "update"}};
constexpr Words<WriteOperation> kOperation{kOperations};

constexpr std::pair<WatchLine::Change, std::string_view> kChanges[] = {
    {WatchLine::Change::kCreated, "created"},
    {WatchLine::Change::kWritten, "written"},
    {WatchLine::Change::kRemoved, "removed"},
    {WatchLine::Change::kRenamed, "renamed"},
    {WatchLine::Change::kMode, "mode"}};
constexpr Words<WatchLine::Change> kChange{kChanges};

struct Intent {
  base::Json write(const WriteIntent& intent) const {
    if (const auto* replace = std::get_if<ReplaceIfVersion>(&intent))
      return {{"kind", "replaceIfVersion"}, {"version", replace->version}};
    return {{"kind", "createIfAbsent"}};
  }
  base::Result<WriteIntent> read(const base::Json& json) const {
    const std::string kind = base::text_at(json, "kind").value_or("");
    if (kind == "createIfAbsent") return WriteIntent(CreateIfAbsent{});
    if (kind != "replaceIfVersion" || !json.contains("version"))
      return must_be(R"({"kind": "createIfAbsent"} or {"kind": "replaceIfVersion", "version"})");
    TRY(auto version, kVersion.read(json["version"]));
    return WriteIntent(ReplaceIfVersion{std::move(version)});
  }
};

void path_fields(auto& visit, auto& place) {
  visit("path", place.path, kPath);
  visit.optional("cwd", place.cwd, kPath);
}

void from_to_fields(auto& visit, auto& m) {
  visit("from", m.from, kPath);
  visit("to", m.to, kPath);
  visit.optional("cwd", m.cwd, kPath);
}

}  // namespace

template <Is<FileInfo> Fields>
void fields(auto& visit, Fields& m) {
  visit("version", m.version, kVersion);
  visit("type", m.type, kType);
  visit.optional("size", m.size, kCount);
  visit("mode", m.mode, kMode);
  visit("mtimeMs", m.mtime_ms, Number{-kCountMax});
  visit.optional("linkTarget", m.link_target, kPath);
}

template <Is<ResolveArgs> Fields>
void fields(auto& visit, Fields& m) {
  path_fields(visit, m.place);
}

template <Is<ResolveArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("target", m.target, kPath);
  visit("displayPath", m.display_path, kPath);
}

template <Is<StatArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
}

template <Is<StatArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit.nullable("info", m.info, Inner<FileInfo>{});
}

template <Is<LstatArgs> Fields>
void fields(auto& visit, Fields& m) {
  path_fields(visit, m.place);
}

template <Is<ReadOk> Fields>
void fields(auto& visit, Fields& m) {
  visit("version", m.version, kVersion);
  visit("size", m.size, kCount);
}

template <Is<ReadTextArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.optional("maxBytes", m.bytes_max, kCount);
}

template <Is<ReadBytesArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.optional("maxBytes", m.bytes_max, kCount);
  visit.with_default("from", m.from, std::int64_t{0}, kCount);
  visit.optional("length", m.length, kCount);
}

template <Is<DirectoryEntry> Fields>
void fields(auto& visit, Fields& m) {
  visit("name", m.name, kEntryName);
  visit("type", m.type, kType);
  visit.optional("target", m.target, kPath);
  visit.optional("version", m.version, kVersion);
  visit.optional("size", m.size, kCount);
}

template <Is<ListDirArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.with_default("pageEntries", m.page_entries, kPageEntriesMax, kPage);
  visit.optional("after", m.after, kEntryName);
}

template <Is<ListDirArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("entries", m.entries, List{kPageEntriesMax, Inner<DirectoryEntry>{}});
  visit("more", m.more, kFlag);
}

template <Is<TreeEntry> Fields>
void fields(auto& visit, Fields& m) {
  visit("path", m.path, kPath);
  visit("type", m.type, kType);
  visit.optional("version", m.version, kVersion);
  visit.optional("size", m.size, kCount);
}

template <Is<ListTreeArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.with_default("pageEntries", m.page_entries, kPageEntriesMax, kPage);
  visit.optional("after", m.after, kPath);
  visit.with_default("depthMax", m.depth_max, kDepthMax, Number{1, kDepthMax});
  visit.with_default("excludes", m.excludes, {}, List{kExcludesMax, kEntryName});
}

template <Is<ListTreeArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("entries", m.entries, List{kPageEntriesMax, Inner<TreeEntry>{}});
  visit("more", m.more, kFlag);
}

template <Is<TextBytes> Fields>
void fields(auto& visit, Fields& m) {
  visit("bytes", m.bytes, kCount);
}

template <Is<WriteArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.optional("size", m.size, kCount);
  visit.optional("intent", m.intent, Intent{});
  visit.optional("mode", m.mode, kPermissions);
  visit.with_default("durable", m.durable, false, kFlag);
  visit.with_default("diffBytesMax", m.diff_bytes_max, std::int64_t{0}, Number{0, kEditBytesMax});
}

template <Is<WriteArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("operation", m.operation, kOperation);
  visit("version", m.version, kVersion);
  visit("target", m.target, kPath);
  visit.nullable("before", m.before, Inner<TextBytes>{});
}

template <Is<EditTextArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit("oldBytes", m.old_bytes, Number{0, kEditBytesMax});
  visit.with_default("replaceAll", m.replace_all, false, kFlag);
  visit.optional("version", m.version, kVersion);
  visit.with_default("durable", m.durable, false, kFlag);
  visit.with_default("diffBytesMax", m.diff_bytes_max, std::int64_t{0}, Number{0, kEditBytesMax});
}

template <Is<EditTextArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("version", m.version, kVersion);
  visit("target", m.target, kPath);
  visit("replacements", m.replacements, kCount);
  visit.nullable("before", m.before, Inner<TextBytes>{});
  visit.nullable("after", m.after, Inner<TextBytes>{});
}

template <Is<MkdirArgs> Fields>
void fields(auto& visit, Fields& m) {
  path_fields(visit, m.place);
  visit.with_default("parents", m.parents, false, kFlag);
  visit.optional("mode", m.mode, kPermissions);
}

template <Is<MkdirArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("created", m.created, kFlag);
  visit("target", m.target, kPath);
}

template <Is<RemoveArgs> Fields>
void fields(auto& visit, Fields& m) {
  path_fields(visit, m.place);
  visit.with_default("recursive", m.recursive, false, kFlag);
  visit.with_default("missingOk", m.missing_ok, false, kFlag);
}

template <Is<RemoveArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("removed", m.removed, kFlag);
}

template <Is<RenameArgs> Fields>
void fields(auto& visit, Fields& m) {
  from_to_fields(visit, m);
  visit.with_default("replace", m.replace, true, kFlag);
}

template <Is<RenameArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("target", m.target, kPath);
}

template <Is<CopyArgs> Fields>
void fields(auto& visit, Fields& m) {
  from_to_fields(visit, m);
  visit.with_default("recursive", m.recursive, false, kFlag);
  visit.with_default("replace", m.replace, true, kFlag);
  visit.with_default("durable", m.durable, false, kFlag);
}

template <Is<CopyArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("files", m.files, kCount);
  visit("bytes", m.bytes, kCount);
  visit("target", m.target, kPath);
}

template <Is<WatchArgs> Fields>
void fields(auto& visit, Fields& m) {
  place_fields(visit, m.place);
  visit.with_default("recursive", m.recursive, false, kFlag);
}

template <Is<WatchArgs::Ok> Fields>
void fields(auto&, Fields&) {}

template <Is<WatchLine> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("change", m.change, kChange);
  visit.optional("path", m.path, kPath);
  visit.optional("lost", m.lost, Number{1});
  visit.judge(
      m.change.has_value() == m.path.has_value() && m.change.has_value() != m.lost.has_value(),
      "either \"change\" and \"path\" or \"lost\" is needed");
}

WIRE_FIELDS(FileInfo)
WIRE_FIELDS(DirectoryEntry)
WIRE_FIELDS(TreeEntry)
WIRE_FIELDS(TextBytes)
WIRE_FIELDS(ResolveArgs)
WIRE_FIELDS(ResolveArgs::Ok)
WIRE_FIELDS(StatArgs)
WIRE_FIELDS(StatArgs::Ok)
WIRE_FIELDS(LstatArgs)
WIRE_FIELDS(ReadOk)
WIRE_FIELDS(ReadTextArgs)
WIRE_FIELDS(ReadBytesArgs)
WIRE_FIELDS(ListDirArgs)
WIRE_FIELDS(ListDirArgs::Ok)
WIRE_FIELDS(ListTreeArgs)
WIRE_FIELDS(ListTreeArgs::Ok)
WIRE_FIELDS(WriteArgs)
WIRE_FIELDS(WriteArgs::Ok)
WIRE_FIELDS(EditTextArgs)
WIRE_FIELDS(EditTextArgs::Ok)
WIRE_FIELDS(MkdirArgs)
WIRE_FIELDS(MkdirArgs::Ok)
WIRE_FIELDS(RemoveArgs)
WIRE_FIELDS(RemoveArgs::Ok)
WIRE_FIELDS(RenameArgs)
WIRE_FIELDS(RenameArgs::Ok)
WIRE_FIELDS(CopyArgs)
WIRE_FIELDS(CopyArgs::Ok)
WIRE_FIELDS(WatchArgs)
WIRE_FIELDS(WatchArgs::Ok)
WIRE_FIELDS(WatchLine)

}  // namespace wire
