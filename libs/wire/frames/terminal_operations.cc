#include "libs/wire/frames/terminal_operations.h"

namespace wire {
namespace {

constexpr Handle kHandle;
constexpr Number kSide{1, kTerminalSideMax};
constexpr Number kProcessGroup{1};
constexpr Number kTyped;
constexpr Text kSignal{4, 16};

}  // namespace

template <Is<ResizeTerminalArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("rows", m.size.rows, kSide);
  visit("columns", m.size.columns, kSide);
}

template <Is<ResizeTerminalArgs::Ok> Fields>
void fields(auto&, Fields&) {}

template <Is<ForegroundArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit.optional("typed", m.typed, kTyped);
}

template <Is<ForegroundArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit.optional("processGroup", m.process_group, kProcessGroup);
  visit.optional("inputWaiting", m.input_waiting, Flag{});
}

template <Is<SignalForegroundArgs> Fields>
void fields(auto& visit, Fields& m) {
  visit("handle", m.handle, kHandle);
  visit("signal", m.signal, kSignal);
  visit.optional("typed", m.typed, kTyped);
}

template <Is<SignalForegroundArgs::Ok> Fields>
void fields(auto& visit, Fields& m) {
  visit("processGroup", m.process_group, kProcessGroup);
}

WIRE_FIELDS(ResizeTerminalArgs)
WIRE_FIELDS(ResizeTerminalArgs::Ok)
WIRE_FIELDS(ForegroundArgs)
WIRE_FIELDS(ForegroundArgs::Ok)
WIRE_FIELDS(SignalForegroundArgs)
WIRE_FIELDS(SignalForegroundArgs::Ok)

}  // namespace wire
