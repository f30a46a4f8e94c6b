"""The command ``hlo``: one file per subcommand."""
