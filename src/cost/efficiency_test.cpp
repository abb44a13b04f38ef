#include "cost/efficiency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "config/document.h"

namespace sextant::cost {
namespace {

using testing::Contains;
using testing::HasSubstr;

cluster::Accelerator accelerator(const std::string& name, const std::string& family) {
  cluster::Accelerator result;
  result.name = name;
  result.family = family;
  return result;
}

double bf16(const Efficiency& efficiency) {
  return efficiency.gemm_fraction[static_cast<std::size_t>(cluster::Precision::kBf16)];
}

// Figures of the file change with every fit; which block a figure comes from does not.
TEST(Efficiency, blocks_are_laid_over_one_another_from_general_to_special) {
  const Efficiency unknown = efficiency_for("homemade", accelerator("FooGPU", "foo"));
  const Efficiency family = efficiency_for("homemade", accelerator("H100", "hopper"));
  const Efficiency hopper = efficiency_for("torchtitan", accelerator("H100", "hopper"));
  EXPECT_NE(bf16(family), bf16(unknown)) << "the family has its own";
  EXPECT_EQ(bf16(hopper), bf16(family)) << "the family's";
  EXPECT_NE(hopper.tensor_parallel_exposed, family.tensor_parallel_exposed) << "the framework's";
  EXPECT_EQ(hopper.misalignment_divisor, unknown.misalignment_divisor) << "the default";
  const Efficiency ampere_family = efficiency_for("homemade", accelerator("A100", "ampere"));
  const Efficiency ampere = efficiency_for("mosaic", accelerator("A100", "ampere"));
  EXPECT_NE(ampere.attention_forward_fraction, ampere_family.attention_forward_fraction)
      << "the framework's figure wins over the family's";
  const Efficiency pair = efficiency_for("mosaic", accelerator("H100", "hopper"));
  EXPECT_NE(pair.attention_forward_fraction, ampere.attention_forward_fraction)
      << "and the pair's over the framework's";
}

TEST(Efficiency, an_accelerator_may_differ_from_its_family) {
  EXPECT_NE(bf16(efficiency_for("megatron-bridge", accelerator("B200", "blackwell"))),
            bf16(efficiency_for("megatron-bridge", accelerator("B300", "blackwell"))));
}

TEST(Efficiency, a_version_is_laid_over_its_framework) {
  const cluster::Accelerator b200 = accelerator("B200", "blackwell");
  const Efficiency old = efficiency_for("megatron-bridge", "25.09", b200);
  const Efficiency late = efficiency_for("megatron-bridge", "26.06", b200);
  EXPECT_NE(old.moe_software_factor, late.moe_software_factor);
  EXPECT_EQ(old.tensor_parallel_exposed, late.tensor_parallel_exposed) << "the framework's";
  EXPECT_EQ(efficiency_for("megatron-bridge", "unheard-of", b200).moe_software_factor,
            efficiency_for("megatron-bridge", b200).moe_software_factor);
  EXPECT_EQ(version_key("26.04"), "26-04");
}

TEST(Efficiency, an_accelerator_that_borrows_from_its_family_says_so_and_widens_the_interval) {
  const Efficiency known = efficiency_for("primus", accelerator("MI355X", "cdna4"));
  const Efficiency borrowed = efficiency_for("primus", accelerator("MI399X", "cdna4"));
  EXPECT_THAT(borrowed.sources, Contains(HasSubstr("no measured run is of MI399X")));
  EXPECT_NEAR(borrowed.interval_log_width, std::hypot(known.interval_log_width, borrowed.borrowed_log_width),
              1e-12);
}

TEST(Efficiency, sources_say_what_was_used_and_what_is_missing) {
  const Efficiency known = efficiency_for("Primus", accelerator("MI355X", "cdna4"));
  EXPECT_THAT(known.sources, Contains(HasSubstr("efficiency defaults: ")));
  EXPECT_THAT(known.sources, Contains(HasSubstr("cdna4: MI350X and MI355X rows of Primus")));
  EXPECT_THAT(known.sources, Contains(HasSubstr("primus: AMD Primus blogs")));
  const Efficiency unknown = efficiency_for("homemade", accelerator("FooGPU", "foo"));
  EXPECT_THAT(unknown.sources, Contains("accelerator family 'foo' is not calibrated: defaults"));
  EXPECT_THAT(unknown.sources, Contains("framework 'homemade' is not calibrated: defaults"));
  EXPECT_GT(bf16(unknown), 0);
  EXPECT_GT(unknown.interval_log_width, known.interval_log_width) << "nobody measured it";
}

TEST(Efficiency, every_framework_and_family_of_the_file_can_be_read) {
  const auto frameworks = calibrated_frameworks();
  for (const char* name :
       {"megatron-core", "primus", "megatron-deepspeed", "torchtitan", "nemo", "megatron-bridge", "dgxc",
        "mosaic", "nanotron", "internevo", "nemo-automodel", "vtrain", "maxtext"}) {
    EXPECT_THAT(frameworks, Contains(name));
  }
  for (const auto& framework : frameworks) {
    for (const char* family : {"ampere", "hopper", "blackwell", "cdna3", "cdna4", "ada"}) {
      const Efficiency e = efficiency_for(framework, accelerator("", family));
      for (const double fraction : e.gemm_fraction) EXPECT_GT(fraction, 0);
      for (const EfficiencyParameter& parameter : efficiency_parameters()) {
        EXPECT_GE(e.*parameter.value, parameter.low) << framework << " " << parameter.name;
        EXPECT_LE(e.*parameter.value, parameter.high) << framework << " " << parameter.name;
      }
    }
  }
}

TEST(Efficiency, the_parameter_list_holds_every_number_of_the_struct) {
  // All doubles of the struct stand between the fractions and the sources.
  const std::size_t doubles =
      (sizeof(Efficiency) - sizeof(Efficiency::gemm_fraction) - sizeof(Efficiency::sources)) / sizeof(double);
  EXPECT_EQ(efficiency_parameters().size(), doubles);
}

std::string refusal(const std::string& yaml) {
  Efficiency efficiency;
  try {
    overlay_efficiency(config::parse_yaml(yaml, "mine.yaml"), {}, efficiency);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

TEST(Efficiency, a_broken_block_is_refused_where_it_stands) {
  EXPECT_THAT(refusal("source: me\nlink_fracton: 0.5\n"),
              testing::AllOf(HasSubstr("mine.yaml:2"), HasSubstr("link_fraction")));
  EXPECT_THAT(refusal("source: me\nnic_fraction: 1.5\n"), HasSubstr("give 0.01 to 1"));
  EXPECT_THAT(refusal("source: me\ngemm_fraction: {bf17: 0.5}\n"), HasSubstr("bf16"));
  EXPECT_THAT(refusal("nic_fraction: 0.5\n"), HasSubstr("source"));
  EXPECT_EQ(refusal("source: me\nnic_fraction: 0.5\ngemm_fraction: {fp8: 0.5}\n"), "");
}

}  // namespace
}  // namespace sextant::cost
