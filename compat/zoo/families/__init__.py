"""The specs, one module a lineage. Each module has a tuple `SPECS`; `compat.zoo.registry` finds them all."""
