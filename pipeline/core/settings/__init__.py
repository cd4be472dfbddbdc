"""Settings of Params from files, options and forms: their fields by dotted names, layers of values, recipes as TOML files.

What a recipe holds is declared by its Params: of a corpus in `pipeline.build.recipes`, of a training in `trainer.config`.
"""
