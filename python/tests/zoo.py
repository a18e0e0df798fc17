"""Models with random weights, made from their configurations: nothing is downloaded.

Each entry of MODELS makes (model, inputs) for a batch size; `small` ones have few layers, narrow
ones, or small images, so that a test takes seconds.
"""

import torch
from torch import nn


def _image(batch, size):
    return torch.randn(batch, 3, size, size)


def _vision(name, size, **options):
    def make(batch=1, small=False):
        import torchvision

        model = getattr(torchvision.models, name)(weights=None, **options)
        side = max(32, size // 4) if small else size
        return model, (_image(batch, side),)

    return make


class Tensors(nn.Module):
    """A model of transformers that returns tensors instead of an object."""

    def __init__(self, model, field):
        super().__init__()
        self.model, self.field = model, field

    def forward(self, tokens):
        return getattr(self.model(tokens), self.field)


def bert(batch=1, small=False):
    from transformers import BertConfig, BertModel

    sizes = (
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
        if small
        else {}
    )
    config = BertConfig(vocab_size=1000, **sizes)
    model = BertModel(config, add_pooling_layer=False)
    return Tensors(model, "last_hidden_state"), (torch.randint(0, 1000, (batch, 16 if small else 128)),)


def llama(batch=1, small=False):
    from transformers import LlamaConfig, LlamaModel

    width = 64 if small else 1024
    config = LlamaConfig(
        vocab_size=1000,
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_hidden_layers=2,
        num_attention_heads=8,
        num_key_value_heads=4,
        use_cache=False,
    )
    tokens = torch.randint(0, 1000, (batch, 16 if small else 128))
    return Tensors(LlamaModel(config), "last_hidden_state"), (tokens,)


class UNet(nn.Module):
    """Two steps down and up again: convolutions, group norm, SiLU, nearest interpolation, skips."""

    def __init__(self, width=32):
        super().__init__()

        def block(inputs, outputs):
            return nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, padding=1),
                nn.GroupNorm(8, outputs),
                nn.SiLU(),
                nn.Conv2d(outputs, outputs, 3, padding=1),
                nn.GroupNorm(8, outputs),
                nn.SiLU(),
            )

        self.down1, self.down2 = block(3, width), block(width, 2 * width)
        self.middle = block(2 * width, 4 * width)
        self.up2, self.up1 = block(6 * width, 2 * width), block(3 * width, width)
        self.last = nn.Conv2d(width, 3, 1)

    def forward(self, image):
        pool, twice = nn.functional.avg_pool2d, nn.functional.interpolate
        first = self.down1(image)
        second = self.down2(pool(first, 2))
        middle = self.middle(pool(second, 2))
        up = self.up2(torch.cat([twice(middle, scale_factor=2.0), second], 1))
        up = self.up1(torch.cat([twice(up, scale_factor=2.0), first], 1))
        return self.last(up)


def unet(batch=1, small=False):
    return UNet(8 if small else 32), (_image(batch, 32 if small else 128),)


MODELS = {
    "resnet18": _vision("resnet18", 224),
    "resnet50": _vision("resnet50", 224),
    "mobilenet_v2": _vision("mobilenet_v2", 224),
    "vgg11": _vision("vgg11", 224),
    "densenet121": _vision("densenet121", 224),
    "squeezenet": _vision("squeezenet1_1", 224),
    "bert": bert,
    "llama": llama,
    "unet": unet,
}


def make(name, batch=1, small=False, seed=0):
    """(model in eval mode, inputs), the same for the same seed."""
    torch.manual_seed(seed)
    model, inputs = MODELS[name](batch, small)
    return model.eval(), inputs
