"""Typed, frozen, strict configuration and the YAML files that ship with the package."""
