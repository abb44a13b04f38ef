// Flags of Megatron-LM that change neither model nor layout nor, as far as Sextant models them, kernels: how
// many values follow each. Read from megatron/training/arguments.py at core_v0.10.0 … core_v0.19.0 (union of
// all).
#include <algorithm>
#include <string>

#include "backends/megatron_keys.h"

namespace sextant::backends {
namespace {

// Names without the leading dashes, each followed by a blank.
constexpr std::string_view kSwitches =
    "adlr-autoresume allow-ambiguous-pad-tokens apply-layernorm-1p apply-query-key-layer-scaling "
    "apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm async-ckpt-use-cpu-shm async-save "
    "attention-softmax-in-fp32 auto-detect-ckpt-format batch-invariant-mode bert-no-binary-head "
    "biencoder-shared-query-context-model cache-mla-latents calc-ft-timeouts calculate-per-token-loss "
    "check-for-large-grads check-for-spiky-loss checkpoint-activations ckpt-assume-constant-structure "
    "ckpt-convert-update-legacy-dist-opt-format ckpt-fully-parallel-load ckpt-fully-parallel-save "
    "cpu-offloading-retain-pinned-cpu-buffers create-all-gather-group data-parallel-random-init "
    "dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-inter-document-masking "
    "ddp-average-in-collective ddp-pad-buckets-for-high-nccl-busbw "
    "ddp-reduce-scatter-with-fp32-accumulation decode-only-cuda-graphs decrease-batch-size-if-needed "
    "delay-offload-until-cuda-graph delay-wgrad-compute dino-norm-last-layer disable-align-grad-reduce "
    "disable-async-tensor-model-parallel-allreduce disable-bf16-reduced-precision-matmul "
    "disable-chunked-prefill disable-ckpt-fully-parallel-save "
    "disable-ckpt-load-validate-sharding-integrity disable-clone-scatter-output-in-embedding "
    "disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu "
    "disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec "
    "disable-flight-recorder-include-only-active disable-fp8-wgrad disable-gloo-process-groups "
    "disable-jit-fuser disable-log-loss-scale-to-tensorboard disable-mamba-mem-eff-path "
    "disable-manual-gc-eval disable-msc disable-pad-vocab-size disable-straggler-on-startup "
    "disable-stream-ckpt-dequant disable-strict-fsdp-dtensor-load disable-symmetric-registration "
    "disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-tp-comm-bulk-dgrad "
    "disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs "
    "disable-tp-comm-split-ag disable-tp-comm-split-rs disable-use-tokenizer-model-from-checkpoint-args "
    "dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 "
    "distrib-optim-fully-reshardable-mem-efficient dsa-indexer-k-norm-fp32 dsa-indexer-rope-interleaved "
    "dsa-indexer-use-sparse-loss enable-chunked-prefill enable-experimental enable-ft-package "
    "enable-full-sharding-in-hsdp enable-msc eod-mask-loss ep-overlap-early-attn-memory-release "
    "exit-on-missing-checkpoint exit-signal-handler exit-signal-handler-for-dataloader "
    "exit-signal-handler-for-training fake-process-group fim-data fine-grained-activation-offloading "
    "finetune first-last-layers-bf16 flash-decode flight-recorder-include-stack-trace "
    "fp16-lm-cross-entropy fp4-param-gather fp8-output-proj freeze-all-layers "
    "fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer fsdp-manual-registration full-validation "
    "fused-residual-rmsnorm grpo-filter-groups-with-same-reward high-priority-a2a-comm-stream "
    "hybrid-context-parallel inference-cuda-graph-all-prefills inference-disable-ep-consensus "
    "inference-disable-triton-nvls-kernels inference-dynamic-batching "
    "inference-dynamic-batching-prefix-caching inference-dynamic-batching-track-generated-token-events "
    "inference-dynamic-batching-track-paused-request-events inference-fuse-tp-communication "
    "inference-moe-disable-fused-quant-kernels inference-rng-tracker inference-text-gen-server-logging "
    "inference-use-synchronous-zmq-collectives inference-wandb-logging init-method-xavier-uniform "
    "init-model-with-meta-device inprocess-empty-cuda-cache inprocess-restart keep-fp8-transpose-cache "
    "keep-fp8-transpose-cache-when-using-custom-fsdp langrl-external-server lazy-mpu-init "
    "legacy-tokenizer load-main-params-from-ckpt load-model-opt-format log-device-memory-used log-energy "
    "log-max-attention-logit log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress "
    "log-straggler log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard "
    "log-world-size-to-tensorboard logits-load-ignore-errors manual-gc "
    "megatron-fsdp-enable-fine-grained-param-gather megatron-fsdp-max-pool-double-buffer "
    "mla-down-proj-fusion moe-apply-probs-on-input moe-enable-routing-replay moe-extended-tp "
    "moe-hybridep-pad-uneven-dispatch-inputs moe-ncclep-static-shape moe-ncclep-zero-copy "
    "moe-pad-expert-input-to-capacity moe-pad-experts-for-cuda-graph-inference moe-paged-stash "
    "moe-per-layer-logging moe-permute-fusion-into-hybridep moe-router-fusion moe-router-pre-softmax "
    "moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits "
    "moe-routing-trace-dump-weights moe-single-grouped-bias moe-single-grouped-weight moe-use-upcycling "
    "mtp-detach-heads mtp-standalone multiple-validation-sets muon-nesterov muon-no-split-qkv "
    "muon-use-nesterov nccl-all-reduce-for-prefill no-align-grad-reduce no-align-param-gather "
    "no-async-tensor-model-parallel-allreduce no-barrier-with-level-1-timing no-bias-dropout-fusion "
    "no-bias-gelu-fusion no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save "
    "no-ckpt-load-validate-sharding-integrity no-clone-scatter-output-in-embedding no-data-sharding "
    "no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout "
    "no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active no-fp8-wgrad "
    "no-gradient-reduce-div-fusion no-initialization no-load-optim no-load-rng "
    "no-log-loss-scale-to-tensorboard no-manual-gc-eval no-mmap-bin-files no-one-logger no-pad-vocab-size "
    "no-persist-layer-norm no-pin-cpu-grads no-pin-cpu-params no-position-embedding no-rope-fusion "
    "no-save-optim no-save-rng no-scatter-gather-tensors-in-pipeline no-stream-ckpt-dequant "
    "no-strict-fsdp-dtensor-load no-tokenizer-sentencepiece-ignore-extra-whitespaces "
    "no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad no-tp-comm-overlap-ag no-tp-comm-overlap-rs "
    "no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout "
    "no-use-tokenizer-model-from-checkpoint-args no-yarn-correction-range-round-to-int nvtx-ranges "
    "one-logger-async optimizer-cuda-graph output-bert-embeddings overlap-cpu-optimizer-d2h-h2d "
    "overlap-dispatch-backward-with-experts-wgrad overlap-p2p-communication-warmup-flush "
    "overlap-param-gather-with-optimizer-step override-opt-param-scheduler override-opt_param-scheduler "
    "profile pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra "
    "pytorch-profiler-collect-shapes qk-clip record-memory-history record-shapes "
    "renormalize-blend-weights replication reset-attention-mask reset-position-ids "
    "retriever-score-scaling retro-add-retriever retro-no-verify-neighbor-count "
    "reuse-grad-buf-for-mxfp8-param-ag rl-calculate-intra-group-similarity "
    "rl-inference-logprobs-is-correction rl-offload-inference-model-weights-when-idle "
    "rl-offload-kv-cache-during-training rl-offload-optimizer-during-inference rl-partial-rollouts "
    "rl-persist-cuda-graphs rl-profile rl-remove-kv-cache-during-training rl-reset-cuda-graphs "
    "rl-skip-bos-token rl-training-cuda-graphs rl-use-sequence-packing rl-verify-model-weights-swap "
    "rotary-interleaved run-workload-inspector-server sft skip-train standalone-embedding-stage "
    "te-rng-tracker test-mode tokenizer-hf-include-special-tokens tokenizer-hf-no-include-special-tokens "
    "tokenizer-hf-no-use-fast tokenizer-hf-use-fast tokenizer-sentencepiece-legacy "
    "tp-comm-overlap-rs-dgrad trust-remote-code use-checkpoint-args use-checkpoint-opt-param-scheduler "
    "use-checkpoint-opt_param-scheduler use-cpu-initialization use-dist-ckpt "
    "use-fused-weighted-squared-relu use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert "
    "use-kitchen-attention use-legacy-models use-legacy-static-engine use-mcore-models "
    "use-mp-args-from-checkpoint-args use-mup use-nccl-ub use-one-sent-docs use-persistent-ckpt-worker "
    "use-pytorch-profiler use-ring-exchange-p2p use-rope-scaling use-same-sampling-seed-across-dp-ranks "
    "use-sharp use-te-activation-func use-torch-optimizer-for-cpu-offload use-tp-pp-dp-mapping "
    "use-transformer-engine-op-fuser verify-integrity vision-pretraining "
    "yarn-correction-range-round-to-int ";

constexpr std::string_view kOneValue =
    "activation-func-clamp-value activation-offload-fraction adlr-autoresume-interval app-tag-run-name "
    "app-tag-run-version async-ckpt-cpu-priority async-ckpt-io-priority async-strategy batch-size "
    "bert-embedder-type bert-load biencoder-projection-dim block-data-path chat-template "
    "check-weight-hash-across-dp-replicas-interval ckpt-convert-format ckpt-convert-save ckpt-format "
    "ckpt-fully-parallel-load-exchange-algo ckpt-fully-parallel-load-process-group "
    "ckpt-fully-parallel-save-process-group ckpt-step classes-fraction config-logger-dir "
    "cuda-graph-warmup-steps data-args-path data-cache-path data-per-class-fraction dataloader-type "
    "ddp-bucket-size ddp-num-buckets decoupled-lr decoupled-min-lr delta-offload-bytes-across-pp-ranks "
    "dino-bottleneck-size dino-freeze-last-layer dino-head-hidden-size dino-local-crops-number "
    "dino-local-img-size dino-teacher-temp dino-warmup-teacher-temp dino-warmup-teacher-temp-epochs "
    "dist-ckpt-format dist-ckpt-strictness dist-ckpt-workers "
    "distributed-backend distributed-timeout-minutes distributed-timeout-seconds-after-init "
    "dsa-indexer-head-dim dsa-indexer-k-norm-epsilon dsa-indexer-loss-coeff dsa-indexer-n-heads "
    "dsa-indexer-skip-topk-offset dsa-indexer-topk dsa-indexer-topk-freq dsa-kernel-backend "
    "dump-param-to-param-group-map embedding-init-method-std embedding-path empty-unused-memory-level "
    "encoder-pipeline-model-parallel-size encoder-tensor-model-parallel-size end-weight-decay "
    "error-injection-rate error-injection-type eval-global-batch-size eval-interval eval-iters "
    "eval-micro-batch-size evidence-data-path exit-duration-in-mins exit-interval exit-signal "
    "expert-tensor-parallel-num-weight-shards fim-eod-token fim-fragment-rate fim-middle-token "
    "fim-no-prefix fim-pad-token fim-prefix-token fim-rate fim-split-sample fim-spm-rate fim-suffix-token "
    "fine-grained-offloading-max-inflight-offloads flash-attention-version flight-recorder-dump-path "
    "flight-recorder-trace-buffer-size fp4-quantizer-factory fp8-amax-compute-algo fp8-amax-history-len "
    "fp8-interval fp8-margin fp8-quantizer-factory ft-num-warmup-iters glu-linear-offset "
    "gpu-sniff-test-interval grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-default-temperature "
    "grpo-default-top-p grpo-entropy-term-weight grpo-group-size grpo-iterations grpo-kl-beta "
    "grpo-prompts-per-step head-lr-mult hysteresis ict-head-size ict-load img-h img-w indexer-batch-size "
    "indexer-log-interval inference-batch-times-seqlen-threshold inference-coordinator-port "
    "inference-cuda-graph-max-tokens inference-cuda-graph-scope "
    "inference-dynamic-batching-async-sched-mode inference-dynamic-batching-block-size "
    "inference-dynamic-batching-buffer-guaranteed-fraction "
    "inference-dynamic-batching-buffer-overflow-factor inference-dynamic-batching-buffer-size-gb "
    "inference-dynamic-batching-chunk-size inference-dynamic-batching-cuda-graph-max-tokens "
    "inference-dynamic-batching-cuda-graph-mixed-prefill-count "
    "inference-dynamic-batching-cuda-graph-sizing-distribution inference-dynamic-batching-logprobs-mode "
    "inference-dynamic-batching-mamba-memory-ratio inference-dynamic-batching-max-requests "
    "inference-dynamic-batching-max-requests-override inference-dynamic-batching-max-tokens "
    "inference-dynamic-batching-max-tokens-override inference-dynamic-batching-num-cuda-graphs "
    "inference-dynamic-batching-paused-buffer-size-gb "
    "inference-dynamic-batching-prefix-caching-coordinator-policy "
    "inference-dynamic-batching-prefix-caching-eviction-policy "
    "inference-dynamic-batching-prefix-caching-mamba-gb "
    "inference-dynamic-batching-prefix-caching-routing-alpha inference-dynamic-batching-sampling-backend "
    "inference-dynamic-batching-unified-memory-level inference-grouped-gemm-backend "
    "inference-logging-step-interval inference-max-batch-size inference-max-requests "
    "inference-max-seq-length inference-moe-token-dispatcher-type inference-shards initial-loss-scale "
    "inprocess-active-world-size inprocess-barrier-timeout inprocess-completion-timeout "
    "inprocess-granularity inprocess-hard-timeout inprocess-heartbeat-interval "
    "inprocess-heartbeat-timeout inprocess-last-call-wait inprocess-max-iterations "
    "inprocess-monitor-process-interval inprocess-monitor-thread-interval "
    "inprocess-progress-watchdog-interval inprocess-soft-timeout inprocess-termination-grace-time "
    "iter-per-epoch kitchen-attention-backend kitchen-config-file kitchen-recipe-number langrl-env-config "
    "langrl-inference-server-conversation-template langrl-inference-server-type linear-conv-kernel-dim "
    "linear-key-head-dim linear-num-key-heads linear-num-value-heads linear-value-head-dim lion-beta1 "
    "lion-beta2 load local-rank log-interval log-memory-interval logging-level logits-load-decode-threads "
    "logits-load-dir logits-load-kd-loss-alpha logits-load-msc-prefetch-depth logits-load-prefetch-factor "
    "logits-save-dir logits-save-dtype logits-save-top-k logits-save-top-p logits-save-top-p-min-k "
    "loss-scale loss-scale-window lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction "
    "lr-warmup-init lr-warmup-iters lr-warmup-samples lr-wsd-decay-iters lr-wsd-decay-samples "
    "lr-wsd-decay-style mamba-head-dim mamba-inference-conv-states-dtype mamba-inference-ssm-states-dtype "
    "mamba-num-groups mamba-num-heads mamba-state-dim mamba-training-ssm-states-dtype manual-gc-interval "
    "mask-factor mask-prob mask-type max-seqlen-per-dp-cp-rank max-tokens-to-oom "
    "megatron-fsdp-grad-comm-dtype megatron-fsdp-main-grads-dtype megatron-fsdp-main-params-dtype "
    "memory-snapshot-path merge-file mid-level-dataset-surplus min-loss-scale min-offloaded-tensor-size "
    "mlp-chunks-for-prefill mlp-chunks-for-training model-parallel-size moe-deepep-num-sms "
    "moe-expert-rank-capacity-factor moe-flex-dispatcher-num-sms moe-hybridep-num-blocks-permute "
    "moe-hybridep-num-blocks-unpermute moe-hybridep-num-sms moe-hybridep-num-sms-preprocessing "
    "moe-input-jitter-eps moe-mlp-glu-interleave-size moe-paged-stash-buffer-size-factor-cpu "
    "moe-paged-stash-buffer-size-factor-cuda moe-paged-stash-page-size moe-router-force-biased "
    "moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-router-quantile-balancing-ema "
    "moe-routing-trace-max-training-iters moe-routing-trace-path "
    "moe-shared-expert-glu-interleave-size moe-token-drop-policy moe-upcycling-granularity mscale "
    "mscale-all-dim mtp-hybrid-override-pattern muon-coefficient-type muon-extra-scale-factor "
    "muon-fp32-matmul-prec muon-momentum muon-num-ns-steps muon-scalar-optimizer muon-scale-mode "
    "muon-tp-mode mup-attn-scale-power mup-base-head-dim mup-base-hidden-size mup-embedding-mult "
    "mup-output-mult mup-width-mult nccl-communicator-config-path no-rope-freq no-weight-decay-cond-type "
    "non-persistent-ckpt-type non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo "
    "non-persistent-local-ckpt-dir non-persistent-save-interval null-tokenizer-eod-id "
    "null-tokenizer-pad-id num-channels num-classes num-dataset-builder-threads num-layers-at-end-in-bf16 "
    "num-layers-at-start-in-bf16 num-speculative-tokens num-workers object-storage-cache-path "
    "one-logger-project one-logger-run-name onnx-safe outer-dp-sharding-strategy override-ckpt-iteration "
    "patch-dim per-dataset-sequences-path per-split-data-args-path persistent-save-interval "
    "phase-transition-iterations pipeline-model-parallel-comm-backend pipeline-model-parallel-split-rank "
    "pretrained-checkpoint profile-step-end profile-step-start qk-clip-alpha qk-clip-threshold "
    "query-in-block-prob refit-method relative-attention-max-distance relative-attention-num-buckets "
    "replication-factor replication-jump rerun-mode result-rejected-tracker-filename retriever-seq-length "
    "retro-attention-gate retro-cyclic-train-iters retro-encoder-attention-dropout "
    "retro-encoder-hidden-dropout retro-encoder-layers retro-num-neighbors retro-num-retrieved-chunks "
    "retro-project-dir rl-consumption-granularity rl-default-temperature rl-default-top-k "
    "rl-default-top-p rl-generation-batch-size rl-generation-lag rl-importance-sampling-truncation-coef "
    "rl-inference-expert-model-parallel-size rl-inference-expert-tensor-model-parallel-size "
    "rl-inference-model-unified-memory-level rl-inference-pipeline-model-parallel-size "
    "rl-inference-tensor-model-parallel-size rl-kv-cache-management-mode "
    "rl-num-parallel-generation-batches rl-num-parallel-generations rl-parallel-generation-tasks "
    "rl-profile-dir rl-prompts-per-eval rl-sequence-packing-algo rl-sequence-packing-bin-size "
    "rl-sequence-packing-max-sequences-per-bin rl-submission-granularity rope-scaling-factor rope-type "
    "rotary-scaling-factor rotary-seq-len-interpolation-factor s3-cache-path sample-rate save "
    "save-activations-interval save-dgrads-interval save-interval save-params-interval "
    "save-retain-interval save-tokens-per-expert-interval save-wgrads-interval seed "
    "sft-tokenizer-prompt-format sgd-momentum sharp-enabled-group short-seq-prob split start-eval-at-iter "
    "start-weight-decay step-batch-size-schedule straggler-ctrlr-port straggler-minmax-count "
    "suggested-communication-unit-size swin-backbone-type symmetric-ar-type te-precision-config-file "
    "tensor-parallel-num-weight-shards tensorboard-dir tensorboard-log-interval tensorboard-queue-size "
    "tiktoken-num-special-tokens tiktoken-pattern timing-log-level timing-log-option titles-data-path "
    "tokenizer-metadata tp-comm-bootstrap-backend tp-comm-overlap-cfg train-samples train-sync-interval "
    "vision-backbone-type vision-pretraining-type vocab-extra-ids vocab-file wandb-entity wandb-exp-name "
    "wandb-project wandb-save-dir warmup weight-decay-incr-style yaml-cfg yarn-beta-fast yarn-beta-slow "
    "yarn-original-max-position-embeddings ";

constexpr std::string_view kSeveralValues =
    "cuda-graph-modules cuda-graph-scope data-path ddp-param-name-patterns-for-fp32-local-accumulation "
    "hierarchical-context-parallel-sizes high-priority-stream-groups iterations-to-skip "
    "moe-router-load-balancing-type mrope-section offload-modules profile-ranks "
    "retriever-report-topk-accuracies rl-inference-parsers spec test-data-path tiktoken-special-tokens "
    "tokenizer-special-tokens train-data-path valid-data-path validation-set-names ";

bool contains(std::string_view list, std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return false;
  const std::string word = std::string(name) + ' ';
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    if (at == 0 || list[at - 1] == ' ') return true;
  }
  return false;
}

}  // namespace

bool find_ignored_flag(std::string_view flag, int& values) {
  if (!flag.starts_with("--")) return false;
  const std::string_view name = flag.substr(2);
  if (contains(kSwitches, name)) {
    values = 0;
  } else if (contains(kOneValue, name)) {
    values = 1;
  } else if (contains(kSeveralValues, name)) {
    values = -1;
  } else {
    return false;
  }
  return true;
}

bool is_ignored_key(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  int values = 0;
  return find_ignored_flag(flag, values);
}

std::vector<std::string> megatron_key_names() {
  std::vector<std::string> names;
  for (const MegatronKey& key : megatron_keys()) names.emplace_back(key.name);
  for (const std::string_view list : {kSwitches, kOneValue, kSeveralValues}) {
    std::size_t start = 0;
    for (std::size_t end = list.find(' '); end != std::string_view::npos; end = list.find(' ', start)) {
      std::string name(list.substr(start, end - start));
      std::ranges::replace(name, '-', '_');
      names.push_back(std::move(name));
      start = end + 1;
    }
  }
  return names;
}

}  // namespace sextant::backends
