"""Large sources: made corpora of any size, and what a build of them takes. Figures of the pinned slices are in the folder above."""
