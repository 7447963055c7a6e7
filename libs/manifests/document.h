#pragma once

#include <functional>

#include "libs/manifests/identity.h"
#include "libs/manifests/record.h"

// What a document makes of the record of its object: pure.
namespace manifests {

base::Result<Record> newborn(const Declared& document, const Birth& birth);
// The record's object becomes what the document says; generation counts changes of spec. Labels and
// annotations that others wrote stay.
base::Result<Record> with_document(Record record, const Declared& document);
// The record with its object's metadata changed; a tombstone stays as it is.
Record with_metadata(Record record, const std::function<void(api::Metadata&)>& edit);

}  // namespace manifests
