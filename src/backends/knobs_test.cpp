#include "backends/knobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/workload.h"
#include "base/error.h"
#include "base/file.h"
#include "config/document.h"

namespace sextant::backends {
namespace {

using parallel::Layout;
using ::testing::AllOf;
using ::testing::HasSubstr;

void set(Layout& layout, const std::string& assignment) {
  const auto [name, value] = config::parse_assignment(assignment);
  set_knob(layout, name, value);
}

Layout with(const std::string& assignment) {
  Layout layout;
  set(layout, assignment);
  return layout;
}

std::string refusal(const std::string& assignment) {
  try {
    with(assignment);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Knobs, SetTheirOwnFieldAndNothingElse) {
  for (const KnobSummary& knob : knob_summaries()) {
    Layout before;
    before.sequence_tokens = 4096;
    Layout layout = before;
    const std::string name(knob.name);
    const std::string value = knob_value(layout, name);
    set(layout, name + "=" + value);
    EXPECT_EQ(layout, before) << name << "=" << value;
    EXPECT_FALSE(knob.meaning.empty());
    EXPECT_FALSE(knob.values.empty());
  }
}

TEST(Knobs, ReadNumbers) {
  EXPECT_EQ(with("tp=8").tp, 8);
  EXPECT_EQ(with("pp=16").pp, 16);
  EXPECT_EQ(with("vpp=2").vpp, 2);
  EXPECT_EQ(with("mbs=3").micro_batch, 3);
  EXPECT_EQ(with("gbs=1e3").global_batch, 1000);
  EXPECT_EQ(with("seq=131072").sequence_tokens, 131072);
  EXPECT_EQ(with("group=0").microbatch_group, 0);
  EXPECT_DOUBLE_EQ(with("optimizer_offload=0.25").optimizer.offload_fraction, 0.25);
  EXPECT_EQ(with("moment_bytes=2").optimizer.moment_bytes, 2);
}

TEST(Knobs, ReadWords) {
  EXPECT_EQ(with("schedule=zbv-formatted").schedule, pipeline::Algorithm::kZeroBubbleV);
  EXPECT_EQ(with("dispatch=DeepEP").moe_dispatch, parallel::MoeDispatch::kDeepEp);
  EXPECT_EQ(with("sharding=distributed_optimizer").sharding, parallel::Sharding::kDistributedOptimizer);
  EXPECT_EQ(with("sharding=zero1").sharding, parallel::Sharding::kDistributedOptimizer);
  EXPECT_EQ(with("sharding=null").sharding, parallel::Sharding::kNone);
  EXPECT_EQ(with("loss=native_fused").loss, parallel::Loss::kNativeFused);
  EXPECT_EQ(with("optimizer=muon").optimizer.kind, parallel::OptimizerKind::kMuon);
  EXPECT_TRUE(with("sequence_parallel=true").sequence_parallel);
  EXPECT_TRUE(with("overlap_p2p=True").overlap.point_to_point);
  EXPECT_EQ(with("layout=Et*3|(t|)*8L").split.layout, "Et*3|(t|)*8L");
  EXPECT_EQ(with("layout=null").split.layout, "");
}

TEST(Knobs, ScheduleAutoFollowsTheChunks) {
  Layout layout;
  layout.vpp = 2;
  set(layout, "schedule=auto");
  EXPECT_EQ(layout.schedule, pipeline::Algorithm::kInterleaved);
}

TEST(Knobs, PrecisionAndRecipeStayConsistent) {
  Layout layout;
  set(layout, "precision=fp8");
  EXPECT_EQ(layout.fp8_recipe, cluster::Fp8Recipe::kTensorwise);
  set(layout, "fp8_recipe=delayed");
  set(layout, "precision=fp8");
  EXPECT_EQ(layout.fp8_recipe, cluster::Fp8Recipe::kDelayed);
  set(layout, "precision=bf16");
  EXPECT_EQ(layout.fp8_recipe, cluster::Fp8Recipe::kNone);
}

TEST(Knobs, RecomputeHasForms) {
  using parallel::RecomputeGranularity;
  using parallel::RecomputeMethod;
  EXPECT_EQ(with("recompute=none").recompute, parallel::Recompute{});
  EXPECT_EQ(with("recompute=null").recompute, parallel::Recompute{});
  const parallel::Recompute selective = with("recompute=selective").recompute;
  EXPECT_EQ(selective.granularity, RecomputeGranularity::kSelective);
  EXPECT_EQ(selective.modules, parallel::kCoreAttention);
  EXPECT_EQ(selective.method, RecomputeMethod::kUnset);
  EXPECT_EQ(with("recompute=selective:core_attn,moe_act").recompute.modules,
            parallel::kCoreAttention | parallel::kMoeActivation);
  EXPECT_EQ(with("recompute=selective:every:2").recompute.every_nth_layer, 2);
  const parallel::Recompute full = with("recompute=full").recompute;  // every layer
  EXPECT_EQ(full.granularity, RecomputeGranularity::kFull);
  EXPECT_EQ(full.method, RecomputeMethod::kUniform);
  EXPECT_EQ(full.layers, 1);
  const parallel::Recompute block = with("recompute=full:block:7").recompute;
  EXPECT_EQ(block.method, RecomputeMethod::kBlock);
  EXPECT_EQ(block.layers, 7);
  EXPECT_EQ(with("recompute=full:uniform:4").recompute.method, RecomputeMethod::kUniform);
  EXPECT_THAT(with("recompute=full:layers:3,1,3").recompute.layer_ids, ::testing::ElementsAre(1, 3));
}

TEST(Knobs, WriteWhatTheyRead) {
  for (const char* value : {"none", "selective:core_attn,moe_act", "selective:every:2", "full:block:7",
                            "full:uniform:4", "full:layers:1,3"}) {
    const Layout layout = with(std::string("recompute=") + value);
    EXPECT_EQ(knob_value(layout, "recompute"), value);
  }
  EXPECT_EQ(knob_value(with("sharding=zero1"), "sharding"), "distributed-optimizer");
}

TEST(Knobs, RefuseWhatTheyCannotTakeAndSayWhatTheyCan) {
  EXPECT_THAT(refusal("tp=0"), AllOf(HasSubstr("tp"), HasSubstr("at least 1")));
  EXPECT_THAT(refusal("tp=two"), HasSubstr("two"));
  EXPECT_THAT(refusal("tp=true"), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(refusal("tp=012"), ::testing::Not(::testing::IsEmpty()));
  EXPECT_THAT(refusal("tp=99999999999"), HasSubstr("out of range"));
  EXPECT_THAT(refusal("sync_free=4"), HasSubstr("0 to 3"));
  EXPECT_THAT(refusal("moment_bytes=3"), HasSubstr("1, 2 or 4"));
  EXPECT_THAT(refusal("schedule=interleave"), HasSubstr("interleaved"));
  EXPECT_THAT(refusal("dispatch=deeep"), HasSubstr("deepep"));
  EXPECT_THAT(refusal("recompute=full:block"), HasSubstr("full:block:N"));
  EXPECT_THAT(refusal("recompute=full:block:x"), HasSubstr("no number of layers"));
  EXPECT_THAT(refusal("recompute=selective:core_atn"), HasSubstr("core_attn"));
  EXPECT_THAT(refusal("precision=int8"), HasSubstr("bf16"));
  EXPECT_THAT(refusal("sequence_parallel=maybe"), ::testing::Not(::testing::IsEmpty()));
}

TEST(Knobs, UnknownNamesGetTheNearest) {
  EXPECT_THAT(refusal("vp=2"), HasSubstr("vpp"));
  EXPECT_THAT(refusal("recompue=none"), HasSubstr("recompute"));
  EXPECT_THAT(refusal("dp=4"), HasSubstr("GPUs / (tp x pp x cp)"));
}

TEST(Knobs, AreAllInTheReference) {
  const std::string reference = base::read_file("docs/reference/knobs.md");
  for (const KnobSummary& knob : knob_summaries()) {
    EXPECT_THAT(reference, HasSubstr("| `" + std::string(knob.name) + "` |"));
    EXPECT_THAT(reference, HasSubstr(std::string(knob.meaning)));
  }
}

TEST(ShortNames, HoldTheOnesThatSpacesUse) {
  const std::vector<std::string> names = short_names();
  for (const char* name : {"tp",
                           "pp",
                           "vpp",
                           "cp",
                           "ep",
                           "etp",
                           "mbs",
                           "gbs",
                           "seq",
                           "group",
                           "schedule",
                           "recompute",
                           "dispatch",
                           "sync_free",
                           "precision",
                           "fp8_recipe",
                           "sharding",
                           "loss",
                           "first_layers",
                           "last_layers",
                           "layout",
                           "sequence_parallel",
                           "overlap_grad_reduce",
                           "overlap_param_gather",
                           "overlap_tp",
                           "overlap_p2p",
                           "overlap_moe",
                           "optimizer"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

}  // namespace
}  // namespace sextant::backends
