"""The door: the command ``hlo`` and what its subcommands share. It holds no logic of its own."""
