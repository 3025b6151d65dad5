/* Tests with very many cases that are alike. */
#ifndef ONV_TESTS_ALIKE_H
#define ONV_TESTS_ALIKE_H

/* One of so many is tried. Under sanitizers a case takes two to four times as long, and is looked at for errors of memory,
 * which one case in five shows as well; that all are right is seen in the build for development. */
#ifdef __SANITIZE_ADDRESS__
enum { OF_ALIKE = 5 };
#else
enum { OF_ALIKE = 1 };
#endif

#endif
