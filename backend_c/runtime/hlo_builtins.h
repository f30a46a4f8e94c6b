/* Ask a compiler for a builtin function. One that cannot be asked is taken to have none. */
#ifndef HLO_BUILTINS_H
#define HLO_BUILTINS_H

#if defined(__has_builtin)
#define HLO_HAS_BUILTIN(name) __has_builtin(name)
#else
#define HLO_HAS_BUILTIN(name) 0
#endif

#endif
