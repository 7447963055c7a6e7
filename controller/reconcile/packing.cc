#include "controller/reconcile/packing.h"

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace controller {
namespace {

template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

// Hands all fields of a value to `use`. A type with a field more or less does not compile here.

template <Is<base::Error> T, typename Use>
void fields(T& error, Use& use) {
  auto& [code, message, retry_after] = error;
  use(code, message, retry_after);
}
template <Is<e2b::CreateFailure> T, typename Use>
void fields(T& failure, Use& use) {
  use(static_cast<std::conditional_t<std::is_const_v<T>, const base::Error, base::Error>&>(failure),
      failure.kind);
}
template <Is<api::Attempt> T, typename Use>
void fields(T& attempt, Use& use) {
  auto& [nonce, epoch, number] = attempt;
  use(nonce, epoch, number);
}
template <Is<Sent> T, typename Use>
void fields(T& sent, Use& use) {
  auto& [attempt, id, failure] = sent;
  use(attempt, id, failure);
}
template <Is<e2b::Handle> T, typename Use>
void fields(T& handle, Use& use) {
  auto& [id, envd_version, envd_access_token, traffic_access_token, domain] = handle;
  use(id, envd_version, envd_access_token, traffic_access_token, domain);
}
template <Is<Sighting> T, typename Use>
void fields(T& sighting, Use& use) {
  auto& [id, state, uid, nonce, epoch, started_at, end_at, envd_version] = sighting;
  use(id, state, uid, nonce, epoch, started_at, end_at, envd_version);
}
template <Is<Listed> T, typename Use>
void fields(T& listed, Use& use) {
  auto& [started, sandboxes] = listed;
  use(started, sandboxes);
}
template <Is<Got> T, typename Use>
void fields(T& got, Use& use) {
  auto& [started, info, misses, first_miss] = got;
  use(started, info, misses, first_miss);
}
template <Is<wire::Identity> T, typename Use>
void fields(T& identity, Use& use) {
  auto& [uid, epoch, incarnation, run] = identity;
  use(uid, epoch, incarnation, run);
}
template <Is<wire::Health> T, typename Use>
void fields(T& health, Use& use) {
  auto& [instance, version, identity, quiesced] = health;
  use(instance, version, identity, quiesced);
}
template <Is<ExecutorView> T, typename Use>
void fields(T& view, Use& use) {
  auto& [kind, sandbox_id, started_at, health, ask_at, closed, request] = view;
  use(kind, sandbox_id, started_at, health, ask_at, closed, request);
}
template <Is<IdleTrouble> T, typename Use>
void fields(T& trouble, Use& use) {
  auto& [step, failures, until, what, generation, request] = trouble;
  use(step, failures, until, what, generation, request);
}
template <Is<IdleView> T, typename Use>
void fields(T& view, Use& use) {
  auto& [ask_at, idle_for, record_by, wake_seen, busy, trouble] = view;
  use(ask_at, idle_for, record_by, wake_seen, busy, trouble);
}
template <Is<Progress> T, typename Use>
void fields(T& progress, Use& use) {
  auto& [step, since, told] = progress;
  use(step, since, told);
}
template <Is<HeldBack> T, typename Use>
void fields(T& held, Use& use) {
  auto& [failures, step, until, reason, why, generation, deleting, request, for_good, standstill,
         open] = held;
  use(failures, step, until, reason, why, generation, deleting, request, for_good, standstill,
      open);
}
template <Is<Memory> T, typename Use>
void fields(T& memory, Use& use) {
  auto& [recorded_nonce, sent, made, send_ended, shown, handle, unclear_send_ended, changed, listed,
         got, killed, bound_here, extended, released, left, executor, idle, refusal_counted, judged,
         rolled_back, told, quiesced, progress, held] = memory;
  use(recorded_nonce, sent, made, send_ended, shown, handle, unclear_send_ended, changed, listed,
      got, killed, bound_here, extended, released, left, executor, idle, refusal_counted, judged,
      rolled_back, told, quiesced, progress, held);
}

template <typename T>
concept Number = std::is_integral_v<T> || std::is_enum_v<T>;
template <typename T>
concept TimePoint = requires(const T& time) { time.time_since_epoch(); };
template <typename T>
concept Optional = requires(const T& value) { value.has_value(); };
template <typename T>
concept Map = requires { typename T::mapped_type; };
template <typename T>
concept Container = requires(const T& all) { all.begin(); };

// Numbers are seven bits a byte, small ones first, whatever their sign.
class Packer {
 public:
  template <typename... Fields>
  void operator()(const Fields&... all) {
    (put(all), ...);
  }
  std::string take() {
    packed_.shrink_to_fit();
    return std::move(packed_);
  }

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (Number<T>) {
      put_number(static_cast<std::int64_t>(value));
    } else if constexpr (TimePoint<T>) {
      put_number(value.time_since_epoch().count());
    } else if constexpr (std::same_as<T, base::Milliseconds>) {
      put_number(value.count());
    } else if constexpr (std::same_as<T, std::string>) {
      put_number(static_cast<std::int64_t>(value.size()));
      packed_ += value;
    } else if constexpr (Optional<T>) {
      put(value.has_value());
      if (value) put(*value);
    } else if constexpr (Container<T>) {
      put(value.size());
      for (const auto& each : value) put(each);
    } else if constexpr (requires { value.first; }) {
      put(value.first);
      put(value.second);
    } else {
      fields(value, *this);
    }
  }
  void put_number(std::int64_t number) {
    auto rest =
        (static_cast<std::uint64_t>(number) << 1) ^ static_cast<std::uint64_t>(number < 0 ? -1 : 0);
    for (; rest >= 0x80; rest >>= 7) packed_ += static_cast<char>(rest | 0x80);
    packed_ += static_cast<char>(rest);
  }

  std::string packed_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view packed) : rest_(packed) {}
  template <typename... Fields>
  void operator()(Fields&... all) {
    (get(all), ...);
  }

 private:
  template <typename T>
  void get(T& value) {
    if constexpr (Number<T>) {
      value = static_cast<T>(get_number());
    } else if constexpr (TimePoint<T>) {
      value = T(typename T::duration(get_number()));
    } else if constexpr (std::same_as<T, base::Milliseconds>) {
      value = T(get_number());
    } else if constexpr (std::same_as<T, std::string>) {
      const auto size = static_cast<std::size_t>(get_number());
      value = rest_.substr(0, size);
      rest_.remove_prefix(size);
    } else if constexpr (Optional<T>) {
      if (get_number() != 0) get(value.emplace());
    } else if constexpr (Map<T>) {
      for (auto left = get_number(); left > 0; --left) {
        typename T::key_type key;
        get(key);
        get(value[std::move(key)]);
      }
    } else if constexpr (Container<T>) {
      for (auto left = get_number(); left > 0; --left) {
        typename T::value_type each;
        get(each);
        value.insert(value.end(), std::move(each));
      }
    } else {
      fields(value, *this);
    }
  }
  std::int64_t get_number() {
    std::uint64_t whole = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      whole |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    return static_cast<std::int64_t>(whole >> 1) ^ -static_cast<std::int64_t>(whole & 1);
  }

  std::string_view rest_;
};

}  // namespace

std::string pack(const Memory& memory) {
  Packer packer;
  packer(memory);
  return packer.take();
}

Memory unpack(std::string_view packed) {
  Memory memory;
  Unpacker unpacker(packed);
  unpacker(memory);
  return memory;
}

}  // namespace controller
