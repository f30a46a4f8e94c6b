"""From a dump of a compilation to the pass that changed what the program means.

``dump.modules(directory)`` are the modules of a dump, each with its stages in order, and
``history.History`` is what became of one of them: ``rows`` compares every stage with the one before
(``hlo check DUMP``), ``first_change`` finds the first that means something else, and
``side_by_side`` the first instruction of it that does (``hlo bisect DUMP``).
"""
