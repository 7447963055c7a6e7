#include "libs/manifests/document.h"

namespace manifests {

using base::Json;
using base::Result;

namespace {

std::map<std::string, std::string> texts_of(const Json& object, const char* key) {
  std::map<std::string, std::string> texts;
  const Json* metadata = base::object_at(object, "metadata");
  const Json* found = metadata ? base::object_at(*metadata, key) : nullptr;
  if (!found) return texts;
  for (const auto& [name, text] : found->items()) texts[name] = text.get<std::string>();
  return texts;
}

// What the document gives, over what others wrote; what only the document before gave, goes.
std::map<std::string, std::string> merged(std::map<std::string, std::string> now,
                                          const std::map<std::string, std::string>& before,
                                          const std::map<std::string, std::string>& declared) {
  for (const auto& [name, text] : before) now.erase(name);
  for (const auto& [name, text] : declared) now[name] = text;
  return now;
}

template <typename Object>
void take_document(Object& object, Record& record, const Declared& document) {
  const auto labels = texts_of(document.object, "labels");
  const auto annotations = texts_of(document.object, "annotations");
  object.metadata.labels = merged(object.metadata.labels, record.labels, labels);
  object.metadata.annotations =
      merged(object.metadata.annotations, record.annotations, annotations);
  record.labels = labels;
  record.annotations = annotations;
  record.file = document.file;
  record.document = document.document;
  record.digest = document.digest;
}

}  // namespace

Result<Record> with_document(Record record, const Declared& document) {
  const auto edit = [&](const auto& current, auto wanted) {
    auto object = current;
    if (object.spec != wanted.spec) ++object.metadata.generation;
    object.spec = std::move(wanted.spec);
    take_document(object, record, document);
    return object;
  };
  if (document.kind == Kind::kSandbox) {
    TRY(auto wanted, api::sandbox_from_json(document.object));
    record.sandbox = std::make_shared<const api::Sandbox>(edit(*record.sandbox, std::move(wanted)));
  } else {
    TRY(auto wanted, api::provider_from_json(document.object));
    record.provider =
        std::make_shared<const api::SandboxProvider>(edit(*record.provider, std::move(wanted)));
  }
  return record;
}

Result<Record> newborn(const Declared& document, const Birth& birth) {
  Record record{{document.kind, document.key}};
  const auto give = [&](auto object) {
    object.metadata.key = document.key;
    object.metadata.uid = birth.uid;
    object.metadata.created = birth.created;
    object.metadata.generation = 1;
    take_document(object, record, document);
    return object;
  };
  if (document.kind == Kind::kSandbox) {
    TRY(auto wanted, api::sandbox_from_json(document.object));
    record.sandbox = std::make_shared<const api::Sandbox>(give(std::move(wanted)));
  } else {
    TRY(auto wanted, api::provider_from_json(document.object));
    record.provider = std::make_shared<const api::SandboxProvider>(give(std::move(wanted)));
  }
  return record;
}

Record with_metadata(Record record, const std::function<void(api::Metadata&)>& edit) {
  const auto changed = [&](auto object) {
    edit(object.metadata);
    return std::make_shared<const decltype(object)>(std::move(object));
  };
  if (record.sandbox) record.sandbox = changed(*record.sandbox);
  if (record.provider) record.provider = changed(*record.provider);
  return record;
}

}  // namespace manifests
