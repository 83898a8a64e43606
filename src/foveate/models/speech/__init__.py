"""Models that read sounds, one page and one row per family.

Those that write text read spectrograms `source` (B, S, F) with their `source_lengths`, padded by zeros; wav2vec 2.0
reads samples `source` (B, S), and labels sounds as well. Other classifiers read a spectrogram as an image `pixels`
(B, 1, F, S) of one channel, so models of images can classify sounds too.
"""

from foveate.models.family import Family

FAMILIES = (
    Family(
        "audio-transformer",
        "foveate.models.speech.audio_transformer",
        {
            "audio-transformer": (
                86_594_063,
                "12 layers, width 768, patches of 16 x 16 with a stride of 10 (Gong et al. 2021)",
            ),
            "audio-transformer-tiny": (
                966_530,
                "4 layers, width 128, patches of 8 x 8 without overlap: for short sounds",
            ),
        },
    ),
    Family(
        "las",
        "foveate.models.speech.las",
        {
            "las": (
                14_569_003,
                "4 bidirectional LSTMs of width 512, 3 of them pyramidal, and a speller of 2 (Chan et al. 2016)",
            ),
            "las-tiny": (
                3_194_624,
                "The same with width 128, 2 pyramidal layers, a speller of 1 and CTC: for short phrases",
            ),
            "las-whisper-tiny": (
                13_143_680,
                "The encoder of whisper-tiny, a speller of width 256 and CTC: for the trained encoder (--from)",
            ),
        },
    ),
    Family(
        "speech-transformer",
        "foveate.models.speech.speech_transformer",
        {
            "speech-transformer": (
                29_536_256,
                "12+6 blocks, width 256, 4 heads: the small model of S2T, for LibriSpeech",
            ),
            "speech-transformer-tiny": (3_645_504, "4+2 blocks, width 128, 4 heads, CTC: for short phrases"),
        },
    ),
    Family(
        "wav2vec2",
        "foveate.models.speech.wav2vec2",
        {
            "wav2vec2-base": (
                94_396_320,
                "12 blocks, width 768, over the samples of a sound, with CTC (Baevski et al. 2020)",
            ),
            "wav2vec2-large": (315_471_520, "24 blocks, width 1024, norms before the layers"),
        },
    ),
    Family(
        "whisper-ctc",
        "foveate.models.speech.whisper_ctc",
        {
            "whisper-ctc-tiny": (10_712_384, "The encoder of whisper-tiny and CTC: for the trained encoder (--from)"),
        },
    ),
    Family(
        "whisper",
        "foveate.models.speech.whisper",
        {
            "whisper-tiny": (37_184_640, "4+4 blocks, width 384, 6 heads (Radford et al. 2023)"),
            "whisper-base": (71_825_920, "6+6 blocks, width 512, 8 heads"),
            "whisper-small": (240_582_912, "12+12 blocks, width 768, 12 heads"),
            "whisper-medium": (762_321_920, "24+24 blocks, width 1024, 16 heads"),
            "whisper-large": (1_541_384_960, "32+32 blocks, width 1280, 20 heads"),
            "whisper-turbo": (806_958_080, "32+4 blocks, width 1280, 20 heads: whisper-large with a smaller decoder"),
        },
    ),
)
"""Each family with its module, and its presets: parameters, and a summary."""
