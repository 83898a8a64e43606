"""Models that read or write text, one page and one row per family."""

from foveate.models.family import Family

CAUSAL = (
    *("gpt", "gpt-neox", "gpt-j", "opt", "llama", "mistral", "qwen2", "qwen3", "smollm3", "gemma2", "olmo2", "phi3"),
)
"""The families of `causal_language_model.py`."""

FAMILIES = (
    Family(
        "attentive-reader",
        "foveate.models.text.attentive_reader",
        {
            "attentive-reader-tiny": (678_018, "GRU of 64 each way, embeddings of 64: for short texts, on a laptop"),
            "attentive-reader": (5_204_482, "LSTM of 256 each way, additive attention (Hermann et al. 2015)"),
        },
    ),
    Family(
        "bert",
        "foveate.models.text.bert",
        {
            "bert-tiny": (5_413_440, "4 blocks, width 256, 4 heads: for a laptop"),
            "bert-mini": (1_445_824, "2 blocks, width 128, 4 heads, pre-norm, rotary positions: learns in minutes"),
            "minilm-l6": (22_744_506, "6 blocks, width 384, 12 heads (Wang et al. 2020)"),
            "bert-base": (109_514_298, "12 blocks, width 768, 12 heads (Devlin et al. 2019)"),
            "bert-large": (335_174_458, "24 blocks, width 1024, 16 heads"),
            "roberta-base": (124_697_433, "12 blocks, width 768, 12 heads (Liu et al. 2019)"),
            "roberta-large": (355_412_057, "24 blocks, width 1024, 16 heads"),
            "distilbert": (66_985_530, "6 blocks, width 768, 12 heads (Sanh et al. 2019)"),
            "electra-small": (13_546_682, "12 blocks, width 256, 4 heads, words of width 128 (Clark et al. 2020)"),
            "mpnet-base": (109_518_527, "12 blocks, width 768, 12 heads (Song et al. 2020)"),
            "modernbert-base": (
                149_655_232,
                "22 blocks, width 768, 12 heads, two of three with windows (Warner et al. 2024)",
            ),
        },
    ),
    Family(
        "convolutional-seq2seq",
        "foveate.models.text.convolutional_seq2seq",
        {
            "convolutional-tiny": (5_140_480, "4+3 convolutions, width 192: for a laptop (Gehring et al. 2017)"),
            "convolutional": (87_856_960, "20+20 convolutions, width 512 (Gehring et al. 2017, English-Romanian)"),
        },
    ),
    Family(
        "deberta",
        "foveate.models.text.deberta",
        {
            "deberta-tiny": (5_413_440, "4 blocks, width 256, 4 heads: for a laptop"),
            "deberta-base": (139_244_121, "12 blocks, width 768, 12 heads (He et al. 2021)"),
            "deberta-v3-small": (142_024_548, "6 blocks, width 768, 12 heads (He et al. 2023)"),
            "deberta-v3-base": (184_551_780, "12 blocks, width 768, 12 heads"),
            "deberta-v3-large": (435_191_908, "24 blocks, width 1024, 16 heads"),
        },
    ),
    Family(
        "elmo",
        "foveate.models.text.elmo",
        {
            "elmo": (500_651_487, "Two LSTMs of 4096 cells in each direction (Peters et al. 2018)"),
            "elmo-tiny": (2_379_248, "Two LSTMs of 256 cells in each direction: for a laptop"),
        },
        attending=(),
    ),
    Family(
        "gpt",
        "foveate.models.text.gpt",
        {
            "gpt-tiny": (5_469_696, "4 blocks, width 256, 4 heads: for a laptop"),
            "gpt-conditioned": (5_469_952, "The same with a condition"),
            "gpt1-tiny": (5_469_184, "The same, post-norm as GPT-1"),
            "gpt3-tiny": (5_469_696, "The same, every second block banded as in GPT-3"),
            "gpt1": (116_534_784, "12 blocks, width 768, 12 heads, post-norm (Radford et al. 2018)"),
            "gpt2": (124_439_808, "12 blocks, width 768, 12 heads (Radford et al. 2019)"),
            "gpt2-medium": (354_823_168, "24 blocks, width 1024, 16 heads"),
            "gpt2-large": (774_030_080, "36 blocks, width 1280, 20 heads"),
            "gpt2-xl": (1_557_611_200, "48 blocks, width 1600, 25 heads"),
            "megatron-8.3b": (8_317_040_640, "72 blocks, width 3072, 32 heads (Shoeybi et al. 2019)"),
            "turing-nlg-17b": (17_176_845_728, "78 blocks, width 4256, 28 heads (Microsoft 2020)"),
            "gopher-280b": (279_714_217_984, "80 blocks, width 16384, 128 heads, relative positions (Rae et al. 2021)"),
            "gpt3-175b": (174_604_259_328, "96 blocks, width 12288, every second one banded (Brown et al. 2020)"),
        },
    ),
    Family(
        "gpt-neox",
        "foveate.models.text.gpt_neox",
        {
            "gpt-neox-20b": (20_554_567_680, "44 blocks, width 6144, 64 heads (Black et al. 2022)"),
            "pythia-70m": (70_426_624, "6 blocks, width 512, 8 heads (Biderman et al. 2023)"),
        },
    ),
    Family(
        "gpt-j",
        "foveate.models.text.gpt_j",
        {"gpt-j-6b": (6_050_882_784, "28 blocks, width 4096, 16 heads (Wang and Komatsuzaki 2021)")},
    ),
    Family(
        "gemma2",
        "foveate.models.text.gemma2",
        {
            "gemma2-2b": (2_614_341_888, "26 blocks, width 2304, 8 heads in 4 groups, tied (Gemma Team 2024)"),
            "gemma2-9b": (9_241_705_984, "42 blocks, width 3584, 16 heads in 8 groups, tied"),
        },
    ),
    Family(
        "hierarchical-autoencoder",
        "foveate.models.text.hierarchical_autoencoder",
        {
            "hierarchical-autoencoder": (12_194_624, "GRUs, a paragraph in one vector, for a laptop"),
            "hierarchical-autoencoder-attentive": (14_031_168, "The same with attention to the encoded sentences"),
            "hierarchical-autoencoder-large": (60_047_000, "LSTMs of 1,000, with attention (Li et al. 2015)"),
        },
        attending=("hierarchical-autoencoder-attentive", "hierarchical-autoencoder-large"),
    ),
    Family(
        "llama",
        "foveate.models.text.llama",
        {
            "llama-7b": (6_738_415_616, "32 blocks, width 4096, 32 heads (Touvron et al. 2023)"),
            "llama3.2-1b": (1_235_814_400, "16 blocks, width 2048, 32 heads in 8 groups, tied (Meta 2024)"),
            "smollm2-135m": (134_515_008, "30 blocks, width 576, 9 heads in 3 groups, tied (Allal et al. 2025)"),
        },
    ),
    Family(
        "mistral",
        "foveate.models.text.mistral",
        {"mistral-7b": (7_241_732_096, "32 blocks, width 4096, 32 heads in 8 groups, windows (Jiang et al. 2023)")},
    ),
    Family(
        "ngram-bag",
        "foveate.models.text.ngram_bag",
        {
            "ngram-bag": (4_450_370, "Words and pairs of words, their mean (fastText: Joulin et al. 2017)"),
            "ngram-bag-attentive": (4_452_514, "The same, a learned query attends to the words"),
        },
        attending=("ngram-bag-attentive",),
    ),
    Family(
        "olmo2",
        "foveate.models.text.olmo2",
        {
            "olmo2-1b": (1_484_916_736, "16 blocks, width 2048, 16 heads (OLMo Team 2025)"),
            "olmo2-7b": (7_298_617_344, "32 blocks, width 4096, 32 heads"),
        },
    ),
    Family(
        "opt",
        "foveate.models.text.opt",
        {
            "opt-125m": (125_239_296, "12 blocks, width 768, 12 heads (Zhang et al. 2022)"),
            "opt-1.3b": (1_315_758_080, "24 blocks, width 2048, 32 heads"),
            "opt-6.7b": (6_658_473_984, "32 blocks, width 4096, 32 heads"),
        },
    ),
    Family(
        "phi3",
        "foveate.models.text.phi3",
        {"phi3-mini": (3_821_079_552, "32 blocks, width 3072, 32 heads, windows (Abdin et al. 2024)")},
    ),
    Family(
        "qwen2",
        "foveate.models.text.qwen2",
        {"qwen2-0.5b": (494_032_768, "24 blocks, width 896, 14 heads in 2 groups, tied (Yang et al. 2024)")},
    ),
    Family(
        "qwen3",
        "foveate.models.text.qwen3",
        {"qwen3-0.6b": (596_049_920, "28 blocks, width 1024, 16 heads in 8 groups, tied (Yang et al. 2025)")},
    ),
    Family(
        "rnn-autoencoder",
        "foveate.models.text.rnn_autoencoder",
        {"rnn-autoencoder": (9_173_312, "GRU, a sentence in one vector, for a laptop")},
        attending=(),
    ),
    Family(
        "rnn-encoder",
        "foveate.models.text.rnn_encoder",
        {
            "rnn-acceptor": (1_721_002, "LSTM from left to right, classifies its last state"),
            "rnn-acceptor-large": (10_397_698, "The same with 1,024 cells, embeddings of 512 (Dai and Le 2015)"),
            "rnn-attentive-classifier": (1_696_102, "Bidirectional GRU, a learned query attends (Yang et al. 2016)"),
            "rnn-own-query-classifier": (1_685_802, "The same, but the last state attends, by a biaffine score"),
            "rnn-transducer": (3_516_930, "LSTM from left to right, tags each word before it reads the next one"),
            "birnn-tagger": (3_385_858, "Bidirectional LSTM (Graves and Schmidhuber 2005)"),
            "deep-birnn-tagger": (4_176_386, "Three bidirectional LSTMs, each reads the output of the one below"),
        },
        attending=("rnn-attentive-classifier", "rnn-own-query-classifier"),
        heads={
            "text": ("rnn-acceptor", "rnn-acceptor-large", "rnn-attentive-classifier", "rnn-own-query-classifier"),
            "tokens": ("rnn-transducer", "birnn-tagger", "deep-birnn-tagger"),
        },
    ),
    Family(
        "rnn-language",
        "foveate.models.text.rnn_language",
        {
            "rnn-language": (3_389_760, "LSTM for a laptop, with tied embeddings"),
            "rnn-conditioned": (3_430_752, "The same with a condition as an input of every step"),
            "rnn-language-medium": (19_780_400, "LSTM of medium size (Zaremba et al. 2014)"),
            "rnn-language-large": (66_034_000, "LSTM of large size (Zaremba et al. 2014)"),
        },
        attending=(),
    ),
    Family(
        "rnn-seq2seq",
        "foveate.models.text.rnn_seq2seq",
        {
            "rnn": (6_908_992, "GRU without attention, with one fixed vector of the source (Sutskever et al. 2014)"),
            "rnn-bahdanau": (7_368_512, "GRU, additive attention before each step (Bahdanau et al. 2015)"),
            "rnn-luong": (7_598_400, "LSTM, biaffine attention after each step, input feeding (Luong et al. 2015)"),
            "rnn-attentive": (7_040_320, "GRU, scaled dot products after each step: the fastest with attention"),
            "rnn-local": (7_664_192, "LSTM in a window with a predicted centre, else as rnn-luong (Luong et al. 2015)"),
            "rnn-hard": (7_172_161, "GRU with hard attention, trained by REINFORCE (Xu et al. 2015)"),
            "rnn-monotonic": (7_171_905, "GRU with monotonic attention, from left to right (Raffel et al. 2017)"),
            "sutskever-2014": (384_144_000, "4 LSTMs of 1,000, source reversed, one vector (Sutskever et al. 2014)"),
            "bahdanau-2015": (81_452_000, "GRUs of 1,000 each way, maxout of 500 (Bahdanau et al. 2015)"),
            "luong-2015": (221_115_000, "4 LSTMs of 1,000, source reversed, input feeding (Luong et al. 2015)"),
        },
        attending=(
            "rnn-bahdanau",
            "rnn-luong",
            "rnn-attentive",
            "rnn-local",
            "rnn-hard",
            "rnn-monotonic",
            "bahdanau-2015",
            "luong-2015",
        ),
    ),
    Family(
        "siamese",
        "foveate.models.text.siamese",
        {
            "siamese-acceptor": (1_551_106, "LSTM, compares the last states (Mueller and Thyagarajan 2016)"),
            "siamese-attentive": (1_485_826, "Bidirectional GRU, a learned query attends, compares what it finds"),
            "siamese-bag": (2_179_842, "Word vectors, a learned query attends, compares the cosine of what it finds"),
        },
        attending=("siamese-attentive", "siamese-bag"),
    ),
    Family(
        "smollm3",
        "foveate.models.text.smollm3",
        {"smollm3-3b": (3_075_098_624, "36 blocks, width 2048, 16 heads in 4 groups, tied (Bakouch et al. 2025)")},
    ),
    Family(
        "t5",
        "foveate.models.text.t5",
        {
            "t5-small": (60_506_624, "6+6 blocks, width 512, 8 heads (Raffel et al. 2020)"),
            "flan-t5-small": (76_961_152, "8+8 blocks, width 512, 6 heads, gated (Chung et al. 2022)"),
            "flan-t5-base": (247_577_856, "12+12 blocks, width 768, 12 heads, gated"),
        },
    ),
    Family(
        "transformer",
        "foveate.models.text.transformer",
        {
            "transformer-tiny": (3_373_568, "4+4 blocks, width 128, 4 heads, pre-norm: for a laptop"),
            "speaker-tiny": (1_872_672, "1+2 blocks, width 96, 4 heads: reads characters and writes audio tokens"),
            "transformer-base": (63_082_496, "6+6 blocks, width 512, 8 heads (Vaswani et al. 2017, base)"),
            "transformer-large": (214_245_376, "6+6 blocks, width 1024, 16 heads (Vaswani et al. 2017, big)"),
        },
    ),
    Family(
        "transformer-encoder",
        "foveate.models.text.transformer_encoder",
        {
            "transformer-classifier": (1_323_142, "2 blocks, width 128, 4 heads, relative positions: for a laptop"),
            "transformer-classifier-base": (23_011_330, "6 blocks, width 512, 8 heads, classifies the first position"),
            "transformer-classifier-large": (83_771_394, "6 blocks, width 1024, 16 heads"),
            "transformer-tagger": (3_387_142, "2 blocks, width 128, 4 heads, relative positions: for a laptop"),
            "birnn-transformer-tagger": (3_353_990, "One such block, which reads the output of a bidirectional LSTM"),
            "transformer-tagger-base": (31_399_938, "6 blocks, width 512, 8 heads"),
        },
        heads={
            "text": ("transformer-classifier", "transformer-classifier-base", "transformer-classifier-large"),
            "tokens": ("transformer-tagger", "birnn-transformer-tagger", "transformer-tagger-base"),
        },
    ),
    Family(
        "xlnet",
        "foveate.models.text.xlnet",
        {
            "xlnet-tiny": (5_478_464, "4 blocks, width 256, 4 heads: for a laptop"),
            "xlnet-base": (116_750_336, "12 blocks, width 768, 12 heads (Yang et al. 2019)"),
            "xlnet-large": (360_300_800, "24 blocks, width 1024, 16 heads (Yang et al. 2019)"),
        },
    ),
)
"""Each family with its module, and its presets: parameters, and a summary."""
