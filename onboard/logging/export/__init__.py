"""Rollouts in the formats of trainers and viewers, one module a format; `formats` lists them."""
