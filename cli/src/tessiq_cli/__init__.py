"""The `tessiq` command."""
