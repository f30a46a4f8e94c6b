"""The command ``hlo``: one file per subcommand, no logic of its own."""
