"""What some torch releases cannot do before a backend sees anything."""

import pytest
import torch
from packaging.version import Version

TORCH = Version(Version(torch.__version__).base_version)

symbolic_encoder_layer = pytest.mark.skipif(
    Version("2.12") > TORCH,
    reason="torch 2.11 cannot trace _transformer_encoder_layer_fwd with symbolic sizes: Dynamo breaks the graph there",
)
