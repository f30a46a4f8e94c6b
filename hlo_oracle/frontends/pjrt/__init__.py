"""The platform ``hlo_oracle`` of JAX: a PJRT plugin whose functions are Python.

``JAX_PLATFORMS=hlo_oracle python train.py`` runs every program that JAX compiles by this project.
The entry point ``jax_plugins`` leads here; docs/jax_plugin.md.
"""

from __future__ import annotations


def initialize() -> None:
    """Register the platform, if it is one of those that JAX is told to use.

    JAX calls this wherever hlo-oracle is installed, so that nothing is imported or compiled for
    programs that run elsewhere.
    """
    import jax

    platforms = getattr(jax.config, "jax_platforms", None) or ""
    if "hlo_oracle" in platforms.split(","):
        from hlo_oracle.frontends.pjrt import registration

        registration.register()
