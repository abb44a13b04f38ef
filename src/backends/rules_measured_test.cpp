// The rules against configurations that ran: published Megatron-LM runs and the workloads that Primus ships.
// A rule that refuses one of them is wrong, or the publication is. Needs SEXTANT_REFERENCE_DATA.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "backends/rules.h"
#include "backends/test_jobs.h"
#include "backends/workload.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace sextant::backends {
namespace {

using Row = std::map<std::string, std::string>;

std::string reference_data() {
  const char* folder = std::getenv("SEXTANT_REFERENCE_DATA");
  return folder == nullptr ? "" : std::string(folder) + "/data/";
}

/// Comma-separated rows with a header; fields may be quoted and then hold commas.
std::vector<Row> read_table(const std::string& path) {
  std::vector<std::vector<std::string>> lines(1, {""});
  bool quoted = false;
  for (const char c : base::read_file(path)) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      lines.back().emplace_back();
    } else if (c == '\n' && !quoted) {
      lines.push_back({""});
    } else if (c != '\r') {
      lines.back().back().push_back(c);
    }
  }
  std::vector<Row> rows;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    Row row;
    for (std::size_t k = 0; k < lines[i].size() && k < lines[0].size(); ++k) row[lines[0][k]] = lines[i][k];
    rows.push_back(std::move(row));
  }
  return rows;
}

long number(const Row& row, const std::string& column, long fallback) {
  const std::string& text = row.at(column);
  return text.empty() ? fallback : std::atol(text.c_str());
}

/// N of "microbatch-group-size-per-virtual-pipeline-stage=N"; 0 when absent.
int group_of(const std::string& extra) {
  const std::size_t found = extra.find("microbatch-group-size-per-vi");
  const std::size_t equals = found == std::string::npos ? found : extra.find('=', found);
  return equals == std::string::npos ? 0 : std::atoi(extra.c_str() + equals + 1);
}

/// The job of a row, as far as its columns say it; a row without them has no model.
training::Job job_of_row(const Row& row) {
  const long layers = number(row, "layers", 0);
  const long heads = number(row, "heads", 0);
  const long kv_heads = number(row, "kv_heads", heads);
  const long experts = number(row, "experts", 0);
  const long ffn = number(row, "ffn", 0);
  if (layers == 0 || heads == 0 || number(row, "seq", 0) == 0 || number(row, "num_gpus", 0) == 0 ||
      number(row, "mbs", 0) == 0 || number(row, "gbs", 0) == 0) {
    return {};
  }
  const auto model = experts > 1 ? testing::expert_model(static_cast<int>(layers), heads, kv_heads, experts,
                                                         number(row, "moe_ffn", ffn), number(row, "topk", 1))
                                 : testing::dense_model(static_cast<int>(layers), heads, kv_heads, ffn);
  training::Job job = testing::job_of(model, static_cast<int>(number(row, "num_gpus", 1)));
  parallel::Layout& l = job.layout;
  l.sequence_tokens = number(row, "seq", 0);
  l.tp = static_cast<int>(number(row, "tp", 1));
  l.pp = static_cast<int>(number(row, "pp", 1));
  l.ep = static_cast<int>(number(row, "ep", 1));
  l.cp = static_cast<int>(number(row, "cp", 1));
  l.vpp = static_cast<int>(number(row, "vpp", 1));
  l.micro_batch = static_cast<int>(number(row, "mbs", 1));
  l.global_batch = number(row, "gbs", 1);
  l.microbatch_group = group_of(row.at("extra"));
  l.sequence_parallel = l.tp > 1 && row.at("sequence_parallel") != "no";
  l.overlap.point_to_point = true;
  // Expert tensor parallelism, where the table does not say it, is TP if that fits and else 1.
  if (experts > 1 && l.world % (std::int64_t{l.tp} * l.ep * l.pp) == 0) l.etp = l.tp;
  return job;
}

bool is_megatron(const Row& row) {
  const std::string text = base::lower_case(row.at("source") + " " + row.at("extra"));
  const auto says = [&](const char* word) { return text.find(word) != std::string::npos; };
  return (says("megatron") || says("nemo")) && !says("deepspeed") && !says("automodel");
}

TEST(MeasuredRuns, AreLegal) {
  if (reference_data().empty()) GTEST_SKIP() << "SEXTANT_REFERENCE_DATA is not set";
  int judged = 0;
  for (const char* table : {"training_measured.csv", "memory_measured.csv"}) {
    for (const Row& row : read_table(reference_data() + table)) {
      if (!row.contains("status") || row.at("status") != "ran" || !is_megatron(row)) continue;
      const training::Job job = job_of_row(row);
      if (job.model == nullptr) continue;
      // The Megatron-Bridge archive prints DeepSeek-V3 at PP 8 x EP 64 on 256 GPUs: expert ranks for 512.
      if (row.at("id") == "MBRIDGE-273") continue;
      ++judged;
      for (const Violation& v : check(job)) {
        // Layout strings and first and last counts are not columns of the table.
        if (v.grade == Grade::kIllegal && v.rule != "layers-by-stages") {
          ADD_FAILURE() << row.at("id") << " ran, but " << v.rule << ": " << v.message;
        }
      }
    }
  }
  EXPECT_GT(judged, 250);
}

TEST(ShippedPrimusWorkloads, AreLegalOnSomeNumberOfNodes) {
  if (reference_data().empty()) GTEST_SKIP() << "SEXTANT_REFERENCE_DATA is not set";
  // Layers that do not deal: 126 on PP 8; 43 and 61 on PP 8, to be set by PRIMUS_PP; a layout string without
  // the prediction layer that the model preset has.
  const std::set<std::string> undealt = {"llama3.1_405B", "deepseek_v4_flash", "kimi_k2", "deepseek_v3"};
  int legal = 0;
  const std::string folder = reference_data() + "primus/examples/megatron/configs/MI355X";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().string();
    const std::string name = entry.path().filename().string();
    if (!name.ends_with("pretrain.yaml")) continue;
    std::vector<std::string> fewest;
    bool read = false;
    for (const int nodes : {1, 4, 16, 64}) {
      ReadOptions options;
      options.use_environment = false;
      options.cluster = cluster::cluster_from_name("mi355x:" + std::to_string(nodes) + "x8");
      std::vector<std::string> illegal;
      try {
        for (const Violation& v : check(read_workload(file, options).job)) {
          if (v.grade == Grade::kIllegal) illegal.push_back(std::string(v.rule) + ": " + v.message);
        }
      } catch (const base::UserError&) {
        break;  // unsupported models, which the reader names
      }
      if (!read || illegal.size() < fewest.size()) fewest = illegal;
      read = true;
      if (illegal.empty()) break;
    }
    if (!read) continue;
    const bool known = std::any_of(undealt.begin(), undealt.end(),
                                   [&](const std::string& n) { return name.starts_with(n); });
    legal += fewest.empty() ? 1 : 0;
    if (known) {
      EXPECT_THAT(fewest, ::testing::Each(::testing::StartsWith("layers-by-stages"))) << name;
    } else {
      EXPECT_THAT(fewest, ::testing::IsEmpty()) << name;
    }
  }
  EXPECT_GT(legal, 50);
}

}  // namespace
}  // namespace sextant::backends
