// The columns of each record, said once: writing, reading, checksums and exports all follow this list.
//
// `Fields<R>::visit(record, field)` calls `field(column, member)` for each column in the order of the table,
// and `field.blob(column, member)` where the member holds bytes rather than text. The tables themselves are
// written out in schema.cpp; a test holds the two together.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "journal/records.h"

namespace sextant::journal {

template <class R>
struct Fields;

inline constexpr std::array<std::string_view, 8> kJudgements = {
    "legal", "illegal", "invalid", "duplicate", "fits", "does_not_fit", "borderline", "fragmentation"};
inline constexpr std::array<std::string_view, 9> kTrialStates = {
    "ok",           "out_of_memory", "failed",         "timed_out",  "hung",
    "not_a_number", "node_failure",  "launch_failure", "interrupted"};

/// The run is spread over three tables; the counts tell when rows of the other two are missing.
struct RunHead {
  std::string command;
  std::string folder;
  std::string product_version;
  std::string seed;  ///< decimal: SQLite's integers are signed
  std::string content_hash;
  std::int64_t arguments = 0;
  std::int64_t inputs = 0;
};
struct RunArgument {
  std::string word;
};

template <>
struct Fields<RunHead> {
  static constexpr const char* kTable = "run";
  static void visit(auto& r, auto& field) {
    field("command", r.command);
    field("folder", r.folder);
    field("product_version", r.product_version);
    field("seed", r.seed);
    field("content_hash", r.content_hash);
    field("arguments", r.arguments);
    field("inputs", r.inputs);
  }
};

template <>
struct Fields<RunArgument> {
  static constexpr const char* kTable = "run_argument";
  static void visit(auto& r, auto& field) { field("word", r.word); }
};

template <>
struct Fields<Input> {
  static constexpr const char* kTable = "run_input";
  static void visit(auto& r, auto& field) {
    field("role", r.role);
    field("path", r.path);
    field.blob("bytes", r.bytes);
  }
};

template <>
struct Fields<Session> {
  static constexpr const char* kTable = "session";
  static void visit(auto& r, auto& field) {
    field("product_version", r.product_version);
    field("host", r.host);
    field("process", r.process);
    field("command_line", r.command_line);
    field("settings", r.settings);
  }
};

template <>
struct Fields<Candidate> {
  static constexpr const char* kTable = "candidate";
  static void visit(auto& r, auto& field) {
    field("text", r.text);
    field("layout", r.layout);
  }
};

template <>
struct Fields<Verdict> {
  static constexpr const char* kTable = "verdict";
  static void visit(auto& r, auto& field) {
    field("candidate", r.candidate);
    field("judgement", r.judgement);
    field("rule", r.rule);
    field("message", r.message);
    field("needed_bytes", r.needed_bytes);
    field("limit_bytes", r.limit_bytes);
  }
};

template <>
struct Fields<Projection> {
  static constexpr const char* kTable = "projection";
  static void visit(auto& r, auto& field) {
    field("candidate", r.candidate);
    field("source", r.source);
    field("quantity", r.quantity);
    field("value", r.value);
    field("low", r.low);
    field("high", r.high);
  }
};

template <>
struct Fields<Decision> {
  static constexpr const char* kTable = "decision";
  static void visit(auto& r, auto& field) {
    field("number", r.number);
    field("candidate", r.candidate);
    field("planner", r.planner);
    field("reason", r.reason);
    field("repeat", r.repeat);
    field("predicted", r.predicted);
    field("predicted_low", r.predicted_low);
    field("predicted_high", r.predicted_high);
    field("probability_runs", r.probability_runs);
    field("gain", r.gain);
  }
};

template <>
struct Fields<Trial> {
  static constexpr const char* kTable = "trial";
  static void visit(auto& r, auto& field) {
    field("candidate", r.candidate);
    field("repeat", r.repeat);
    field("evaluator", r.evaluator);
    field("command", r.command);
    field("host", r.host);
    field("conditions", r.conditions);
    field("begin_s", r.begin_s);
  }
};

template <>
struct Fields<TrialEnd> {
  static constexpr const char* kTable = "trial_end";
  static void visit(auto& r, auto& field) {
    field("trial", r.trial);
    field("state", r.state);
    field("message", r.message);
    field("log_tail", r.log_tail);
    field("exit_status", r.exit_status);
    field("end_s", r.end_s);
  }
};

template <>
struct Fields<Measurement> {
  static constexpr const char* kTable = "measurement";
  static void visit(auto& r, auto& field) {
    field("trial", r.trial);
    field("quantity", r.quantity);
    field("value", r.value);
    field("iteration", r.iteration);
  }
};

template <>
struct Fields<LlmExchange> {
  static constexpr const char* kTable = "llm_exchange";
  static void visit(auto& r, auto& field) {
    field("model", r.model);
    field("purpose", r.purpose);
    field("attempt", r.attempt);
    field("request", r.request);
    field("response", r.response);
    field("http_status", r.http_status);
    field("finish_reason", r.finish_reason);
    field("error", r.error);
    field("prompt_tokens", r.prompt_tokens);
    field("cached_tokens", r.cached_tokens);
    field("completion_tokens", r.completion_tokens);
    field("reasoning_tokens", r.reasoning_tokens);
    field("price_usd", r.price_usd);
    field("latency_s", r.latency_s);
    field("request_hash", r.request_hash);
  }
};

template <>
struct Fields<Note> {
  static constexpr const char* kTable = "note";
  static void visit(auto& r, auto& field) {
    field("author", r.author);
    field("text", r.text);
  }
};

}  // namespace sextant::journal
