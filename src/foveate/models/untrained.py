"""Presets that are built and tested, but have not been trained to a result that the documentation states."""

_TEXT = (
    "attentive-reader",
    *("bert-base", "bert-large", "roberta-base", "roberta-large"),
    *("deberta-base", "deberta-tiny", "deberta-v3-small", "deberta-v3-base", "deberta-v3-large"),
    *("electra-small", "modernbert-base", "mpnet-base", "t5-small", "flan-t5-small", "flan-t5-base"),
    "convolutional",
    "elmo",
    *("gpt-conditioned", "gpt1", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl", "gpt3-175b"),
    *("megatron-8.3b", "turing-nlg-17b", "gopher-280b", "gpt-neox-20b", "pythia-70m", "llama-7b", "smollm2-135m"),
    *("gpt-j-6b", "opt-125m", "opt-1.3b", "opt-6.7b", "llama3.2-1b", "mistral-7b", "qwen2-0.5b", "qwen3-0.6b"),
    *("smollm3-3b", "gemma2-2b", "gemma2-9b", "olmo2-1b", "olmo2-7b", "phi3-mini"),
    "hierarchical-autoencoder-large",
    *("rnn-acceptor-large", "rnn-language-medium", "rnn-language-large"),
    *("sutskever-2014", "bahdanau-2015", "luong-2015", "transformer-base", "transformer-large"),
    *("transformer-classifier-base", "transformer-classifier-large", "transformer-tagger-base"),
    *("xlnet-base", "xlnet-large"),
)

_VISION = (
    *("alexnet", "alexnet-one-tower", "zfnet", "vgg16", "vgg19", "googlenet", "googlenet-batch-norm"),
    *("resnet18", "resnet34", "resnet50", "resnet101", "resnet152", "plain34"),
    *("convnext-tiny", "convnext-base", "swin-tiny", "swin-base", "mvitv2-tiny", "mvitv2-base"),
    *("vit-base-16", "vit-large-16", "vit-hybrid-base", "deit3-small-16", "deit3-base-16"),
    *("detr-resnet50", "imagegpt-small", "sagan"),
)

_OTHERS = (
    *("clip-vit-base-32", "clip-vit-tiny", "siglip-base-16"),
    *("audio-transformer", "las", "speech-transformer"),
    *("whisper-tiny", "whisper-base", "whisper-small", "whisper-medium", "whisper-large", "whisper-turbo"),
    *(
        "clip-resnet50",
        "darqn",
        "mdarqn",
        "sar",
        "show-ask",
        "smem-vqa",
    ),
    *("show-tell", "show-attend-tell", "show-attend-tell-hard", "captioner-transformer", "vit-captioner"),
    *("text-to-image", "text-to-image-large", "walker-tiny"),
)

UNTRAINED = frozenset((*_TEXT, *_VISION, *_OTHERS))
