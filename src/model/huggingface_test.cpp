#include "model/huggingface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "config/document.h"
#include "model/parameters.h"

namespace sextant::model {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ImportedModel import(const std::string& json) {
  return import_huggingface(config::parse_json(json, "config.json"));
}

/// `changes` laid over `base`, both JSON.
ImportedModel import(const std::string& base, const std::string& changes) {
  config::Node document = config::parse_json(base, "config.json");
  config::merge_into(document, config::parse_json(changes, "changes.json"));
  return import_huggingface(document);
}

std::string fault_of(const std::string& base, const std::string& changes = "{}") {
  try {
    import(base, changes);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "";
}

std::int64_t size_of(const ImportedModel& imported) { return count_parameters(imported.model).total(); }

constexpr const char* kLlama = R"({"model_type":"llama","hidden_size":4096,"num_hidden_layers":32,
  "num_attention_heads":32,"num_key_value_heads":8,"intermediate_size":14336,"vocab_size":128256,
  "hidden_act":"silu","tie_word_embeddings":false,"max_position_embeddings":131072})";

TEST(HuggingFace, Llama31Has8030261248Parameters) {
  const ImportedModel imported = import(kLlama);
  EXPECT_EQ(size_of(imported), 8'030'261'248);
  EXPECT_THAT(imported.warnings, IsEmpty());
}

// huggingface/transformers pull request 46211 and vllm-project/vllm pull request 2622.
TEST(HeadDim, AbsentOrNullMeansHiddenByHeads) {
  EXPECT_EQ(import(kLlama, R"({"head_dim":null})").model.classes[0].attention.head_dim, 128);
  EXPECT_EQ(import(kLlama).model.classes[0].attention.head_dim, 128);
}

TEST(HeadDim, AnExplicitOneWins) {
  const Attention attention =
      import(kLlama, R"({"hidden_size":5120,"head_dim":128})").model.classes[0].attention;
  EXPECT_EQ(attention.heads * attention.head_dim, 4096);
  EXPECT_EQ(2 * attention.kv_heads * attention.head_dim * 2, 4096)
      << "bytes a token and layer in the bf16 cache";
  EXPECT_EQ(import(kLlama, R"({"hidden_size":1792,"num_attention_heads":24,"head_dim":128})")
                    .model.classes[0]
                    .attention.head_dim *
                24,
            3072);
}

TEST(HeadDim, WithoutOneHeadsMustDivideHidden) {
  const std::string fault = fault_of(kLlama, R"({"hidden_size":1792,"num_attention_heads":24})");
  EXPECT_THAT(fault, HasSubstr("1792"));
  EXPECT_THAT(fault, HasSubstr("24"));
  EXPECT_THAT(fault_of(kLlama, R"({"head_dim":0})"), HasSubstr("head_dim"));
}

// modular/modular issue 6665: a default does not help when the key exists with null.
TEST(KeyValueHeads, AbsentAndNullMeanAsManyAsHeads) {
  EXPECT_EQ(import(kLlama, R"({"num_key_value_heads":null})").model.classes[0].attention.kv_heads, 32);
  EXPECT_EQ(import(kLlama).model.classes[0].attention.kv_heads, 8);
  const char* without =
      R"({"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                            "intermediate_size":128,"vocab_size":100})";
  EXPECT_EQ(import(without).model.classes[0].attention.kv_heads, 4);
}

TEST(KeyValueHeads, ZeroAndTextAreRefused) {
  EXPECT_THAT(fault_of(kLlama, R"({"num_key_value_heads":0})"), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_key_value_heads":"8"})"), HasSubstr("text \"8\""));
  EXPECT_THAT(fault_of(kLlama, R"({"num_key_value_heads":-8})"), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_key_value_heads":8.5})"), HasSubstr("num_key_value_heads"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_key_value_heads":7})"), HasSubstr("no multiple of 7"));
}

TEST(KeyValueHeads, ASecondFigureFallsBackToTheFirst) {
  const char* mixed = R"({"layer_types":["sliding_attention","full_attention"],"num_hidden_layers":2,
                          "sliding_window":128,"num_global_key_value_heads":2})";
  const Model model = import(kLlama, mixed).model;
  EXPECT_EQ(model.layer(0).attention.kv_heads, 8);
  EXPECT_EQ(model.layer(1).attention.kv_heads, 2);
  const char* null = R"({"layer_types":["sliding_attention","full_attention"],"num_hidden_layers":2,
                         "sliding_window":128,"num_global_key_value_heads":null})";
  EXPECT_EQ(import(kLlama, null).model.layer(1).attention.kv_heads, 8);
}

