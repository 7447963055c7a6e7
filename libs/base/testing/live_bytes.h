#pragma once

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

// Counts what a test program holds on its heap. Include in one source file of a program only: it
// replaces operator new and delete.
namespace base {

inline std::atomic<long> live_bytes = 0;

}  // namespace base

void* operator new(std::size_t size) {
  void* memory = std::malloc(size);
  if (!memory) std::abort();
  base::live_bytes += static_cast<long>(malloc_usable_size(memory));
  return memory;
}
void operator delete(void* memory) noexcept {
  base::live_bytes -= static_cast<long>(malloc_usable_size(memory));
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
