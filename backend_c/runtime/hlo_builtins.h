/* Ask a compiler for a builtin function. One that cannot be asked is taken to have none. */
#ifndef HLO_BUILTINS_H
#define HLO_BUILTINS_H

#if defined(__has_builtin)
#define HLO_HAS_BUILTIN(name) __has_builtin(name)
#else
#define HLO_HAS_BUILTIN(name) 0
#endif

/* Fetch a line of memory that is read later; any address will do. */
#if HLO_HAS_BUILTIN(__builtin_prefetch)
#define HLO_PREFETCH(address) __builtin_prefetch(address)
#else
#define HLO_PREFETCH(address) (void)(address)
#endif

#endif
