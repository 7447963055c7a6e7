#include "libs/archives/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <locale.h>

#include <cerrno>
#include <new>
#include <utility>

namespace archives {
namespace {

constexpr int kBlockBytes = 64 << 10;  // In which it is handed on; the last one as it comes.

// libarchive takes names for text of the thread's locale. In this one they pass unchanged, with no
// program-wide locale touched.
class Utf8Locale {
 public:
  Utf8Locale() : made_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{})) {
    if (made_) before_ = ::uselocale(made_);
  }
  ~Utf8Locale() {
    if (!made_) return;
    ::uselocale(before_);
    ::freelocale(made_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t made_, before_{};
};

struct FreeWriter {
  void operator()(struct archive* one) const { archive_write_free(one); }
};
struct FreeReader {
  void operator()(struct archive* one) const { archive_read_free(one); }
};
struct FreeEntry {
  void operator()(struct archive_entry* one) const { archive_entry_free(one); }
};
using EntryPointer = std::unique_ptr<struct archive_entry, FreeEntry>;

std::string error_of(struct archive* one) {
  const char* text = archive_error_string(one);
  return text ? text : "no reason is given";
}

unsigned type_of(EntryKind kind) {
  switch (kind) {
    case EntryKind::kFolder:
      return AE_IFDIR;
    case EntryKind::kSymlink:
      return AE_IFLNK;
    default:
      return AE_IFREG;
  }
}

EntryKind kind_of(struct archive_entry* entry) {
  if (archive_entry_hardlink(entry)) return EntryKind::kHardLink;
  switch (archive_entry_filetype(entry)) {
    case AE_IFREG:
      return EntryKind::kFile;
    case AE_IFDIR:
      return EntryKind::kFolder;
    case AE_IFLNK:
      return EntryKind::kSymlink;
    default:
      return EntryKind::kOther;
  }
}

EntryPointer described(const Entry& entry) {
  EntryPointer made(archive_entry_new());
  if (!made) throw std::bad_alloc();
  archive_entry_copy_pathname(made.get(), entry.path.c_str());
  archive_entry_set_filetype(made.get(), type_of(entry.kind));
  archive_entry_set_perm(made.get(), entry.mode);
  archive_entry_set_mtime(made.get(), entry.modified.tv_sec, entry.modified.tv_nsec);
  if (entry.kind == EntryKind::kSymlink) archive_entry_copy_symlink(made.get(), entry.link.c_str());
  if (entry.kind == EntryKind::kHardLink)
    archive_entry_copy_hardlink(made.get(), entry.link.c_str());
  archive_entry_set_size(made.get(),
                         entry.kind == EntryKind::kFile ? static_cast<la_int64_t>(entry.size) : 0);
  for (const Extent& extent : entry.data)
    archive_entry_sparse_add_entry(made.get(), static_cast<la_int64_t>(extent.offset),
                                   static_cast<la_int64_t>(extent.bytes));
  if (entry.sparse && entry.data.empty()) archive_entry_sparse_add_entry(made.get(), 0, 0);
  return made;
}

Result<Entry> read_entry(struct archive_entry* entry) {
  const char* path = archive_entry_pathname(entry);
  if (!path || !*path) return unfit("the archive holds an entry without a name");
  Entry read{.path = path, .kind = kind_of(entry)};
  read.mode = archive_entry_perm(entry) & 07777;
  if (archive_entry_mtime_is_set(entry))
    read.modified = {archive_entry_mtime(entry), archive_entry_mtime_nsec(entry)};
  const char* link = nullptr;
  if (read.kind == EntryKind::kHardLink) link = archive_entry_hardlink(entry);
  if (read.kind == EntryKind::kSymlink) link = archive_entry_symlink(entry);
  if (link) read.link = link;
  if (read.kind == EntryKind::kFile) {
    if (archive_entry_size(entry) < 0) return unfit(read.path, ": its size is not right");
    read.size = static_cast<std::uint64_t>(archive_entry_size(entry));
  }
  return read;
}

}  // namespace

struct TarWriter::State {
  Utf8Locale locale;
  Sink sink;
  std::optional<Failure> failure;
  std::unique_ptr<struct archive, FreeWriter> tar{archive_write_new()};