// elixir-nx/bumblebee issue 367 and NVIDIA/TensorRT-Model-Connect issue 640.
TEST(EndTokens, AScalarAndAListAreBothRead) {
  EXPECT_THAT(import(kLlama, R"({"eos_token_id":2})").end_tokens, ElementsAre(2));
  EXPECT_THAT(import(kLlama, R"({"eos_token_id":[151645,151643]})").end_tokens, ElementsAre(151645, 151643));
  EXPECT_THAT(import(kLlama, R"({"eos_token_id":null})").end_tokens, IsEmpty());
  EXPECT_THAT(fault_of(kLlama, R"({"eos_token_id":[]})"), HasSubstr("eos_token_id"));
}

constexpr const char* kV4 = R"({"model_type":"deepseek_v4","hidden_size":128,"num_hidden_layers":4,
  "num_attention_heads":8,"head_dim":64,"q_lora_rank":64,"qk_rope_head_dim":16,"o_groups":2,"o_lora_rank":32,
  "sliding_window":64,"index_n_heads":4,"index_head_dim":32,"index_topk":16,"hc_mult":4,"vocab_size":384,
  "moe_intermediate_size":96,"n_routed_experts":8,"n_shared_experts":1,"num_experts_per_tok":3})";

std::vector<std::int64_t> ratios(const Model& model) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < model.layers(); ++i) result.push_back(model.layer(i).attention.compress_ratio);
  return result;
}

std::int64_t indexers(const Model& model) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < model.layers(); ++i)
    count += model.layer(i).attention.indexer.heads > 0 ? 1 : 0;
  return count;
}

// vllm-project/vllm issue 42741 and sgl-project/sglang issue 34092.
TEST(DeepSeekV4, LayerTypesWithATableOfRates) {
  const Model model =
      import(kV4, R"({"layer_types":["w","c","h","c"],"compress_rates":{"c":4,"h":128}})").model;
  EXPECT_THAT(ratios(model), ElementsAre(0, 4, 128, 4));
  EXPECT_EQ(indexers(model), 2);
}

TEST(DeepSeekV4, ALongerListKeepsItsTailForPrediction) {
  const ImportedModel imported =
      import(kV4, R"({"compress_ratios":[0,4,128,4,0],"num_nextn_predict_layers":1})");
  EXPECT_THAT(ratios(imported.model), ElementsAre(0, 4, 128, 4));
  EXPECT_EQ(indexers(imported.model), 2);
  EXPECT_EQ(imported.model.mtp.depths, 1);
  const auto& prediction = imported.model.classes[static_cast<std::size_t>(imported.model.mtp.layer_class)];
  EXPECT_EQ(prediction.attention.compress_ratio, 0);
  EXPECT_THAT(imported.warnings, Contains(HasSubstr("5 entries for 4 layers")));
}

TEST(DeepSeekV4, NeitherFormIsAFault) {
  EXPECT_THAT(fault_of(kV4), HasSubstr("compress_ratios"));
  EXPECT_THAT(fault_of(kV4, R"({"layer_types":["w","c","h","c"]})"), HasSubstr("compress_rates"));
  EXPECT_THAT(fault_of(kV4, R"({"compress_ratios":[0,4]})"), HasSubstr("2 entries for 4 layers"));
  EXPECT_THAT(fault_of(kV4, R"({"compress_ratios":[0,4,-1,4]})"), HasSubstr("negative"));
}

TEST(DeepSeekV4, HashLayersInBothForms) {
  const Model older = import(kV4, R"({"compress_ratios":[0,4,128,4],"num_hash_layers":2})").model;
  const Model newer = import(kV4, R"({"compress_ratios":[0,4,128,4],
                                      "mlp_layer_types":["hash_moe","hash_moe","moe","moe"]})")
                          .model;
  for (const Model* model : {&older, &newer}) {
    EXPECT_TRUE(model->layer(1).mlp.hash_routing);
    EXPECT_FALSE(model->layer(2).mlp.hash_routing);
  }
  EXPECT_EQ(count_parameters(older).total(), count_parameters(newer).total());
}

