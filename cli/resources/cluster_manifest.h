#pragma once

#include <string>
#include <vector>

#include "cli/resources/backend.h"
#include "libs/kube/client.h"
#include "libs/yaml/reader.h"

// A manifest on its way into a cluster, and what the server has against it, told by line. Pure.
namespace cli {

struct ClusterDocument {
  kube::Resource resource;
  api::Key key;       // Without namespace for what belongs to none.
  base::Json object;  // As written, but for what only servers write: nobody owns a default.
  yaml::Document written;
};

struct ClusterManifest {
  std::string file;  // For messages.
  std::vector<ClusterDocument> documents = {};
  // What our own reader has against it. The server judges; these are better words for its verdict.
  std::vector<yaml::Problem> doubts = {};
};

// kInvalid only for what cannot be sent: no YAML, no known kind, no name.
base::Result<ClusterManifest> read_for_cluster(const Manifest& manifest);

// The refusal by file, line, field, rule and cure.
base::Error explain_apply(const kube::Refusal& refusal, const ClusterManifest& manifest,
                          const ClusterDocument& document, const kube::Config& config);

// All fields in conflict were set by `manager`.
bool conflicts_only_with(const std::string& manager, const kube::Refusal& refusal);

// The JSON pointer of a field that a server names: "spec.env[0].name", ".metadata.labels.a/b",
// `.spec.env[name="A"].value`. As far as the object goes.
std::string pointer_of(const std::string& field, const base::Json& object);

}  // namespace cli
