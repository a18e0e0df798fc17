/* Row loops compiled for several instruction sets. Their results do not depend on the choice: no
 * contraction, no reordering. */
#ifndef GB_REF_BOUNDS_CLONES_H
#define GB_REF_BOUNDS_CLONES_H

#include <stdint.h> /* defines __GLIBC__ */

/* The choice is made by the loader of glibc, before sanitizers are ready. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) &&                            \
        !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define GB_REF_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define GB_REF_CLONES
#endif
/* For what such functions call: it becomes part of them. */
#define GB_REF_CLONED __attribute__((always_inline))

#endif
