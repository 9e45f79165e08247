"""The pipeline every compiled graph goes through."""

from __future__ import annotations

# `rewrite` comes first, because patterns are written against what PyTorch captured; then `cse`, which leaves repeats
# unread, and `dce`, which takes them, so that nothing is decided about nodes that go; then each pass needs what the
# one before it recorded.
COMPILE_PIPELINE = "rewrite,cse,dce,mark-supported,layout-assign,cluster,fuse"
