// As much of a test framework as these tests need: TEST registers a function, CHECK and its kin record what fails and
// go on, and the main() in check_main.cpp runs every test and says what failed.
#pragma once

#include <exception>
#include <functional>
#include <initializer_list>
#include <sstream>
#include <string>
#include <vector>

namespace check {

struct Test {
  const char* name;
  void (*body)();
};

std::vector<Test>& tests();

// Where a failure belongs to, while this lives: "fused_moe, bfloat16".
class Context {
 public:
  explicit Context(const std::string& text);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

// From any thread.
void record(bool passed, const char* file, int line, const std::string& what);

struct Registration {
  Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

template <class A, class B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
  const bool same = a == b;
  std::ostringstream message;
  if (!same) message << text << ": " << a << " is not " << b;
  record(same, file, line, message.str());
}

inline void contains(const std::string& text, const std::string& part, const char* file, int line) {
  record(text.find(part) != std::string::npos, file, line, "`" + part + "` is missing from `" + text + "`");
}

// The body must throw exactly such an error, with these parts in its message.
template <class Expected, class Body>
void throws(Body&& body, std::initializer_list<std::string> parts, const char* name, const char* file, int line) {
  try {
    body();
  } catch (const Expected& error) {
    for (const std::string& part : parts) contains(error.what(), part, file, line);
    return;
  } catch (const std::exception& error) {
    return record(false, file, line, std::string("another error than ") + name + ": " + error.what());
  }
  record(false, file, line, std::string("no ") + name);
}

}  // namespace check

#define TEST(name)                                               \
  static void name();                                            \
  static const check::Registration register_##name(#name, name); \
  static void name()

#define CHECK(condition) check::record(static_cast<bool>(condition), __FILE__, __LINE__, #condition)
#define CHECK_EQUAL(a, b) check::equal(a, b, #a, __FILE__, __LINE__)
#define CHECK_CONTAINS(text, part) check::contains(text, part, __FILE__, __LINE__)
#define CHECK_THROWS(Expected, body, ...) check::throws<Expected>(body, {__VA_ARGS__}, #Expected, __FILE__, __LINE__)
