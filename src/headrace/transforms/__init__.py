"""Built-in transforms: plain functions over frames, each usable without Headrace."""
