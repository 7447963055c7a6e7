#include "local_e2b/state/key_records.h"

#include "libs/base/crypto.h"
#include "libs/base/time.h"

namespace local_e2b {
namespace {

// A file name of a team's key, whatever characters the team has.
std::string name_of(const std::string& team, const std::string& key) {
  return base::to_hex(base::sha256(team + "\n" + key));
}

base::Json to_json(const aio::HttpReply& reply) {
  return {{"status", reply.status}, {"fields", reply.fields}, {"body", reply.body}};
}

base::Result<aio::HttpReply> reply_from_json(const base::Json& json) {
  const auto status = base::integer_at(json, "status");
  const auto* fields = base::array_at(json, "fields");
  const auto body = base::text_at(json, "body");
  if (!status || !fields || !body)
    return base::error(base::ErrorCode::kInvalid, "a reply needs status, fields and body");
  aio::HttpReply reply{.status = static_cast<int>(*status), .body = *body};
  for (const auto& field : *fields) {
    if (!field.is_array() || field.size() != 2 || !field[0].is_string() || !field[1].is_string())
      return base::error(base::ErrorCode::kInvalid, "a field of a reply is a name and a value");
    reply.fields.emplace_back(field[0].get<std::string>(), field[1].get<std::string>());
  }
  return reply;
}

}  // namespace

base::Json to_json(const KeyRecord& record) {
  base::Json json = {{"team", record.team},
                     {"key", record.key},
                     {"fingerprint", record.fingerprint},
                     {"at", base::to_rfc3339(record.at)}};
  if (record.reply) json["reply"] = to_json(*record.reply);
  return json;
}

base::Result<KeyRecord> key_record_from_json(const base::Json& json) {
  const auto team = base::text_at(json, "team");
  const auto key = base::text_at(json, "key");
  const auto fingerprint = base::text_at(json, "fingerprint");
  const auto at = base::text_at(json, "at");
  if (!team || !key || !fingerprint || !at)
    return base::error(base::ErrorCode::kInvalid,
                       "the record of a key needs team, key, fingerprint and at");
  KeyRecord record{.team = *team, .key = *key, .fingerprint = *fingerprint};
  TRY(record.at, base::parse_rfc3339(*at));
  if (const auto* reply = base::object_at(json, "reply")) {
    TRY(record.reply, reply_from_json(*reply));
  }
  return record;
}

base::Result<KeyRecords> KeyRecords::open(const std::filesystem::path& state) {
  TRY(JsonFolder keys, JsonFolder::open(state / "idempotency-keys"));
  return KeyRecords(std::move(keys));
}

base::Result<base::Done> KeyRecords::save(const KeyRecord& record) const {
  return keys_.save(name_of(record.team, record.key), to_json(record));
}

void KeyRecords::remove(const std::string& team, const std::string& key) const {
  keys_.remove(name_of(team, key));
}

std::vector<KeyRecord> KeyRecords::load() const {
  std::vector<KeyRecord> records;
  keys_.each(
      [&](const base::Json& json) -> base::Result<base::Done> {
        TRY(KeyRecord record, key_record_from_json(json));
        records.push_back(std::move(record));
        return base::Done{};
      },
      "a repeat of its request will be done as a new one");
  return records;
}

}  // namespace local_e2b
