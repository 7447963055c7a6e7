#include "agentd/carry/standstill.h"

#include <gtest/gtest.h>

namespace agentd {
namespace {

constexpr auto kUnknown = Standing::kUnknown, kRunning = Standing::kRunning,
               kPaused = Standing::kPaused, kEnded = Standing::kEnded;

struct Case {
  const char* name;
  SeenAtRest seen;
  AfterLook after;
};
const Case kCases[] = {
    {"paused", {kPaused, kPaused}, AfterLook::kRest},
    {"about to pause", {kRunning, kRunning}, AfterLook::kRest},
    {"comes to be paused", {kRunning, kPaused}, AfterLook::kRest},
    {"nothing is known", {kUnknown, kUnknown}, AfterLook::kRest},
    {"nothing is known any more", {kPaused, kUnknown}, AfterLook::kRest},
    {"runs again", {kPaused, kRunning}, AfterLook::kAsk},
    {"runs, as is known now", {kUnknown, kRunning}, AfterLook::kAsk},
    {"has ended", {kEnded, kEnded}, AfterLook::kAsk},
    {"wanted", {kPaused, kPaused, true}, AfterLook::kAsk},
    {"wanted, and time to dial", {kRunning, kRunning, true, true}, AfterLook::kAsk},
    {"time to dial one that may run", {kRunning, kRunning, false, true}, AfterLook::kDial},
    {"time to dial one of which nothing is known",
     {kUnknown, kUnknown, false, true},
     AfterLook::kDial},
    {"no time to dial one that is paused", {kPaused, kPaused, false, true}, AfterLook::kRest},
    {"runs again, and time to dial", {kPaused, kRunning, false, true}, AfterLook::kAsk},
};
TEST(Standstill, EndsForWhatThereIsToDo) {
  for (const Case& one : kCases) EXPECT_EQ(after_look(one.seen), one.after) << one.name;
}

}  // namespace
}  // namespace agentd
