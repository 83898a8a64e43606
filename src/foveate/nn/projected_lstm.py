"""The LSTM with a projection and clipped states (Sak et al. 2014, https://arxiv.org/abs/1402.1128)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class ProjectedLSTM(nn.Module):
    """An LSTM of many cells whose output and recurrent state is a narrow projection of them: E -> P.

    Cells and projections are clipped to `clip`, so that no state can explode in a long text.
    """

    def __init__(self, input_width: int, cells: int, width: int, clip: float) -> None:
        super().__init__()
        self.input = nn.Linear(input_width, 4 * cells, bias=False)
        self.state = nn.Linear(width, 4 * cells)
        self.project = nn.Linear(cells, width, bias=False)
        self.clip = clip
        for layer in (self.input, self.state, self.project):
            nn.init.xavier_uniform_(layer.weight)
        nn.init.zeros_(self.state.bias)
        nn.init.ones_(self.state.bias[cells : 2 * cells])  # so that training begins with remembering

    def forward(self, x: Float[Tensor, "B T E"]) -> Float[Tensor, "B T P"]:
        inputs = self.input(x)
        state = x.new_zeros(len(x), self.project.out_features)
        cell = x.new_zeros(len(x), self.project.in_features)
        outputs = []
        for step in inputs.unbind(1):
            entry, forget, content, exit = (step + self.state(state)).chunk(4, -1)
            cell = torch.sigmoid(forget) * cell + torch.sigmoid(entry) * torch.tanh(content)
            cell = cell.clamp(-self.clip, self.clip)
            state = self.project(torch.sigmoid(exit) * torch.tanh(cell)).clamp(-self.clip, self.clip)
            outputs.append(state)
        return torch.stack(outputs, 1)


def reverse(x: Float[Tensor, "B T C"], lengths: Int[Tensor, "B"]) -> Float[Tensor, "B T C"]:
    """Each sequence from its end to its beginning, before its padding. The inverse of itself."""
    places = torch.arange(x.shape[1], device=x.device)
    turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    return x.gather(1, turned[..., None].expand_as(x))
