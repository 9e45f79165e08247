"""Cannot be imported."""

raise RuntimeError("this module\nfails on purpose")
