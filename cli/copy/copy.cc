#include "cli/copy/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <ostream>
#include <utility>

#include "cli/copy/aside.h"
#include "cli/copy/copying.h"
#include "cli/reach/asking.h"
#include "cli/reach/transfer.h"
#include "cli/reach/way.h"
#include "libs/archives/pack.h"
#include "libs/archives/unpack.h"
#include "libs/base/files.h"
#include "libs/base/strings.h"
#include "libs/wire/frames/archive_operations.h"

namespace cli {
namespace {

namespace fs = std::filesystem;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kPieceBytes = 64u << 10;
constexpr std::size_t kToldMax = 10;

base::Fd folder_at(const fs::path& path) {
  return base::Fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

mode_t umask_now() {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return mask;
}

class Copy {
 public:
  Copy(wire::Connection& connection, const Options& options, const Ends& ends,
       const Terminal& terminal, Copying what)
      : connection_(connection),
        options_(options),
        ends_(ends),
        terminal_(terminal),
        what_(std::move(what)) {}

  Result<int> run() {
    const auto opened = connection_.open({.wake = ends_.signals});
    if (!opened) return to_error(opened.error());
    TRY(there_, look(what_.inside().path));
    CHECK_OK(what_.from.inside ? come() : go());
    return tell_remarks();
  }

 private:
  // What is inside at a path.
  Result<std::optional<wire::FileInfo>> look(const std::string& path) {
    auto answer = connection_.ask(wire::StatArgs{{.path = path}}, {},
                                  {.moment = terminal_.clock.now() + kAnswerWithin});
    if (!answer) return to_error(answer.error());
    return std::move(answer->info);
  }
  bool leaves_out(const std::string& name) const {
    return std::find(options_.excludes.begin(), options_.excludes.end(), name) !=
           options_.excludes.end();
  }

  // ---- Out of the sandbox ----

  Result<base::Done> come() {
    if (!there_)
      return base::error(ErrorCode::kNotFound, "nothing is at ", what_.from.path, " in ",
                         what_.from.sandbox);
    const bool folder = there_->type == wire::FileType::kDirectory;
    if (what_.to.stream() && !folder)
      return base::error(ErrorCode::kInvalid, "- stands for an archive, and ", what_.from.path,
                         " is no folder");
    if (what_.to.stream()) return come_as_archive();
    std::error_code ignored;
    const fs::path to =
        arrival_of(what_.from.path, what_.to.path, fs::is_directory(what_.to.path, ignored));
    return folder ? come_as_folder(to) : come_as_file(to);
  }

  wire::CreateArchiveArgs archive_args() const {
    return {.place = {.path = what_.from.path}, .excludes = options_.excludes};
  }

  Result<base::Done> come_as_archive() {
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(archive_args(), {.down = true}));
    for (;;) {
      TRY(const std::string bytes, moved.read());
      if (bytes.empty()) return base::Done{};
      CHECK_OK(base::write_all(ends_.out, bytes));
    }
  }

  Result<base::Done> come_as_file(const fs::path& to) {
    TRY(const Aside aside, Aside::in(parent_of(to)));
    const fs::path staged = aside.path() / "file";
    const base::Fd file(::open(staged.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file) return base::errno_error("write", staged, errno);
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(wire::ReadBytesArgs{.place = {.path = what_.from.path}}, {.down = true}));
    for (;;) {
      TRY(const std::string bytes, moved.read());
      if (bytes.empty()) break;
      CHECK_OK(base::write_all(file.get(), bytes));
    }
    if (::fchmod(file.get(), static_cast<mode_t>(there_->mode) & 0777) != 0 ||
        ::rename(staged.c_str(), to.c_str()) != 0)
      return base::errno_error("write", to, errno);
    return base::Done{};
  }

  Result<base::Done> come_as_folder(const fs::path& to) {
    std::error_code ignored;
    const bool fresh = !fs::exists(fs::symlink_status(to, ignored));
    TRY(const Aside aside, Aside::in(fresh ? parent_of(to) : to));
    const fs::path content = fresh ? aside.path() / "content" : to;
    if (fresh && ::mkdir(content.c_str(), 0700) != 0)
      return base::errno_error("make", content, errno);
    const base::Fd into = folder_at(content), beside = folder_at(aside.path());
    if (!into || !beside) return base::errno_error("open", content, errno);
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(archive_args(), {.down = true}));
    // A sandbox is a stranger's: its links must not lead whoever reads them out of the copy.
    const auto unpacked = archives::unpack(
        moved.source(), into, beside,
        {.outward_links = false, .fresh = fresh, .umask = umask_now()}, report_, {});
    if (!unpacked) return base::Error(unpacked.error());
    add_remarks_behind(unpacked->trailer);
    if (!fresh) return base::Done{};
    // It is yet to move, which takes the right to change it.
    const archives::Attributes top =
        unpacked->top.value_or(archives::Attributes{0755, {0, UTIME_NOW}});
    ::fchmod(into.get(), top.mode | S_IWUSR);
    if (::rename(content.c_str(), to.c_str()) != 0) return base::errno_error("make", to, errno);
    const std::array<std::timespec, 2> times = {std::timespec{0, UTIME_OMIT}, top.modified};
    ::fchmod(into.get(), top.mode);
    ::futimens(into.get(), times.data());
    return base::Done{};
  }