TEST(LayerPatterns, FirstDenseLayersAndFrequency) {
  constexpr const char* kV2 = R"({"model_type":"deepseek_v2","hidden_size":64,"num_hidden_layers":6,
    "num_attention_heads":4,"q_lora_rank":null,"kv_lora_rank":16,"qk_nope_head_dim":8,"qk_rope_head_dim":4,
    "v_head_dim":8,"vocab_size":100,"intermediate_size":128,"moe_intermediate_size":32,"n_routed_experts":8,
    "n_shared_experts":2,"num_experts_per_tok":2})";
  const auto sparse = [](const Model& model) {
    std::string text;
    for (std::int64_t i = 0; i < model.layers(); ++i) {
      text += model.layer(i).mlp.kind == MlpKind::kMixtureOfExperts ? 'm' : 'd';
    }
    return text;
  };
  EXPECT_EQ(sparse(import(kV2, R"({"first_k_dense_replace":1})").model), "dmmmmm");
  EXPECT_EQ(sparse(import(kV2, R"({"first_k_dense_replace":1,"moe_layer_freq":2})").model), "ddmdmd");
  EXPECT_EQ(sparse(import(kV2, R"({"moe_layer_freq":[0,1,1,0,1,1]})").model), "dmmdmm");
  EXPECT_EQ(
      sparse(
          import(kV2, R"({"mlp_layer_types":["dense","sparse","sparse","sparse","dense","sparse"]})").model),
      "dmmmdm");
  EXPECT_EQ(import(kV2).model.classes[0].attention.query_latent_rank, 0);
  EXPECT_THAT(fault_of(kV2, R"({"moe_layer_freq":[0,1]})"), HasSubstr("2 entries for 6 layers"));
  EXPECT_THAT(fault_of(kV2, R"({"num_experts_per_tok":9})"), HasSubstr("only 8"));
  EXPECT_THAT(fault_of(kV2, R"({"num_experts":16})"), HasSubstr("make them agree"));
}

TEST(LayerPatterns, WindowsByTypeOrByRule) {
  constexpr const char* kGemma = R"({"model_type":"gemma3_text","hidden_size":64,"num_hidden_layers":12,
    "num_attention_heads":4,"num_key_value_heads":2,"head_dim":32,"intermediate_size":128,"vocab_size":100,
    "sliding_window":512,"hidden_activation":"gelu_pytorch_tanh"})";
  const Model gemma = import(kGemma).model;
  EXPECT_EQ(gemma.layer(4).attention.window_tokens, 512);
  EXPECT_EQ(gemma.layer(5).attention.window_tokens, 0);
  EXPECT_EQ(gemma.layer(11).attention.window_tokens, 0);
  EXPECT_EQ(gemma.classes.size(), 2U);
  EXPECT_EQ(gemma.classes[0].norms, 4);
  EXPECT_EQ(gemma.classes[0].mlp.activation, Activation::kGeglu);
  EXPECT_TRUE(gemma.tied_embeddings);
  EXPECT_THAT(fault_of(kLlama, R"({"layer_types":["full_attention"]})"),
              HasSubstr("1 entries for 32 layers"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_hidden_layers":1,"layer_types":["sliding_attention"]})"),
              HasSubstr("sliding_window"));
}