  static la_ssize_t write(struct archive* tar, void* data, const void* bytes, std::size_t count) {
    State& state = *static_cast<State*>(data);
    const auto done = state.sink({static_cast<const char*>(bytes), count});
    if (done) return static_cast<la_ssize_t>(count);
    state.failure = done.error();
    archive_set_error(tar, EIO, "not taken");
    return -1;
  }
  Result<base::Done> judge(la_ssize_t status) {
    if (failure) return *failure;
    if (status < ARCHIVE_WARN) return unfit("cannot write the archive: ", error_of(tar.get()));
    return base::Done{};
  }
};

TarWriter::TarWriter(Sink sink) : state_(std::make_unique<State>()) {
  state_->sink = std::move(sink);
  struct archive* tar = state_->tar.get();
  if (!tar) throw std::bad_alloc();
  archive_write_set_format_pax(tar);
  archive_write_set_bytes_per_block(tar, kBlockBytes);
  archive_write_set_bytes_in_last_block(tar, 1);
  archive_write_open(tar, state_.get(), nullptr, State::write, nullptr);
}

TarWriter::~TarWriter() {
  // An archive that was not finished must not look as if it were: freeing it would write its end.
  state_->sink = [](std::string_view) -> Result<base::Done> { return cancelled(); };
}

Result<base::Done> TarWriter::begin(const Entry& entry) {
  return state_->judge(archive_write_header(state_->tar.get(), described(entry).get()));
}

Result<base::Done> TarWriter::write(std::string_view bytes) {
  return state_->judge(archive_write_data(state_->tar.get(), bytes.data(), bytes.size()));
}

Result<base::Done> TarWriter::finish() {
  return state_->judge(archive_write_close(state_->tar.get()));
}

struct TarReader::State {
  Utf8Locale locale;
  Blocks source;
  std::optional<Failure> failure;
  std::optional<std::size_t> header_bytes;  // Taken for the header that is being read.
  std::unique_ptr<struct archive, FreeReader> tar{archive_read_new()};
  bool opened = false, in_entry = false;

  static la_ssize_t read(struct archive* tar, void* data, const void** bytes) {
    State& state = *static_cast<State*>(data);
    const auto block = state.source();
    if (block) {
      *bytes = block->data();
      if (state.header_bytes) *state.header_bytes += block->size();
      // One block more, since the header may begin at the end of one.
      if (state.header_bytes.value_or(0) <= kHeaderBytesMax + kBlockBytes * std::size_t{2})
        return static_cast<la_ssize_t>(block->size());
      state.failure = too_large("the archive holds an entry whose header is too long");
    } else {
      state.failure = block.error();
    }
    archive_set_error(tar, EIO, "no more");
    return -1;
  }
};

TarReader::TarReader(Blocks source) : state_(std::make_unique<State>()) {
  state_->source = std::move(source);
  struct archive* tar = state_->tar.get();
  if (!tar) throw std::bad_alloc();
  archive_read_support_format_tar(tar);
}

TarReader::~TarReader() = default;

Failure TarReader::failure() const {
  if (state_->failure) return *state_->failure;
  return unfit("the archive is broken: ", error_of(state_->tar.get()));
}

Result<std::optional<Entry>> TarReader::next() {
  struct archive* tar = state_->tar.get();
  // At the beginning it looks ahead, and must not before it is asked.
  if (!std::exchange(state_->opened, true) &&
      archive_read_open(tar, state_.get(), nullptr, State::read, nullptr) != ARCHIVE_OK)
    return failure();
  // Here, so that what is passed over does not count as a header.
  if (std::exchange(state_->in_entry, false) && archive_read_data_skip(tar) < ARCHIVE_WARN)
    return failure();
  struct archive_entry* entry = nullptr;
  state_->header_bytes = 0;
  const int status = archive_read_next_header(tar, &entry);
  state_->header_bytes.reset();
  if (state_->failure) return failure();
  if (status == ARCHIVE_EOF) return std::optional<Entry>();
  if (status < ARCHIVE_WARN) return failure();
  state_->in_entry = true;
  TRY(Entry read, read_entry(entry));
  return std::optional<Entry>(std::move(read));
}

Result<std::optional<TarReader::Block>> TarReader::block() {
  const void* bytes = nullptr;
  std::size_t count = 0;
  la_int64_t offset = 0;
  const int status = archive_read_data_block(state_->tar.get(), &bytes, &count, &offset);
  if (state_->failure) return failure();
  if (status == ARCHIVE_EOF) return std::optional<Block>();
  if (status < ARCHIVE_WARN || offset < 0) return failure();
  return std::optional<Block>(
      Block{static_cast<std::uint64_t>(offset), {static_cast<const char*>(bytes), count}});
}

}  // namespace archives
