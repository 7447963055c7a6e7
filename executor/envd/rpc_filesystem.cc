#include <cerrno>

#include "executor/envd/proto_json.h"
#include "executor/envd/rpc.h"
#include "executor/files/folders.h"
#include "executor/files/path.h"
#include "executor/files/removal.h"
#include "libs/base/time.h"

namespace executor {
namespace {

std::string_view kind_word(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFile:
      return "FILE_TYPE_FILE";
    case EntryKind::kFolder:
      return "FILE_TYPE_DIRECTORY";
    case EntryKind::kSymlink:
      return "FILE_TYPE_SYMLINK";
    case EntryKind::kOther:
      return {};
  }
  return {};
}

RpcResult<base::Json> entry_reply(FileResult<Entry> entry) {
  if (!entry) return rpc_error(entry.error());
  return base::Json{{"entry", to_json(*entry)}};
}

}  // namespace

RpcError rpc_error(const FileError& error) {
  const auto as = [&](RpcCode code) { return RpcError(code, error.message); };
  switch (error.error_number) {
    case ENOENT:
      return as(RpcCode::kNotFound);
    case EEXIST:
      return as(RpcCode::kAlreadyExists);
    case ENOTDIR:
    case EISDIR:
    case EINVAL:
    case ENAMETOOLONG:
    case ENOTSUP:
      return as(RpcCode::kInvalidArgument);
    case EBUSY:
    case ELOOP:
      return as(RpcCode::kFailedPrecondition);
    case ENOSPC:
    case EDQUOT:
    case E2BIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return as(RpcCode::kResourceExhausted);
    default:
      return RpcError(static_cast<const base::Error&>(error));
  }
}

// Values of zero are left out, as everywhere in this mapping.
base::Json to_json(const Entry& entry) {
  base::Json json = {{"name", entry.name},
                     {"path", entry.path},
                     {"permissions", entry.permissions},
                     {"owner", entry.owner},
                     {"group", entry.group},
                     {"modifiedTime", base::to_rfc3339(entry.modified)}};
  if (entry.kind != EntryKind::kOther) json["type"] = kind_word(entry.kind);
  if (entry.size != 0) json["size"] = std::to_string(entry.size);
  if (entry.mode != 0) json["mode"] = entry.mode;
  if (entry.symlink_target) json["symlinkTarget"] = *entry.symlink_target;
  if (!entry.metadata.empty()) json["metadata"] = entry.metadata;
  return json;
}

RpcResult<std::string> path_at(const RpcCall& call, std::string_view field) {
  TRY(const auto spelled, Message(call.message).text(field));
  auto path = resolve_path(spelled.value_or(""), call.user, call.daemon->settings.default_workdir);
  if (!path) return RpcError(path.error());
  return *std::move(path);
}

aio::Task<RpcResult<base::Json>> rpc_stat(RpcCall call) {
  CO_TRY(const std::string path, path_at(call, "path"));
  auto work = [path, daemon = call.daemon] { return stat_entry(path, daemon->users); };
  auto entry = co_await call.daemon->background.run(std::move(work));
  co_return entry_reply(std::move(entry));
}

aio::Task<RpcResult<base::Json>> rpc_make_dir(RpcCall call) {
  CO_TRY(const std::string path, path_at(call, "path"));
  auto work = [path, daemon = call.daemon, user = call.user]() -> FileResult<Entry> {
    CHECK_OK(make_folder(path, daemon->users, user));
    return stat_entry(path, daemon->users);
  };
  auto entry = co_await call.daemon->background.run(std::move(work));
  co_return entry_reply(std::move(entry));
}

aio::Task<RpcResult<base::Json>> rpc_move(RpcCall call) {
  CO_TRY(const std::string from, path_at(call, "source"));
  CO_TRY(const std::string to, path_at(call, "destination"));
  auto work = [from, to, daemon = call.daemon, user = call.user]() -> FileResult<Entry> {
    CHECK_OK(move_entry(from, to, daemon->users, user));
    return stat_entry(to, daemon->users);
  };
  auto entry = co_await call.daemon->background.run(std::move(work));
  co_return entry_reply(std::move(entry));
}

aio::Task<RpcResult<base::Json>> rpc_list_dir(RpcCall call) {
  CO_TRY(const std::string path, path_at(call, "path"));
  CO_TRY(const auto depth, Message(call.message).number("depth"));
  auto work = [path, depth = depth.value_or(0), daemon = call.daemon] {
    return list_folder(path, depth, daemon->users);
  };
  auto listed = co_await call.daemon->background.run(std::move(work));
  if (!listed) co_return rpc_error(listed.error());
  base::Json reply = base::Json::object();
  for (const Entry& entry : *listed) reply["entries"].push_back(to_json(entry));
  co_return reply;
}

aio::Task<RpcResult<base::Json>> rpc_remove(RpcCall call) {
  CO_TRY(const std::string path, path_at(call, "path"));
  auto removed = co_await call.daemon->background.run([path] { return remove_entry(path); });
  if (!removed) co_return rpc_error(removed.error());
  co_return base::Json::object();
}

}  // namespace executor
