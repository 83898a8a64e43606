"""Models that read images, one page and one row per family.

A model of these has `forward(pixels) -> Output` with one row of logits for each image, and `grid(pixels)`, its last
feature map, for what builds on it. `grid_width` is the number of channels of that map, `stride` how many pixels of the
image lie between two of its places.
"""

from foveate.models.family import Family

FAMILIES = (
    Family(
        "alexnet",
        "foveate.models.vision.alexnet",
        {
            "alexnet": (60_965_224, "8 layers in two towers (Krizhevsky et al. 2012)"),
            "alexnet-one-tower": (
                61_100_840,
                "8 layers in one tower, without response normalization (Krizhevsky 2014): the public weights' sizes",
            ),
            "alexnet-small-images": (710_978, "8 layers in two towers, for images from 15 x 15 pixels"),
        },
        attending=(),
    ),
    Family(
        "cnn",
        "foveate.models.vision.cnn",
        {
            "cnn-tiny": (287_714, "6 convolutions, width 32 to 128, batch norm: for small images"),
            "cnn-attentive-tiny": (289_763, "The same with self-attention after the second stage (Zhang et al. 2019)"),
        },
        attending=("cnn-attentive-tiny",),
    ),
    Family(
        "convnext",
        "foveate.models.vision.convnext",
        {
            "convnext-tiny": (28_589_128, "18 blocks, width 96 to 768 (Liu et al. 2022)"),
            "convnext-base": (88_591_464, "36 blocks, width 128 to 1024"),
            "convnext-small-images": (1_065_938, "8 blocks, width 48 to 192, for images from 8 x 8 pixels"),
        },
        attending=(),
    ),
    Family(
        "deformable-detr",
        "foveate.models.vision.deformable_detr",
        {
            "deformable-detr-resnet50": (
                40_122_785,
                "ResNet-50 and 6+6 layers, 300 queries, 4 feature maps (Zhu et al. 2021)",
            ),
            "deformable-detr-tiny": (
                1_590_932,
                "14-layer ResNet and 2+3 layers, 25 queries, 2 feature maps, refined boxes",
            ),
        },
    ),
    Family(
        "detr",
        "foveate.models.vision.detr",
        {
            "detr-resnet50": (
                41_577_888,
                "ResNet-50 and 6+6 layers, 100 queries, as in the paper (Carion et al. 2020)",
            ),
            "detr-tiny": (
                1_943_335,
                "14-layer ResNet and 2+3 layers, 25 queries, as in the paper: hard to train on few images",
            ),
            "detr-refined-tiny": (
                1_993_226,
                "The same with boxes refined layer by layer, denoising queries and focal loss (Liu, Li et al. 2022)",
            ),
            "detr-lite0-tiny": (
                2_026_734,
                "Boxes proposed by places of EfficientNet-Lite0 and refined, for its trained weights (--from)",
            ),
        },
    ),
    Family(
        "efficientnet",
        "foveate.models.vision.efficientnet",
        {
            "efficientnet-lite0": (4_652_008, "4.7 M parameters, made for 224 x 224 pixels (Tan and Le 2019)"),
            "efficientnet-b0": (5_288_548, "The same with squeeze-and-excitation and SiLU, made for 224 x 224 pixels"),
            "efficientnet-lite0-16": (
                700_994,
                "Its first five stages, a sixteenth of the rows and columns: for detection",
            ),
        },
        attending=(),
    ),
    Family(
        "googlenet",
        "foveate.models.vision.googlenet",
        {
            "googlenet": (6_998_552, "22 layers, 9 inception modules (Szegedy et al. 2015)"),
            "googlenet-batch-norm": (
                6_624_904,
                "The same with batch norm and no 5x5 kernels: the public weights' sizes",
            ),
            "googlenet-small-images": (370_522, "A quarter of the width, batch norm: for images from 8 x 8 pixels"),
        },
        attending=(),
    ),
    Family(
        "imagegpt",
        "foveate.models.vision.imagegpt",
        {
            "imagegpt-small": (
                76_932_096,
                "24 layers, width 512, pixels of 512 colours, images of 32 x 32 (Chen et al. 2020)",
            ),
            "imagegpt-tiny": (
                212_736,
                "4 layers, width 64, pixels of 8 levels for each channel: for images of 14 x 14",
            ),
        },
    ),
    Family(
        "mvit",
        "foveate.models.vision.mvit",
        {
            "mvitv2-tiny": (24_173_320, "10 blocks, width 96 to 768, pooled attention (Li et al. 2022)"),
            "mvitv2-base": (51_472_744, "24 blocks, width 96 to 768"),
            "mvitv2-nano": (
                1_105_850,
                "5 blocks, width 48 to 192, patches every 2 pixels: for small images, such as 28 x 28",
            ),
        },
    ),
    Family(
        "pose",
        "foveate.models.vision.pose",
        {
            "pose-resnet50": (35_228_737, "ResNet-50 and 6+6 layers of width 256 (after Mao et al. 2021)"),
            "pose-tiny": (541_537, "6-layer ResNet and 2+2 layers of width 96: for small images"),
        },
    ),
    Family(
        "resnet",
        "foveate.models.vision.resnet",
        {
            "resnet18": (11_689_512, "18 layers (He et al. 2016)"),
            "resnet34": (21_797_672, "34 layers"),
            "resnet50": (25_557_032, "50 layers, bottleneck blocks"),
            "resnet101": (44_549_160, "101 layers, bottleneck blocks"),
            "resnet152": (60_192_808, "152 layers, bottleneck blocks"),
            "resnet18-vd": (
                11_712_968,
                "18 layers, three 3x3 convolutions first and pooled shortcuts (He et al. 2019)",
            ),
            "resnet34-vd": (21_821_128, "34 layers of that kind"),
            "resnet50-vd": (25_576_264, "50 layers of that kind, bottleneck blocks"),
            "resnet101-vd": (44_568_392, "101 layers of that kind, bottleneck blocks"),
            "resnet-light": (137_762, "6 layers, a place for 8 x 8 pixels: fast, for images of about 64 x 64 pixels"),
            "plain34": (21_623_848, "34 layers without shortcuts, to compare with"),
            "resnet14": (699_426, "13 convolutions, width 32 to 128: a feature map of images of about 128 x 128"),
            "resnet20": (269_722, "20 layers for small images (He et al. 2016, section 4.2)"),
            "resnet56": (853_018, "56 layers for small images"),
            "plain20": (269_722, "20 layers for small images, no shortcuts"),
            "plain56": (853_018, "56 layers for small images, no shortcuts"),
        },
        attending=(),
    ),
    Family(
        "rt-detr",
        "foveate.models.vision.rt_detr",
        {
            "rt-detr-resnet18": (
                20_163_728,
                "18-layer ResNet and 3 layers, 300 queries (Zhao et al. 2023)",
            ),
            "rt-detr-resnet50": (42_923_884, "50-layer ResNet and 6 layers"),
            "rt-detr-tiny": (1_810_632, "14-layer ResNet and 3 layers of width 96, 25 queries, denoising"),
            "rt-detr-lite0": (1_531_678, "EfficientNet-Lite0 and 3 layers of width 96, 100 queries, places learn too"),
        },
    ),
    Family(
        "sagan",
        "foveate.models.vision.sagan",
        {
            "sagan": (62_573_894, "128 x 128 pixels, self-attention at 64 x 64 (Zhang et al. 2019)"),
            "sagan-tiny": (261_638, "28 x 28 pixels, width 16 to 64, self-attention at 14 x 14"),
            "sagan-tiny-without": (260_996, "The same without self-attention"),
        },
        attending=("sagan", "sagan-tiny"),
    ),
    Family(
        "segmenter",
        "foveate.models.vision.segmenter",
        {
            "segmenter-base-16": (106_592_256, "ViT-B/16 and 2 layers of queries of classes (Strudel et al. 2021)"),
            "segmenter-light": (939_456, "4-layer ViT with patches of 8 x 8 pixels, 2 layers of width 96"),
            "segmenter-tiny": (418_464, "6-layer ResNet, 2 layers of width 96: for small images"),
            "segmenter-lite0-tiny": (1_094_944, "The same on EfficientNet-Lite0, for its trained weights (--from)"),
        },
    ),
    Family(
        "swin",
        "foveate.models.vision.swin",
        {
            "swin-tiny": (28_288_354, "12 blocks, width 96 to 768, windows of 7 x 7 patches (Liu et al. 2021)"),
            "swin-base": (87_768_224, "24 blocks, width 128 to 1024"),
            "swin-nano": (
                528_896,
                "6 blocks, width 48 and 96, patches of 2 x 2 pixels: for small images, such as 28 x 28",
            ),
        },
    ),
    Family(
        "vgg",
        "foveate.models.vision.vgg",
        {
            "vgg16": (138_357_544, "16 layers (Simonyan and Zisserman 2015)"),
            "vgg19": (143_667_240, "19 layers"),
            "vgg-small-images": (635_938, "8 layers with batch norm, for images from 16 x 16 pixels"),
        },
        attending=(),
    ),
    Family(
        "vit",
        "foveate.models.vision.vit",
        {
            "vit-tiny": (1_202_946, "6 layers, width 128, patches of 4 x 4 pixels: for small images, such as 28 x 28"),
            "deit3-nano": (1_204_354, "The same with layer scale, as DeiT III: for small images"),
            "vit-hybrid-tiny": (616_114, "3 layers, width 96, on the feature map of resnet20: for small images"),
            "vit-hybrid-base": (
                110_945_832,
                "12 layers, width 768, on the feature map of resnet50 (Dosovitskiy et al. 2021)",
            ),
            "vit-light": (563_586, "4 layers, width 128, patches of 8 x 8 pixels: for images of about 64 x 64 pixels"),
            "vit-base-16": (86_567_656, "12 layers, width 768, patches of 16 x 16 pixels (Dosovitskiy et al. 2021)"),
            "vit-large-16": (304_326_632, "24 layers, width 1024, patches of 16 x 16 pixels"),
            "deit3-small-16": (22_059_496, "12 layers, width 384, layer scale (DeiT III, Touvron et al. 2022)"),
            "deit3-base-16": (86_585_320, "12 layers, width 768, layer scale (DeiT III)"),
        },
    ),
    Family(
        "zfnet",
        "foveate.models.vision.zfnet",
        {
            "zfnet": (62_357_608, "8 layers (Zeiler and Fergus 2014)"),
            "zfnet-small-images": (997_698, "8 layers, for images from 18 x 18 pixels"),
        },
        attending=(),
    ),
)
"""Each family with its module, and its presets: parameters, and a summary."""
