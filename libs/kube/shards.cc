#include "libs/kube/shards.h"

#include "libs/base/crypto.h"
#include "libs/base/strings.h"

namespace kube {

using base::Json;

std::string lease_name(std::string_view prefix, const Shard& shard) {
  return std::string(prefix) + "-" + std::to_string(shard.index) + "-of-" +
         std::to_string(shard.count);
}

std::optional<Shard> shard_of_lease(std::string_view prefix, std::string_view name) {
  if (!name.starts_with(prefix) || name.substr(prefix.size()).find('-') != 0) return std::nullopt;
  const std::string_view rest = name.substr(prefix.size() + 1);
  constexpr std::string_view kOf = "-of-";
  const std::size_t of = rest.find(kOf);
  if (of == std::string_view::npos) return std::nullopt;
  const auto index = base::parse_integer(rest.substr(0, of));
  const auto count = base::parse_integer(rest.substr(of + kOf.size()));
  if (!index || !count || *index < 0 || *index >= *count || *count > INT32_MAX) return std::nullopt;
  return Shard{static_cast<int>(*index), static_cast<int>(*count)};
}

int shard_of(std::string_view provider, int count) {
  const std::string digest = base::sha256(provider);
  std::uint64_t number = 0;
  for (std::size_t byte = 0; byte < sizeof number; ++byte)
    number = number << 8 | static_cast<unsigned char>(digest[byte]);
  return static_cast<int>(number % static_cast<std::uint64_t>(count));
}

OtherCounts::OtherCounts(Client& client, std::string space, std::string prefix, int count,
                         const base::Clock& clock)
    : client_(client),
      space_(std::move(space)),
      prefix_(std::move(prefix)),
      count_(count),
      clock_(clock) {}

Answer<bool> OtherCounts::are_gone(std::stop_token stop) {
  std::map<std::string, LeaseRecord> others;
  PageRequest request;
  do {
    TRY(const Page page, client_.list(kLeases, {space_}, request, stop));
    for (const Json& object : page.items) {
      const std::string name = identity_of(object).key.name;
      const auto shard = shard_of_lease(prefix_, name);
      if (shard && shard->count != count_) others[name] = lease_from_json(object);
    }
    request.continue_token = page.continue_token;
  } while (!request.continue_token.empty());
  return are_over(others);
}

// Whoever asked the server meanwhile may have seen newer ones; what looks changed then counts as
// alive for longer.
bool OtherCounts::are_over(const std::map<std::string, LeaseRecord>& others) {
  std::lock_guard lock(mutex_);
  std::map<std::string, Seen> seen;
  bool over = true;
  for (const auto& [name, lease] : others) {
    const auto before = seen_.find(name);
    const bool unchanged =
        before != seen_.end() && before->second.resource_version == lease.resource_version;
    const base::Moment since = unchanged ? before->second.at : clock_.now();
    seen[name] = {lease.resource_version, since};
    if (!lease.holder.empty() && clock_.now() < since + lease.duration) over = false;
  }
  seen_ = std::move(seen);
  return over;
}

}  // namespace kube
