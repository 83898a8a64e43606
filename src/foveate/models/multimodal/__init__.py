"""Models that join images, worlds and text, one page and one row per family."""

from foveate.models.family import Family

FAMILIES = (
    Family(
        "dual-encoder",
        "foveate.models.multimodal.dual_encoder",
        {
            "clip-vit-base-32": (151_277_313, "A ViT-B/32 and 12 blocks of width 512 (Radford et al. 2021)"),
            "clip-vit-tiny": (764_353, "2 blocks of width 96 for images, 2 of width 64 for texts"),
            "siglip-base-16": (
                203_155_970,
                "A ViT-B/16 and 12 blocks of width 768 (Zhai et al. 2023)",
            ),
        },
    ),
    Family(
        "clip",
        "foveate.models.multimodal.clip",
        {
            "clip-resnet50": (110_276_161, "A plain ResNet-50, 12 blocks of width 512 (Radford et al. 2021)"),
            "clip-tiny": (1_201_825, "6 layers of a ResNet, 2 blocks of width 96"),
        },
    ),
    Family(
        "darqn",
        "foveate.models.multimodal.darqn",
        {
            "darqn": (3_218_280, "Three convolutions, a grid of 7 x 7, an LSTM of 256 (Sorokin et al. 2015)"),
            "darqn-tiny": (
                1_011_524,
                "DARQN for views of 7 x 7 tiles of 8 pixels, each a place of the grid with its coordinates",
            ),
            "darqn-symbols": (
                1_212_436,
                "DARQN for views of 7 x 7 symbols: four glimpses by content, four at learned places",
            ),
        },
    ),
    Family(
        "mdarqn",
        "foveate.models.multimodal.mdarqn",
        {
            "mdarqn": (6_436_560, "Two DARQNs, one of grey and one of depth images (Qureshi et al. 2017)"),
            "mdarqn-tiny": (1_807_984, "Two DARQNs for grey and depth views of 7 x 7 tiles of 8 pixels"),
        },
    ),
    Family(
        "rnn-captioner",
        "foveate.models.multimodal.rnn_captioner",
        {
            "show-tell": (18_635_632, "GoogLeNet and an LSTM of width 512 without attention (Vinyals et al. 2015)"),
            "show-tell-tiny": (1_906_304, "6 layers and an LSTM of width 128, no attention"),
            "show-attend-tell": (
                47_824_385,
                "VGG-19 and an LSTM of width 1000, soft attention, gate, doubly stochastic (Xu et al. 2015)",
            ),
            "show-attend-tell-tiny": (1_939_457, "6 layers and an LSTM of width 128, soft attention, gate"),
            "show-attend-tell-hard": (
                47_825_386,
                "VGG-19 and an LSTM of width 1000, hard attention by REINFORCE (Xu et al. 2015)",
            ),
            "show-attend-tell-hard-tiny": (1_939_586, "The tiny one with hard attention by REINFORCE"),
        },
        attending=("show-attend-tell", "show-attend-tell-tiny", "show-attend-tell-hard", "show-attend-tell-hard-tiny"),
    ),
    Family(
        "sar",
        "foveate.models.multimodal.sar",
        {
            "sar": (57_409_694, "31-layer residual network, LSTMs of 512, two-dimensional attention (Li et al. 2019)"),
            "sar-tiny": (2_845_832, "SAR with 14 convolutions and LSTMs of 112, for one core"),
        },
    ),
    Family(
        "show-ask",
        "foveate.models.multimodal.show_ask",
        {
            "show-ask": (72_795_458, "ResNet-152, an LSTM of width 1024, two glimpses (Kazemi and Elqursh 2017)"),
            "show-ask-tiny": (879_170, "6 layers of a ResNet, an LSTM of width 128, two glimpses"),
            "show-ask-stacked-tiny": (1_003_330, "Each glimpse knows what those before it saw (Yang et al. 2016)"),
            "show-ask-mean-tiny": (883_906, "The tiny one without attention: the mean of all places"),
        },
        attending=("show-ask", "show-ask-tiny", "show-ask-stacked-tiny"),
    ),
    Family(
        "smem-vqa",
        "foveate.models.multimodal.smem_vqa",
        {
            "smem-vqa": (11_645_522, "GoogLeNet, words against places, two hops of width 512 (Xu and Saenko 2016)"),
            "smem-vqa-tiny": (1_217_762, "6 layers of a ResNet, two hops of width 128"),
            "smem-vqa-one-hop-tiny": (1_205_346, "The tiny one with the first hop alone"),
        },
    ),
    Family(
        "text-to-image",
        "foveate.models.multimodal.text_to_image",
        {
            "text-to-image": (462_266_624, "24+24 blocks of width 768, tokens of MaskGIT's size (Chang et al. 2022)"),
            "text-to-image-large": (
                818_206_208,
                "24+24 blocks of width 1024, as in the base model of Muse (Chang et al. 2023)",
            ),
            "text-to-image-tiny": (3_118_432, "4+4 blocks of width 128, which read four tokens at once"),
        },
    ),
    Family(
        "transformer-captioner",
        "foveate.models.multimodal.transformer_captioner",
        {
            "captioner-transformer": (91_785_792, "ResNet-101, 6+6 blocks of width 512 (Sharma et al. 2018)"),
            "captioner-transformer-tiny": (1_704_544, "6 layers of a ResNet, 1+2 blocks of width 128"),
            "vit-captioner": (149_245_440, "ViT-Base and 6 decoder blocks of width 768"),
            "vit-captioner-tiny": (2_001_664, "4 blocks on patches of 8 x 8 pixels and 2 decoder blocks, width 128"),
        },
    ),
    Family(
        "vision-encoder-decoder",
        "foveate.models.multimodal.vision_encoder_decoder",
        {
            "trocr-tiny": (3_106_816, "6 blocks on patches of 8 x 8 pixels and 3 decoder blocks, width 128"),
            "trocr-base": (333_331_200, "A ViT-B/16 and 12 decoder blocks of width 1024 (Li et al. 2023)"),
            "vit-gpt2": (238_605_312, "A ViT-B/16 and the smallest GPT-2 with attention to the image"),
            "donut-base": (201_852_024, "A Swin of width 128 and 4 decoder blocks of width 1024 (Kim et al. 2022)"),
            "blip-base": (223_971_644, "A ViT-B/16 and a BERT-Base with attention to the image (Li et al. 2022)"),
        },
    ),
    Family(
        "walker",
        "foveate.models.multimodal.walker",
        {
            "walker": (1_270_008, "Bidirectional LSTM, multi-level aligner, LSTMs of 100 (Mei et al. 2016)"),
            "walker-tiny": (494_792, "The walker with LSTMs of 48"),
        },
    ),
)
"""Each family with its module, and its presets: parameters, and a summary."""
