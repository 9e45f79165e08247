"""For every test: the verifier runs after every pass, also where a model is compiled."""

import os

os.environ.setdefault("TESSIQ_DEBUG", "1")
