"""Weights of the words of licensors: learned from labeled sentences and from comments of projects, and written as package data.

What reads the weights is `pipeline.stages.normalize.license.licensors`, where the package data is.
"""