TEST(Families, SizesArePublishedOnes) {
  // Each from its repository's config.json, fields that decide the size.
  EXPECT_EQ(size_of(import(R"({"model_type":"gpt2","n_embd":768,"n_layer":12,"n_head":12,"n_positions":1024,
                               "vocab_size":50257,"activation_function":"gelu_new"})")),
            124'439'808);
  EXPECT_EQ(size_of(import(R"({"model_type":"gpt_neox","hidden_size":6144,"num_hidden_layers":44,
                               "num_attention_heads":64,"intermediate_size":24576,"vocab_size":50432,
                               "hidden_act":"gelu_fast"})")),
            20'554'567'680);
  EXPECT_EQ(size_of(import(R"({"model_type":"gptj","n_embd":4096,"n_layer":28,"n_head":16,"vocab_size":50400,
                               "tie_word_embeddings":false,"activation_function":"gelu_new"})")),
            6'050'882'784);
  EXPECT_EQ(size_of(import(R"({"model_type":"opt","hidden_size":2048,"num_hidden_layers":24,
                               "num_attention_heads":32,"ffn_dim":8192,"vocab_size":50272,
                               "max_position_embeddings":2048,"word_embed_proj_dim":2048,
                               "activation_function":"relu"})")),
            1'315'758'080);
  EXPECT_EQ(size_of(import(R"({"model_type":"bloom","hidden_size":14336,"n_layer":70,"n_head":112,
                               "vocab_size":250880})")),
            176'247'271'424);
  EXPECT_EQ(size_of(import(R"({"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,
                               "num_attention_heads":71,"vocab_size":65024,"multi_query":true,
                               "parallel_attn":true,"bias":false})")),
            6'921'720'704);
  EXPECT_EQ(
      size_of(import(R"({"model_type":"mpt","d_model":4096,"n_layers":32,"n_heads":32,"vocab_size":50432,
                               "max_seq_len":2048,"no_bias":true,"attn_config":{"alibi":true}})")),
      6'649'286'656);
  EXPECT_EQ(size_of(import(R"({"model_type":"phi","hidden_size":2560,"num_hidden_layers":32,
                               "num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":10240,
                               "vocab_size":51200,"tie_word_embeddings":false,"hidden_act":"gelu_new"})")),
            2'779'683'840);
  EXPECT_EQ(size_of(import(R"({"model_type":"gemma","hidden_size":2048,"num_hidden_layers":18,
                               "num_attention_heads":8,"num_key_value_heads":1,"head_dim":256,
                               "intermediate_size":16384,"vocab_size":256000,"hidden_act":"gelu"})")),
            2'506'172'416);
  EXPECT_EQ(size_of(import(R"({"model_type":"gemma2","hidden_size":3584,"num_hidden_layers":42,
                               "num_attention_heads":16,"num_key_value_heads":8,"head_dim":256,
                               "intermediate_size":14336,"vocab_size":256000,"sliding_window":4096,
                               "hidden_activation":"gelu_pytorch_tanh"})")),
            9'241'705'984);
  EXPECT_EQ(size_of(import(R"({"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,
                               "num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":5632,
                               "moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,
                               "num_experts":60,"num_experts_per_tok":4,"vocab_size":151936,
                               "decoder_sparse_step":1,"tie_word_embeddings":false})")),
            14'315'784'192);
  EXPECT_EQ(size_of(import(R"({"model_type":"olmo2","hidden_size":4096,"num_hidden_layers":32,
                               "num_attention_heads":32,"num_key_value_heads":32,"intermediate_size":11008,
                               "vocab_size":100352,"tie_word_embeddings":false})")),
            7'298'617'344);
}

TEST(Families, Llama4AlternatesChunksAndExperts) {
  const Model model = import(R"({"model_type":"llama4_text","hidden_size":5120,"num_hidden_layers":48,
    "num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"intermediate_size":8192,
    "intermediate_size_mlp":16384,"num_local_experts":128,"num_experts_per_tok":1,
    "interleave_moe_layer_step":2,"attention_chunk_size":8192,"vocab_size":202048})")
                          .model;
  EXPECT_NEAR(static_cast<double>(count_parameters(model).total()), 400.7e9, 1e9);
  EXPECT_EQ(model.layer(0).mlp.kind, MlpKind::kDense);
  EXPECT_EQ(model.layer(1).mlp.kind, MlpKind::kMixtureOfExperts);
  EXPECT_TRUE(model.layer(0).attention.window_is_chunk);
  EXPECT_EQ(model.layer(3).attention.window_tokens, 0);
}

TEST(TextConfig, TheLanguageModelIsReadFromInside) {
  const ImportedModel imported =
      import(R"({"model_type":"mistral3","architectures":["Mistral3ForConditionalGeneration"],
    "tie_word_embeddings":true,"vision_config":{"hidden_size":1024},
    "text_config":{"model_type":"mistral","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
                   "head_dim":32,"intermediate_size":128,"vocab_size":100,"sliding_window":null}})");
  EXPECT_EQ(imported.model.layers(), 2);
  EXPECT_TRUE(imported.model.tied_embeddings) << "said outside";
  EXPECT_THAT(imported.warnings, Contains(HasSubstr("text_config")));
}

TEST(Refusals, UnknownFamiliesAreNamedWithTheSupportedOnes) {
  const std::string fault = fault_of(R"({"model_type":"brand_new","hidden_size":64})");
  EXPECT_THAT(fault, HasSubstr("'brand_new'"));
  EXPECT_THAT(fault, HasSubstr("deepseek_v4"));
  EXPECT_THAT(fault, HasSubstr("config.json:1: model_type"));
  EXPECT_THAT(fault_of(R"({"architectures":["BrandNewForCausalLM"]})"), HasSubstr("BrandNewForCausalLM"));
  EXPECT_THAT(fault_of(R"({"hidden_size":64})"), HasSubstr("model_type"));
  EXPECT_THROW(import("[1,2]"), base::UserError);
}

TEST(Refusals, ForeignKindsAreNamed) {
  EXPECT_THAT(fault_of(R"({"model_type":"mamba2","hidden_size":64})"), HasSubstr("state-space"));
  EXPECT_THAT(fault_of(R"({"model_type":"qwen3_next","hidden_size":64})"), HasSubstr("linear-attention"));
  EXPECT_THAT(fault_of(kLlama, R"({"model_type":"own","hybrid_override_pattern":"M-M*"})"),
              HasSubstr("state-space"));
  EXPECT_THAT(fault_of(R"({"model_type":"siglip_vision_model","hidden_size":64})"), HasSubstr("vision"));
  EXPECT_THAT(fault_of(R"({"model_type":"clip","vision_config":{},"projection_dim":512})"),
              HasSubstr("vision"));
  EXPECT_THAT(fault_of(R"({"_class_name":"FluxTransformer2DModel"})"), HasSubstr("diffusion"));
  EXPECT_THAT(fault_of(R"({"model_type":"t5","is_encoder_decoder":true})"), HasSubstr("encoder-decoder"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_hidden_layers":1,"layer_types":["linear_attention"]})"),
              HasSubstr("linear_attention"));
}

TEST(Refusals, AnUnknownTypeWithAKnownArchitectureIsReadWithAWarning) {
  const ImportedModel imported =
      import(kLlama, R"({"model_type":"house_llama","architectures":["LlamaForCausalLM"]})");
  EXPECT_EQ(size_of(imported), 8'030'261'248);
  EXPECT_THAT(imported.warnings, Contains(HasSubstr("house_llama")));
}

TEST(Refusals, MissingAndImpossibleFigures) {
  EXPECT_THAT(fault_of(R"({"model_type":"llama","hidden_size":64})"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_hidden_layers":0})"), HasSubstr("num_hidden_layers"));
  EXPECT_THAT(fault_of(kLlama, R"({"num_hidden_layers":100001})"), HasSubstr("100000"));
  EXPECT_THAT(fault_of(kLlama, R"({"vocab_size":null})"), HasSubstr("vocab_size"));
  EXPECT_THAT(fault_of(kLlama, R"({"hidden_size":4000000000})"), HasSubstr("hidden"));
  EXPECT_THAT(fault_of(kLlama, R"({"rope_scaling":{"factor":8.0}})"), HasSubstr("rope_type"));
}

TEST(Refusals, AnyFieldMayHoldNonsense) {
  constexpr const char* kLlama4 = R"({"model_type":"llama4_text","hidden_size":64,"num_hidden_layers":4,
    "num_attention_heads":4,"head_dim":16,"intermediate_size":32,"intermediate_size_mlp":64,"num_local_experts":4,
    "num_experts_per_tok":1,"interleave_moe_layer_step":2,"moe_layers":[1,3],"no_rope_layers":[1,1,1,0],
    "attention_chunk_size":8,"vocab_size":100,"rope_scaling":null,"eos_token_id":2,"tie_word_embeddings":false,
    "hidden_act":"silu","text_config":null,"architectures":["Llama4ForCausalLM"]})";
  constexpr const char* kQwen = R"({"model_type":"qwen3_moe","hidden_size":64,"num_hidden_layers":4,
    "num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"intermediate_size":32,"moe_intermediate_size":16,
    "num_experts":4,"num_experts_per_tok":2,"decoder_sparse_step":1,"mlp_only_layers":[1],"vocab_size":100,
    "use_sliding_window":true,"sliding_window":8,"max_window_layers":2,"layer_types":null,"n_group":2,"topk_group":1})";
  const std::string v4 =
      std::string(kV4).substr(0, std::string(kV4).size() - 1) +
      R"(,"compress_ratios":[0,4,128,4,0],"num_nextn_predict_layers":1,"num_hash_layers":1})";
  int refused = 0;
  for (const std::string& base : {std::string(kLlama), std::string(kLlama4), std::string(kQwen), v4}) {
    const config::Node whole = config::parse_json(base, "config.json");
    for (const auto& [key, unchanged] : whole.entries) {
      for (const char* odd : {"null", "0", "-1", "1.5", "\"text\"", "true", "[]", "[1]", "[null]", "{}",
                              "{\"a\":1}", "9000000000000000000", "1e300", "100000"}) {
        config::Node document = whole;
        config::set_entry(document, key, config::parse_json(odd, "odd.json"));
        try {
          import_huggingface(document);
        } catch (const base::UserError&) {
          ++refused;
        }
      }
    }
  }
  EXPECT_GT(refused, 400);
}

}  // namespace
}  // namespace sextant::model