  static fs::path parent_of(const fs::path& path) {
    const fs::path parent = path.parent_path();
    return parent.empty() ? "." : parent;
  }

  // ---- Into the sandbox ----

  Result<base::Done> go() {
    if (what_.from.stream()) return go_as_archive();
    struct stat found{};
    const fs::path from = what_.from.path;
    if (::stat(from.c_str(), &found) != 0) return base::errno_error("read", from, errno);
    const bool folder_there = there_ && there_->type == wire::FileType::kDirectory;
    const std::string to = arrival_of(what_.from.path, what_.to.path, folder_there);
    if (S_ISDIR(found.st_mode)) return go_as_folder(from, to);
    if (S_ISREG(found.st_mode)) return go_as_file(from, to, found.st_mode);
    return base::error(ErrorCode::kInvalid, from.string(), " is no file and no folder");
  }

  Result<base::Done> pump(int descriptor, Transfer& moved) {
    std::string piece(kPieceBytes, '\0');
    for (;;) {
      const ssize_t got = ::read(descriptor, piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return base::errno_error("read", what_.from.path, errno);
      if (got == 0) return base::Done{};
      CHECK_OK(moved.write(std::string_view(piece).substr(0, static_cast<std::size_t>(got))));
    }
  }

  Result<base::Done> go_as_archive() {
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(extract_args(what_.to.path), {.mutating = true, .up = true}));
    CHECK_OK(pump(ends_.in, moved));
    return finish_extracting(moved);
  }

  Result<base::Done> go_as_file(const fs::path& from, const std::string& to, mode_t mode) {
    const base::Fd file(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return base::errno_error("read", from, errno);
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(wire::WriteArgs{.place = {.path = to}, .mode = mode & 0777},
                         {.mutating = true, .up = true}));
    CHECK_OK(pump(file.get(), moved));
    TRY(const auto answer, moved.end());
    static_cast<void>(answer);
    return base::Done{};
  }

  wire::ExtractArchiveArgs extract_args(const std::string& to) const {
    return {.place = {.path = to}, .excludes = options_.excludes};
  }

  Result<base::Done> go_as_folder(const fs::path& from, const std::string& to) {
    const base::Fd folder = folder_at(from);
    if (!folder) return base::errno_error("read", from, errno);
    Transfer moved(connection_, ends_, terminal_);
    CHECK_OK(moved.begin(extract_args(to), {.mutating = true, .up = true}));
    auto packed = archives::pack(
        folder, {.leaves_out = [this](const std::string& name) { return leaves_out(name); }},
        moved.sink(), {});
    if (!packed) return base::Error(packed.error());
    report_ = *std::move(packed);
    return finish_extracting(moved);
  }

  Result<base::Done> finish_extracting(Transfer& moved) {
    TRY(const base::Json answer, moved.end());
    TRY(const auto ok, wire::from_json<wire::ExtractArchiveArgs::Ok>(answer));
    add_remarks(ok.report);
    return base::Done{};
  }

  // ---- What is not as it was ----

  void add_remarks(const wire::ArchiveReport& report) {
    other_remarks_ += report.remarks;
    for (const wire::ArchiveRemark& one : report.told)
      told_.push_back(one.path + ": " + one.remark);
  }
  void add_remarks_behind(const std::string& trailer) {
    if (trailer.empty()) return;
    const auto json = base::parse_json(trailer);
    if (!json) return;
    if (const auto report = wire::from_json<wire::ArchiveReport>(*json)) add_remarks(*report);
  }

  int tell_remarks() {
    for (const archives::Remarked& one : report_.told)
      told_.push_back(one.path + ": " + std::string(archives::to_word(one.remark)));
    const std::uint64_t count = report_.remarks + static_cast<std::uint64_t>(other_remarks_);
    if (count == 0) return kDone;
    for (std::size_t i = 0; i < std::min(told_.size(), kToldMax); ++i)
      terminal_.err << "sandfleet: " << base::on_one_line(told_[i]) << "\n";
    terminal_.err << "sandfleet: copied, but " << count << " entries are not as they were\n"
                  << std::flush;
    return kFailed;
  }

  wire::Connection& connection_;
  const Options& options_;
  const Ends& ends_;
  const Terminal& terminal_;
  const Copying what_;
  std::optional<wire::FileInfo> there_;
  archives::Report report_;  // Of what was done here.
  std::int64_t other_remarks_ = 0;
  std::vector<std::string> told_;
};

}  // namespace

int copy(wire::Connection& connection, const Options& options, const Ends& ends,
         const Terminal& terminal) {
  const auto what = read_copying(options);
  if (!what) return fail(what.error(), terminal.err);
  const auto done = Copy(connection, options, ends, terminal, *what).run();
  connection.finish();
  if (done) return *done;
  base::Error why = done.error();
  why.message = base::on_one_line(why.message);  // It may name what the sandbox named.
  return fail(why, terminal.err);
}

}  // namespace cli
