"""The formats that a snapshot is exported in: known to the command line without the libraries that write them."""

FORMATS = ("megatron", "huggingface")
