"""Dropout whose mask does not cost more than the layer it follows."""

from torch import Tensor, nn

from ecg_gnn.kernels import dropout, linear_dropout


class Dropout(nn.Module):
    """Inverted dropout at a rate, in training only."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor) -> Tensor:
        """Drop values; the identity in evaluation mode or at rate 0."""
        if not self.training or self.rate == 0:
            return x
        return dropout(x, self.rate)

    def after(self, linear: nn.Linear, *parts: Tensor, gelu: bool = False) -> Tensor:
        """Dropout of a linear map of the parts, and perhaps a GELU after it."""
        rate = self.rate if self.training else 0.0
        return linear_dropout(parts, linear, rate, gelu=gelu)
